"""Helpers for tests, ours and users': small real datasets made of arrays.

May import every part of the product but the command line; no part of the product imports it.
"""

from datapipe.testing.datasets import make_dataset

__all__ = ["make_dataset"]
