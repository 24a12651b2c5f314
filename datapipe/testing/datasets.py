"""Small datasets that are complete: every document has an origin, an id and an end.

A source is given as its shards, a shard as the lengths of its documents in tokens, the closing
end-of-document token included: `{"web": [[3, 4], [7]]}` has two shards with 7 tokens each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from datapipe.dataset import (
    Committed,
    Dataset,
    Repository,
    ShardRecord,
    SourceCounts,
    TokenizerRecord,
    Transaction,
    VersionDraft,
    begin_transaction,
    commit_version,
    document_hash,
    hashed_tuple,
    sha256_hex,
    token_dtype,
)
from datapipe.dataset.shards import Tokens
from datapipe.dataset.tables import DROPPED, QUARANTINE, SIGNATURES

__all__ = [
    "commit_draft",
    "commit_small",
    "small_docmap",
    "small_draft",
    "small_quarantine",
    "small_tokenizer",
    "small_tokens",
]

Lengths = Sequence[int]
Sources = Mapping[str, Sequence[Lengths]]

EOS_ID = 0

_FIELDS = '{"date":"date","id":"id","language":"language","text":"text","url":"url"}'


def small_tokenizer(*, max_id: int = 999, vocabulary: str = "vocabulary") -> TokenizerRecord:
    """Returns a record of a tokenizer that never was; end of document is token 0."""
    return TokenizerRecord(
        files={"tokenizer.json": b'{"version": "1.0"}', "tokenizer_config.json": b"{}"},
        vocabulary=sha256_hex(vocabulary.encode()),
        canary=sha256_hex(b"canary"),
        vocab_size=max_id + 1,
        max_id=max_id,
        eos_id=EOS_ID,
        backend="none",
    )


def small_tokens(lengths: Lengths, *, max_id: int = 999, seed: int = 0) -> Tokens:
    """Returns random ids of a shard, each document closed by token 0."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, max_id, size=sum(lengths), endpoint=True)
    tokens[np.cumsum(lengths, dtype=np.int64) - 1] = EOS_ID
    return tokens.astype(token_dtype(max_id))


def small_docmap(
    lengths: Lengths, *, source: str, file: str = "part.jsonl", first: int = 0
) -> pa.Table:
    """Returns the docmap of a shard whose documents are records of a file, from `first` on."""
    numbers = range(first, first + len(lengths))
    hashes = [document_hash(f"{source}/{file}/{n}".encode()) for n in numbers]
    ids = [_doc_id(source, file, n, h) for n, h in zip(numbers, hashes, strict=True)]
    ends = np.cumsum(lengths, dtype=np.int64)
    count = len(lengths)
    return pa.table(
        {
            "doc_id": pa.array(ids, pa.binary(16)),
            "content_hash": pa.array(hashes, pa.binary(16)),
            "token_start": ends - np.array(lengths, dtype=np.int64),
            "num_tokens": np.array(lengths, dtype=np.int64),
            "text_bytes": pa.array([10] * count, pa.int64()),
            "source_file": _names([file] * count),
            "source_offset": pa.array([n * 100 for n in numbers], pa.int64()),
            "source_length": pa.array([100] * count, pa.int64()),
            "record_id": pa.array([f"r{n}" if n % 2 else None for n in numbers], pa.string()),
            "url_hash": pa.array([_url_hash(n) if n % 3 else None for n in numbers], pa.uint64()),
            "domain": _names(["example.org" if n % 3 else None for n in numbers]),
            "licence": _names(["CC0-1.0"] * count),
            "language": _names([None] * count),
            "crawled_at": pa.array([1_700_000_000] * count, pa.timestamp("s", tz="UTC")),
        }
    )


def small_quarantine(rows: Sequence[tuple[str, str, bytes]]) -> pa.Table:
    """Returns quarantined records, each given as source, error and raw bytes."""
    return pa.table(
        {
            "source": _names([source for source, _, _ in rows]),
            "source_file": _names(["bad.jsonl"] * len(rows)),
            "source_offset": pa.array(range(len(rows)), pa.int64()),
            "source_length": pa.array([len(raw) for _, _, raw in rows], pa.int64()),
            "error": _names([error for _, error, _ in rows]),
            "detail": pa.array([f"not good: {error}" for _, error, _ in rows], pa.string()),
            "raw": pa.array([raw for _, _, raw in rows], pa.binary()),
        },
        schema=QUARANTINE,
    )


def small_draft(
    repo: Repository,
    sources: Sources,
    *,
    parent: Dataset | None = None,
    operation: Literal["build", "append"] = "build",
    max_id: int = 999,
    seed: int = 0,
    dropped: int = 0,
    quarantined: int = 0,
    recipe: Mapping[str, Any] | None = None,
    file: str | None = None,
) -> VersionDraft:
    """Writes the shards of a version and returns its draft.

    Args:
        repo: where.
        sources: document lengths by source and shard.
        parent: the version that it follows.
        operation: an append numbers the shards on from the parent's.
        max_id: the tokenizer's largest id.
        seed: of the token ids.
        dropped: documents dropped as duplicates, in the first source.
        quarantined: records quarantined, in the first source.
        recipe: default: one that appends the end-of-document token.
        file: what the documents come from; default: one named after the parent's version.
    """
    base = parent if operation == "append" else None
    file = file or f"part{base.version if base else 0}.jsonl"
    written = {
        name: _write_shards(repo, name, shards, base=base, file=file, max_id=max_id, seed=seed)
        for name, shards in sources.items()
    }
    first = next(iter(sources))
    return VersionDraft(
        operation=operation,
        parent=parent,
        recipe=recipe or {"name": "small", "tokenize": {"append_eos": True}},
        shards=[shard for shards in written.values() for shard in shards],
        counts=[
            _counts(name, shards, dropped * (name == first), quarantined * (name == first))
            for name, shards in written.items()
        ],
        tokenizer=small_tokenizer(max_id=max_id),
        environment={"python": "3"},
        licences={name: "CC0-1.0" for name in sources},
        dropped=_dropped(first, dropped),
        quarantine=small_quarantine([(first, "invalid_json", b"{\xff")] * quarantined),
        inputs=_inputs(list(sources), file),
        signatures=_signatures(sources, file),
    )


def commit_small(
    repo: Repository, draft: VersionDraft, *, author: str = "tester", transaction: str = "t"
) -> Committed:
    """Commits a draft at second 1,000 of the epoch, in a transaction of its own."""
    base_version = draft.parent.version if draft.parent else 0
    with begin_transaction(
        repo, base_version=base_version, author=author, time_seconds=1000.0, id=transaction
    ) as running:
        return commit_draft(repo, draft, author=author, transaction=running)


def commit_draft(
    repo: Repository, draft: VersionDraft, *, author: str, transaction: Transaction
) -> Committed:
    """Commits a draft at second 1,000 of the epoch, in a transaction that runs."""
    return commit_version(
        repo,
        draft,
        author=author,
        reason="a test",
        input_roots=[],
        time_seconds=1000.0,
        transaction=transaction,
    )


def _write_shards(
    repo: Repository,
    source: str,
    shards: Sequence[Lengths],
    *,
    base: Dataset | None,
    file: str,
    max_id: int,
    seed: int,
) -> list[ShardRecord]:
    known = {s.name: s.num_shards for s in base.sources} if base else {}
    written, first = [], 0
    for index, lengths in enumerate(shards):
        written.append(
            repo.write_shard(
                small_tokens(lengths, max_id=max_id, seed=seed + index),
                source=source,
                number=known.get(source, 0) + index,
                docmap=small_docmap(lengths, source=source, file=file, first=first),
                text_bytes=10 * len(lengths),
            )
        )
        first += len(lengths)
    return written


def _counts(
    source: str, shards: Sequence[ShardRecord], dropped: int, quarantined: int
) -> SourceCounts:
    return SourceCounts(
        source=source,
        kept=sum(shard.num_documents for shard in shards),
        text_bytes=sum(shard.text_bytes for shard in shards),
        bytes_in=1000,
        dropped={"dedup_exact.duplicate": dropped} if dropped else {},
        quarantined={"invalid_json": quarantined} if quarantined else {},
    )


def _dropped(source: str, count: int) -> pa.Table:
    file = "duplicates.jsonl"
    hashes = [document_hash(b"%d" % n) for n in range(count)]
    columns: dict[str, list[Any]] = {
        "doc_id": [_doc_id(source, file, n, h) for n, h in enumerate(hashes)],
        "content_hash": hashes,
        "source": [source] * count,
        "source_file": [file] * count,
        "source_offset": [n * 100 for n in range(count)],
        "source_length": [100] * count,
        "stage": ["dedup_exact"] * count,
        "rule": ["duplicate"] * count,
        "survivor": [bytes(16)] * count,
        "similarity": [1.0] * count,
    }
    return _table(columns, DROPPED, count)


def _inputs(sources: Sequence[str], file: str) -> pa.Table:
    digest = bytes.fromhex(sha256_hex(file.encode()))
    return pa.table(
        {
            "source": _names(sources),
            "file": pa.array([file] * len(sources), pa.string()),
            "format": _names(["jsonl"] * len(sources)),
            "size_bytes": pa.array([1000] * len(sources), pa.int64()),
            "sha256": pa.array([digest] * len(sources), pa.binary(32)),
            "num_records": pa.array([10] * len(sources), pa.int64()),
            "num_blank_lines": pa.array([0] * len(sources), pa.int64()),
            "truncated": pa.array([False] * len(sources)),
            "fields": _names([_FIELDS] * len(sources)),
            "licence": _names([None] * len(sources)),
        }
    )


def _signatures(sources: Sources, file: str) -> pa.Table:
    rows: list[tuple[bytes, bytes]] = []
    for name, shards in sources.items():
        docmap = small_docmap([n for lengths in shards for n in lengths], source=name, file=file)
        rows += zip(docmap["content_hash"].to_pylist(), docmap["doc_id"].to_pylist(), strict=True)
    columns = {"key": [key for key, _ in rows], "doc_id": [doc_id for _, doc_id in rows]}
    return _table(columns, SIGNATURES, len(rows))


def _table(columns: Mapping[str, Sequence[object]], schema: pa.Schema, count: int) -> pa.Table:
    arrays = []
    for field in schema:
        values = columns.get(field.name, [None] * count)
        is_name = pa.types.is_dictionary(field.type)
        arrays.append(_names(values) if is_name else pa.array(values, field.type))
    return pa.table(arrays, names=schema.names)


def _names(values: Sequence[object]) -> pa.Array:
    return pa.array(values, pa.string()).dictionary_encode()


def _doc_id(source: str, file: str, number: int, content: bytes) -> bytes:
    return document_hash(hashed_tuple(source, file, number * 100, 100, content))


def _url_hash(number: int) -> int:
    return int.from_bytes(document_hash(b"%d" % number)[:8], "little")
