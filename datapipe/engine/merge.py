"""The tables of a version, put together from its units in an order that no unit decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from datapipe.dataset import canonical_json
from datapipe.dataset.tables import DROPPED, INPUTS, QUARANTINE, SIGNATURES
from datapipe.engine.encode_unit import ENCODED
from datapipe.engine.measured import join_measured
from datapipe.engine.passes import Scanned
from datapipe.engine.scan import BAD, KEYS, LEFT, MEASURED, concat
from datapipe.engine.sources import SourceInputs
from datapipe.engine.work import Piece, Work

__all__ = [
    "Encoded",
    "dropped_table",
    "inputs_table",
    "quarantine_table",
    "signals_table",
    "signatures_table",
]

Encoded: TypeAlias = tuple[Piece, Mapping[str, Any]]
"""An encoded unit's piece and its record."""

_ORIGIN_ORDER = ["source", "source_file", "source_offset", "source_length"]


def dropped_table(
    work: Work, scanned: Iterable[Scanned], removed: Sequence[pa.Table], encoded: Iterable[Encoded]
) -> pa.Table:
    """Returns every dropped document of the build: by stages before, by and after deduplication."""
    tables = [work.get_table(item.piece, LEFT) for item in scanned if item.record["dropped"]]
    tables += [work.get_table(piece, LEFT) for piece, record in encoded if record["dropped"]]
    return _ordered(concat([*tables, *removed], DROPPED), DROPPED)


def quarantine_table(work: Work, scanned: Iterable[Scanned]) -> pa.Table:
    """Returns every record of the build that could not be read."""
    tables = [work.get_table(item.piece, BAD) for item in scanned if item.record["quarantined"]]
    return _ordered(concat(tables, QUARANTINE), QUARANTINE)


def _ordered(table: pa.Table, schema: pa.Schema) -> pa.Table:
    table = table.sort_by([(name, "ascending") for name in _ORIGIN_ORDER])
    return table.select(schema.names).cast(schema)


def signatures_table(
    work: Work, scanned: Sequence[Scanned], encoded: Sequence[Encoded]
) -> pa.Table:
    """Returns what deduplication compared of every document that was kept, ascending by key."""
    tables = [
        _kept_keys(work, item.piece, piece)
        for item, (piece, _) in zip(scanned, encoded, strict=True)
    ]
    table = pa.concat_tables(tables) if tables else SIGNATURES.empty_table()
    return table.sort_by([("key", "ascending"), ("doc_id", "ascending")]).cast(SIGNATURES)


def _kept_keys(work: Work, scan: Piece, encode: Piece) -> pa.Table:
    keys = work.get_table(scan, KEYS).select(["key", "doc_id"])
    kept = work.get_table(encode, ENCODED).select(["doc_id"])
    return keys.join(kept, keys="doc_id", join_type="left semi").select(["key", "doc_id"])


def signals_table(
    work: Work, scanned: Iterable[Scanned], encoded: Iterable[Encoded]
) -> pa.Table | None:
    """Returns what stages before and behind deduplication measured, a row a document; or None."""
    before = [work.get_table(item.piece, MEASURED) for item in scanned if item.record["measured"]]
    behind = [work.get_table(piece, MEASURED) for piece, record in encoded if record["measured"]]
    if not behind:
        return join_measured(before) if before else None
    if not before:
        return join_measured(behind)
    return join_measured(before).join(
        join_measured(behind), keys=["doc_id", "source"], join_type="full outer"
    )


def inputs_table(
    sources: Sequence[SourceInputs], digests: Mapping[str, str], scanned: Iterable[Scanned]
) -> pa.Table:
    """Returns one row an input file: what it was and what it held."""
    seen = _file_counts(scanned)
    rows: list[dict[str, Any]] = []
    for source in sources:
        fields = canonical_json(source.fields.model_dump()).decode()
        for file, format_ in source.files:
            counts = seen.get((source.source, file.relative), {})
            rows.append(
                {
                    "source": source.source,
                    "file": file.relative,
                    "format": str(format_),
                    "size_bytes": file.size_bytes,
                    "sha256": bytes.fromhex(digests[file.path]),
                    "num_records": counts.get("records", 0),
                    "num_blank_lines": counts.get("blank_lines", 0),
                    "truncated": bool(counts.get("truncated", False)),
                    "fields": fields,
                    "licence": source.licence,
                }
            )
    rows.sort(key=lambda row: (row["source"], row["file"]))
    return pa.Table.from_pylist(rows, schema=INPUTS)


def _file_counts(scanned: Iterable[Scanned]) -> dict[tuple[str, str], dict[str, int]]:
    seen: dict[tuple[str, str], dict[str, int]] = {}
    for item in scanned:
        for file, counts in item.record["files"].items():
            total = seen.setdefault((item.unit.source, file), {})
            for name, count in counts.items():
                total[name] = total.get(name, 0) + int(count)
    return seen
