"""Small real datasets, written and committed as a build does, from token arrays."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.dataset import (
    Dataset,
    Repository,
    ShardRecord,
    SourceCounts,
    TokenizerRecord,
    VersionDraft,
    document_hash,
    hashed_tuple,
    token_dtype,
)
from datapipe.dataset.tables import DOCMAP
from datapipe.testing.datasets import commit_small

__all__ = ["make_dataset", "read_shard"]

Documents = Sequence[npt.ArrayLike]
"""Token ids of each document, its closing EOS among them."""


def make_dataset(
    root: str | Path,
    sources: Mapping[str, Sequence[Documents]],
    *,
    max_id: int = 999,
    eos_id: int = 0,
    tokenizer_files: Mapping[str, bytes] | None = None,
    vocabulary: str = "ab" * 32,
) -> Dataset:
    """Builds the next version of the dataset at `root`; the first, or one that is appended to.

    Args:
        root: folder of the dataset.
        sources: source -> shards -> documents -> token ids. Documents get record ids
            `<source>-<shard>-<document>` and the source file `<source>.jsonl`.
        max_id: largest id of the tokenizer: 65,536 or more makes a dataset of uint32.
        eos_id: what closes documents.
        tokenizer_files: files of a real tokenizer, for tests that decode.
        vocabulary: digest that stands for the tokenizer.

    Returns:
        The version committed.
    """
    repository = Repository(str(root))
    repository.create()
    parent = repository.latest()
    first = {s.name: s.num_shards for s in parent.sources} if parent else {}
    records = [
        _write(repository, source, first.get(source, 0) + number, documents, max_id)
        for source, shards in sources.items()
        for number, documents in enumerate(shards)
    ]
    draft = VersionDraft(
        operation="build" if parent is None else "append",
        parent=parent,
        recipe={"name": "test"},
        shards=records,
        counts=[_counts(source, records) for source in sources],
        tokenizer=TokenizerRecord(
            files=tokenizer_files or {"tokenizer.json": b"{}"},
            vocabulary=vocabulary,
            canary="cd" * 32,
            vocab_size=max_id + 1,
            max_id=max_id,
            eos_id=eos_id,
            backend="test",
        ),
        environment={},
    )
    commit_small(repository, draft, transaction=uuid.uuid4().hex)
    return repository.open()


def read_shard(dataset: Dataset, source: str, number: int) -> npt.NDArray[np.int64]:
    """Returns the token ids of a whole shard, read without any part of the loader."""
    with dataset.open_shard(source, number) as view:
        data = bytearray(view.size)
        view.read_into(memoryview(data), 0)
    return np.frombuffer(data, dtype=dataset.token_dtype).astype(np.int64)


def _write(
    repository: Repository, source: str, number: int, documents: Documents, max_id: int
) -> ShardRecord:
    arrays = [np.asarray(document, dtype=token_dtype(max_id)) for document in documents]
    return repository.write_shard(
        np.concatenate(arrays),
        source=source,
        number=number,
        docmap=_docmap(source, number, [array.size for array in arrays]),
        text_bytes=sum(array.size for array in arrays),
    )


def _docmap(source: str, number: int, sizes: list[int]) -> pa.Table:
    names = [f"{source}-{number}-{index}" for index in range(len(sizes))]
    hashes = [document_hash(name.encode()) for name in names]
    columns = {
        "doc_id": [document_hash(hashed_tuple(source, name)) for name in names],
        "content_hash": hashes,
        "token_start": np.cumsum([0, *sizes[:-1]]),
        "num_tokens": sizes,
        "text_bytes": sizes,
        "source_file": [f"{source}.jsonl"] * len(sizes),
        "source_offset": [100 * index for index in range(len(sizes))],
        "source_length": [100] * len(sizes),
        "record_id": names,
    }
    arrays = [
        pa.array(columns[field.name], type=field.type)
        if field.name in columns
        else pa.nulls(len(sizes), type=field.type)
        for field in DOCMAP
    ]
    return pa.Table.from_arrays(arrays, schema=DOCMAP)


def _counts(source: str, records: Sequence[ShardRecord]) -> SourceCounts:
    mine = [record for record in records if record.source == source]
    return SourceCounts(
        source=source,
        kept=sum(record.num_documents for record in mine),
        text_bytes=sum(record.text_bytes for record in mine),
    )
