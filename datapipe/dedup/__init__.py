"""Which documents are the same, and which of them stays.

Owns the comparison of documents with each other; knows nothing of how they reach it or of where
what stays goes.
"""

from datapipe.dedup.exact import (
    EXACT_VERSION,
    choose_survivors,
    comparison_keys,
    key_words,
    rank_columns,
)

__all__ = [
    "EXACT_VERSION",
    "choose_survivors",
    "comparison_keys",
    "key_words",
    "rank_columns",
]
