"""Documents dropped for where they come from.

Owns lists of addresses, what a registered domain is and what words of an address say; never looks
anything up on the network.
"""

from datapipe.clean.url.stage import UrlFilter, UrlFilterOptions

__all__ = ["UrlFilter", "UrlFilterOptions"]
