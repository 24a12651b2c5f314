"""What tests of a training pipeline need: small datasets made in a second, inputs read at once.

Owns builders of test data; no product code imports it.
"""

from datapipe.testing.appending import append_often, start_appender
from datapipe.testing.datasets import (
    commit_small,
    small_docmap,
    small_draft,
    small_quarantine,
    small_tokenizer,
    small_tokens,
)
from datapipe.testing.reading import Reading, read_all, read_bytes
from datapipe.testing.token_datasets import make_dataset, read_shard

__all__ = [
    "Reading",
    "append_often",
    "commit_small",
    "make_dataset",
    "read_all",
    "read_bytes",
    "read_shard",
    "small_docmap",
    "small_draft",
    "small_quarantine",
    "small_tokenizer",
    "small_tokens",
    "start_appender",
]
