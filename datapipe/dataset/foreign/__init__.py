"""Other programs' file layouts, over a version's own shards.

Owns what those programs expect on disk; knows nothing of how versions come to be.
"""

from datapipe.dataset.foreign.export import Exported, ExportedSource, export_megatron

__all__ = ["Exported", "ExportedSource", "export_megatron"]
