from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from datapipe.dataset.hashing import document_hash, hashed_tuple
from datapipe.documents import DOCUMENTS, batch_from_columns, content_hashes, doc_ids

TEXTS = ["", "a", "é" * 50, "x" * 5000, "\0", "a"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary()], ids=str)
def test_content_hashes_are_those_of_each_text(kind: pa.DataType) -> None:
    texts = pa.array(TEXTS, pa.string()).cast(kind)
    expected = [document_hash(text.encode()) for text in TEXTS]
    assert content_hashes(texts).to_pylist() == expected
    assert content_hashes(texts[2:5]).to_pylist() == expected[2:5]
    assert content_hashes(texts[:0]).to_pylist() == []


def test_doc_ids_are_hashed_tuples() -> None:
    hashes = content_hashes(pa.array(TEXTS))
    offsets, lengths = np.arange(6) * 10, np.array([0, 1, 2, 3, 1 << 40, 5])
    ids = doc_ids(
        hashes[1:], source="s", source_file="é.jsonl", offsets=offsets[1:], lengths=lengths[1:]
    )
    assert ids.to_pylist() == [
        document_hash(
            hashed_tuple("s", "é.jsonl", int(offsets[i]), int(lengths[i]), hashes[i].as_py())
        )
        for i in range(1, 6)
    ]


def test_golden_identities() -> None:
    batch = batch_from_columns(["a"], source="s", source_file="f", offsets=[1], lengths=[2])
    assert batch.column("content_hash")[0].as_py().hex() == "27c35e6e9373877f29e562464e46497e"
    assert batch.column("doc_id")[0].as_py().hex() == "70fa7fa99d03a2ede3b8ea33cd4b3a74"


def test_a_batch_has_the_schema_whatever_is_given() -> None:
    batch = batch_from_columns(
        pa.array(["a", "b"]),
        source="s",
        source_file="f",
        offsets=[0, 1],
        lengths=[1, 1],
        record_id=["1", None],
        url=pa.array(["u", None]),
        licence="MIT",
        crawled_at=pa.array([1, None], pa.timestamp("s", tz="UTC")),
        media_type=["text/html", None],
    )
    batch.validate(full=True)
    assert batch.schema == DOCUMENTS
    assert batch.column("licence").to_pylist() == ["MIT", "MIT"]
    assert batch.column("media_type").to_pylist() == ["text/html", None]
    assert batch.column("language").null_count == 2
    empty = batch_from_columns([], source="s", source_file="f", offsets=[], lengths=[])
    assert (empty.num_rows, empty.schema) == (0, DOCUMENTS)
