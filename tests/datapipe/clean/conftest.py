from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from datapipe.documents import batch_from_columns


@pytest.fixture(scope="session")
def batch() -> Callable[[Sequence[str]], pa.RecordBatch]:
    """A batch of documents with the given texts; their offsets count from 0."""

    def batch(texts: Sequence[str]) -> pa.RecordBatch:
        return batch_from_columns(
            texts,
            source="web",
            source_file="a.jsonl",
            offsets=range(len(texts)),
            lengths=[1] * len(texts),
            record_id=[f"r{i}" for i in range(len(texts))],
        )

    return batch
