"""Fakes and shortcuts that tests of the product and of its users share; no product code uses it."""

from datapipe.testing.reading import Reading, read_all, read_bytes

__all__ = ["Reading", "read_all", "read_bytes"]
