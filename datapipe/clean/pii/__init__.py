"""Personal data and secrets in texts: found, masked, tagged, or a reason to drop the text.

Owns what such data looks like; knows nothing of names or of anything that only a model sees.
"""

from datapipe.clean.pii.stage import Pii, PiiOptions

__all__ = ["Pii", "PiiOptions"]
