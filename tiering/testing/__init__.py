"""What tests of stores need, for this package and for whoever writes a backend of their own.

Owns the conformance suite and stores that fail on purpose; knows nothing of what objects mean.
Needs pytest; no product code imports it.
"""

from tiering.testing.conformance import StoreConformance
from tiering.testing.faults import FaultyStore

__all__ = ["FaultyStore", "StoreConformance"]
