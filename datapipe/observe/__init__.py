"""What the product says of itself while it works: progress now, metrics and events later.

Knows nothing of documents, datasets or terminals.
"""

from datapipe.observe.progress import NO_PROGRESS, Progress

__all__ = ["NO_PROGRESS", "Progress"]
