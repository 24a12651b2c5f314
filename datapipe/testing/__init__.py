"""What tests of a training pipeline need: small datasets made in a second.

Owns builders of test data; no product code imports it.
"""

from datapipe.testing.datasets import (
    commit_small,
    small_docmap,
    small_draft,
    small_quarantine,
    small_tokenizer,
    small_tokens,
)

__all__ = [
    "commit_small",
    "small_docmap",
    "small_draft",
    "small_quarantine",
    "small_tokenizer",
    "small_tokens",
]
