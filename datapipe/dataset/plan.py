"""Planning a commit, without writing: a draft becomes table bytes, digests and a manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from datapipe.dataset.conservation import sum_counts
from datapipe.dataset.digests import (
    DigestColumn,
    content_digest,
    logical_digest,
    order_digest,
)
from datapipe.dataset.draft import TokenizerRecord, VersionDraft
from datapipe.dataset.hashing import canonical_json, sha256_hex
from datapipe.dataset.index.complete import NewIndexFile
from datapipe.dataset.layout import FORMAT_VERSION, TABLE_KINDS
from datapipe.dataset.manifest import (
    ConservationRow,
    Digests,
    Manifest,
    SourceSummary,
    TableFile,
    TokenizerInfo,
    Totals,
)
from datapipe.dataset.parquet import DEFAULT_GROUP_ROWS, GROUP_ROWS, conform, encode_table
from datapipe.dataset.quarantine import encode_quarantine
from datapipe.dataset.reader import Dataset
from datapipe.dataset.rows import rows_sha256
from datapipe.dataset.shards import ShardRecord, token_dtype
from datapipe.dataset.signals import with_signals
from datapipe.dataset.tables import DETAILS, SHARDS
from tiering.checksums import Buffer

__all__ = ["NewFile", "VersionPlan", "group_shards", "plan_version", "sum_totals", "tokenizer_info"]

MOST_FILES = 16
"""Files of `shards` and `details`; an append to so many merges them into one."""

_ROW_ORDER = {
    "shards": ["source", "number"],
    "details": ["source", "number"],
    "inputs": ["source", "file"],
    "dropped": ["source", "source_file", "source_offset", "source_length"],
    "quarantine": ["source", "source_file", "source_offset", "source_length"],
    "signatures": ["key", "doc_id"],
    "signals": ["doc_id"],
}
"""Rows are sorted by these, names by their UTF-8 bytes, so no arrival order shows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewFile:
    """A table file that the commit adds."""

    path: str
    data: Buffer
    entry: TableFile


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionPlan:
    """Everything that a commit will write but the log entry."""

    manifest: Manifest
    files: tuple[NewFile, ...]
    index_files: tuple[NewIndexFile, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _SourceColumns:
    """What the digests of a source are taken over, by shard number."""

    name: str
    num_tokens: np.ndarray[tuple[int], np.dtype[np.int64]]
    num_documents: int
    text_bytes: int
    raw: DigestColumn
    birth: DigestColumn
    docmaps: DigestColumn


def plan_version(draft: VersionDraft) -> VersionPlan:
    """Returns the manifest and the new table files of a draft whose numbers were checked.

    Raises:
        ValueError: a table lacks columns or has nulls where none may be.
    """
    base = draft.base
    before = base.manifest.conservation if base else ()
    conservation = sum_counts(before, draft.counts)
    shards = group_shards(draft.shards)
    sources = [
        _source_columns(base, row.source, shards.get(row.source, [])) for row in conservation
    ]
    added = _tables(draft)
    merged = _merged_tables(base, added)
    new = {name: _new_file(name, table) for name, table in {**added, **merged}.items()}
    tables = _all_files(base, new, merged=merged)
    content = content_digest((s.name, s.raw) for s in sources)
    logical = logical_digest(
        content=content,
        docmaps=((s.name, s.docmaps) for s in sources),
        dropped=_row_digests(tables["dropped"]),
        quarantine=_row_digests(tables["quarantine"]),
        conservation=conservation,
    )
    recipe = dict(draft.recipe)
    summaries = tuple(_summary(columns) for columns in sources)
    manifest = Manifest(
        format=FORMAT_VERSION,
        operation=draft.operation,
        parents=(draft.parent.manifest_sha256,) if draft.parent else (),
        recipe=recipe,
        recipe_sha256=sha256_hex(canonical_json(recipe)),
        environment=dict(draft.environment),
        tokenizer=tokenizer_info(draft.tokenizer),
        token_dtype="uint16" if token_dtype(draft.tokenizer.max_id).itemsize == 2 else "uint32",
        codec="raw",
        licences={**(base.manifest.licences if base else {}), **draft.licences},
        sources=summaries,
        conservation=conservation,
        totals=sum_totals(summaries, conservation),
        digests=Digests(content=content, logical=logical),
        tables=tables,
    )
    return VersionPlan(manifest=manifest, files=tuple(file for file in new.values() if file))


def sum_totals(sources: Sequence[SourceSummary], conservation: Sequence[ConservationRow]) -> Totals:
    """Returns the sums over the sources."""
    return Totals(
        documents_in=sum(row.documents_in for row in conservation),
        kept=sum(row.kept for row in conservation),
        dropped=sum(sum(row.dropped.values()) for row in conservation),
        quarantined=sum(sum(row.quarantined.values()) for row in conservation),
        num_shards=sum(source.num_shards for source in sources),
        num_tokens=sum(source.num_tokens for source in sources),
        text_bytes=sum(source.text_bytes for source in sources),
        bytes_in=sum(row.bytes_in for row in conservation),
    )


# -- sources


def group_shards(shards: Sequence[ShardRecord]) -> dict[str, list[ShardRecord]]:
    """Returns the shards of each source, ascending by number."""
    groups: dict[str, list[ShardRecord]] = {}
    for shard in sorted(shards, key=lambda shard: shard.number):
        groups.setdefault(shard.source, []).append(shard)
    return groups


def _source_columns(
    base: Dataset | None, name: str, shards: Sequence[ShardRecord]
) -> _SourceColumns:
    new = _SourceColumns(
        name=name,
        num_tokens=np.array([s.num_tokens for s in shards], dtype=np.int64),
        num_documents=sum(s.num_documents for s in shards),
        text_bytes=sum(s.text_bytes for s in shards),
        raw=_digest_column([s.raw_sha256 for s in shards]),
        birth=_digest_column([s.raw_sha256 for s in shards]),
        docmaps=_digest_column([s.docmap_logical_sha256 for s in shards]),
    )
    if base is None or name not in {source.name for source in base.sources}:
        return new
    old, details = base.shards(name), base.details(name)
    return _SourceColumns(
        name=name,
        num_tokens=np.concatenate([old.num_tokens, new.num_tokens]),
        num_documents=int(old.num_documents.sum()) + new.num_documents,
        text_bytes=int(details.text_bytes.sum()) + new.text_bytes,
        raw=np.concatenate([old.raw_sha256.raw, new.raw]),
        birth=np.concatenate([details.birth_sha256.raw, new.birth]),
        docmaps=np.concatenate([details.docmap_logical_sha256.raw, new.docmaps]),
    )


def _summary(columns: _SourceColumns) -> SourceSummary:
    return SourceSummary(
        name=columns.name,
        order_digest=order_digest(columns.num_tokens, columns.birth),
        num_shards=len(columns.num_tokens),
        num_documents=columns.num_documents,
        num_tokens=int(columns.num_tokens.sum()),
        text_bytes=columns.text_bytes,
    )


def _digest_column(digests: list[str]) -> DigestColumn:
    data = bytes.fromhex("".join(digests))
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, hashlib.sha256().digest_size)


def tokenizer_info(record: TokenizerRecord) -> TokenizerInfo:
    """Returns what a manifest says of a tokenizer."""
    return TokenizerInfo(
        sha256=record.sha256,
        files=record.file_digests,
        vocabulary=record.vocabulary,
        canary=record.canary,
        vocab_size=record.vocab_size,
        max_id=record.max_id,
        eos_id=record.eos_id,
        backend=record.backend,
    )


# -- tables


def _tables(draft: VersionDraft) -> dict[str, pa.Table | None]:
    return {
        "shards": _shard_rows(draft.shards),
        "details": _detail_rows(draft.shards),
        "inputs": draft.inputs,
        "dropped": draft.dropped,
        "quarantine": draft.quarantine,
        "signatures": draft.signatures,
        "signals": draft.signals,
    }


def _new_file(name: str, table: pa.Table | None) -> NewFile | None:
    if table is None:
        return None
    kind = TABLE_KINDS[name]
    schema = with_signals(kind.schema, table.schema) if kind.has_signals else kind.schema
    plain = conform(table, schema)
    plain = plain.sort_by([(column, "ascending") for column in _ROW_ORDER[name]])
    plain = conform(plain, schema)
    data = _encode(name, plain)
    sha256 = sha256_hex(data)
    logical = rows_sha256(plain) if kind.logical else None
    size = memoryview(data).nbytes
    entry = TableFile(sha256=sha256, rows=plain.num_rows, bytes=size, logical_sha256=logical)
    return NewFile(path=kind.path(sha256), data=data, entry=entry)


def _encode(name: str, plain: pa.Table) -> Buffer:
    if name == "quarantine":
        return encode_quarantine(plain)
    return encode_table(plain, group_rows=GROUP_ROWS.get(name, DEFAULT_GROUP_ROWS))


def _merged_tables(
    base: Dataset | None, added: Mapping[str, pa.Table | None]
) -> dict[str, pa.Table]:
    """Returns the tables of shards whole, once their files have become too many to read."""
    if base is None or len(base.manifest.files("shards")) < MOST_FILES:
        return {}
    return {
        name: pa.concat_tables([conform(base.whole_table(name), schema), conform(table, schema)])
        for name, schema in (("shards", SHARDS), ("details", DETAILS))
        if (table := added[name]) is not None and table.num_rows
    }


def _all_files(
    base: Dataset | None, new: dict[str, NewFile | None], *, merged: Collection[str]
) -> dict[str, tuple[TableFile, ...]]:
    """Returns the base's files and behind them the new ones; files without rows are left out."""
    tables = {}
    for name, file in new.items():
        old = base.manifest.files(name) if base and name not in merged else ()
        added = (file.entry,) if file is not None and file.entry.rows else ()
        was_there = base is not None and name in base.manifest.tables
        if not TABLE_KINDS[name].optional or file is not None or was_there:
            tables[name] = old + added
    return tables


def _row_digests(files: Sequence[TableFile]) -> list[str]:
    return [file.logical_sha256 or "" for file in files]


def _shard_rows(shards: Sequence[ShardRecord]) -> pa.Table:
    columns: dict[str, list[Any]] = {
        "source": [s.source for s in shards],
        "number": [s.number for s in shards],
        "num_tokens": [s.num_tokens for s in shards],
        "num_documents": [s.num_documents for s in shards],
        "raw_sha256": [bytes.fromhex(s.raw_sha256) for s in shards],
        "stored_sha256": [bytes.fromhex(s.stored_sha256) for s in shards],
        "stored_bytes": [s.stored_bytes for s in shards],
        "docmap_sha256": [bytes.fromhex(s.docmap_sha256) for s in shards],
    }
    return _table(columns, SHARDS)


def _detail_rows(shards: Sequence[ShardRecord]) -> pa.Table:
    columns: dict[str, list[Any]] = {
        "source": [s.source for s in shards],
        "number": [s.number for s in shards],
        "birth_sha256": [bytes.fromhex(s.raw_sha256) for s in shards],
        "docmap_logical_sha256": [bytes.fromhex(s.docmap_logical_sha256) for s in shards],
        "text_bytes": [s.text_bytes for s in shards],
        "block_checksums": [list(s.block_checksums) for s in shards],
    }
    return _table(columns, DETAILS)


def _table(columns: Mapping[str, list[Any]], schema: pa.Schema) -> pa.Table:
    arrays = []
    for field in schema:
        kind = pa.string() if pa.types.is_dictionary(field.type) else field.type
        arrays.append(pa.array(columns[field.name], kind))
    return pa.table(arrays, names=schema.names)
