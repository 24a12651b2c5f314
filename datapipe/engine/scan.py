"""The first pass over a unit: read, the stages before the first global one, hashes.

Leaves in the work folder, part by part, the documents that are still in, the keys that
deduplication compares, the rows that went out and why, and the records that could not be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from datapipe.dataset.tables import DROPPED, QUARANTINE
from datapipe.dedup import comparison_keys
from datapipe.documents import DOCUMENTS, Stage
from datapipe.engine.measured import Signals, join_measured
from datapipe.engine.stages import StageCall
from datapipe.engine.units import Unit
from datapipe.engine.work import Piece, Work
from datapipe.read import FileRange, ReadResult, read_range
from datapipe.recipe import Fields

__all__ = [
    "BAD",
    "DOCUMENTS_NAME",
    "KEYS",
    "LEFT",
    "MEASURED",
    "ScanTask",
    "apply_stages",
    "part_piece",
    "scan_unit",
]

DOCUMENTS_NAME = "documents.arrow"
KEYS = "keys.arrow"
LEFT = "left.arrow"
BAD = "bad.arrow"
MEASURED = "measured.arrow"

PART_BYTES = 16 << 20
"""Text and metadata of one part, about."""

_KEY_COLUMNS = ["content_hash", "source_file", "source_offset", "source_length", "doc_id"]


@dataclass(frozen=True, slots=True)
class ScanTask:
    """One unit to read, and all that its result depends on."""

    work: Work
    key: str
    unit: Unit
    fields: Fields
    licence: str | None
    stages: tuple[StageCall, ...]
    compare: bool
    """Whether a deduplication follows, so that keys are needed."""

    @property
    def piece(self) -> Piece:
        """Where the result lies."""
        return Piece("scan", self.key)


@dataclass(slots=True)
class _Part:
    """What a stretch of one unit gave."""

    number: int
    documents: list[pa.RecordBatch] = field(default_factory=list)
    left: list[pa.Table] = field(default_factory=list)
    measured: list[pa.Table] = field(default_factory=list)
    bad: list[pa.Table] = field(default_factory=list)
    files: dict[str, dict[str, int | bool]] = field(default_factory=dict)
    num_bytes: int = 0

    def counts(self, file: str) -> dict[str, int | bool]:
        """Returns the counts of one file, to be added to."""
        nothing: dict[str, int | bool] = {"records": 0, "blank_lines": 0, "truncated": False}
        return self.files.setdefault(file, nothing)


def part_piece(piece: Piece, number: int) -> Piece:
    """Returns where one part of a scanned unit lies."""
    return Piece(piece.stage, f"{piece.key}-{number:06d}")


def scan_unit(task: ScanTask) -> dict[str, Any]:
    """Returns the unit's record, doing the work unless it is finished already.

    Its "parts" are records of one part each, of about PART_BYTES of text: a compressed file is one
    unit whatever its size, and its parts bound the memory of this pass and are what the next one
    shares between workers.
    """
    record = task.work.record(task.piece)
    return record if record is not None else _scan(task)


def _scan(task: ScanTask) -> dict[str, Any]:
    trusted: dict[str, int] = {}
    parts = None
    while parts is None:
        parts = _scan_parts(task, trusted)
    record = {"parts": parts}
    task.work.finish(task.piece, record)
    return record


def _scan_parts(task: ScanTask, trusted: dict[str, int]) -> list[dict[str, Any]] | None:
    """Returns the records of the parts; None: read again, `trusted` names one more damaged file.

    A wrong bit of a compressed file shows at the end of its member or frame, when its records are
    taken already.
    """
    stages = [stage.make() for stage in task.stages]
    parts = []
    part = _Part(0)
    for piece in task.unit.ranges:
        for result in _read(task, piece, trusted):
            if result.trusted is not None and piece.file.relative not in trusted:
                trusted[piece.file.relative] = result.trusted
                return None
            _take(part, piece.file.relative, result, stages)
            if part.num_bytes >= PART_BYTES:
                parts.append(_store(task, part))
                part = _Part(part.number + 1)
    parts.append(_store(task, part))
    return parts


def _read(task: ScanTask, piece: FileRange, trusted: Mapping[str, int]) -> Iterator[ReadResult]:
    return read_range(
        piece,
        source=task.unit.source,
        fields=task.fields,
        licence=task.licence,
        trusted=trusted.get(piece.file.relative),
    )


def _take(part: _Part, file: str, result: ReadResult, stages: Sequence[Stage]) -> None:
    counts = part.counts(file)
    counts["blank_lines"] += result.blank_lines
    counts["truncated"] |= result.truncated
    counts["records"] += result.num_records
    if result.quarantined.num_rows:
        part.bad.append(result.quarantined)
        part.num_bytes += result.quarantined.nbytes
    if result.dropped.num_rows:
        part.left.append(result.dropped)
        part.num_bytes += result.dropped.nbytes
    if result.batch is not None:
        part.num_bytes += result.batch.nbytes
        part.documents.extend(apply_stages(result.batch, stages, part.left, part.measured))


def apply_stages(
    batch: pa.RecordBatch,
    stages: Sequence[Stage],
    left: list[pa.Table],
    measured: list[pa.Table],
) -> Iterator[pa.RecordBatch]:
    """Yields the batch behind the stages if any is left.

    Appends what went out to `left` and what was measured, as SIGNALS and more, to `measured`.
    """
    signals = Signals()
    for stage in stages:
        result = stage.apply(batch)
        signals.add(batch, result.signals)
        batch = result.batch
        if result.dropped.num_rows:
            left.append(result.dropped)
    measured.extend(signals.table())
    if batch.num_rows:
        yield batch


def _store(task: ScanTask, part: _Part) -> dict[str, Any]:
    piece = part_piece(task.piece, part.number)
    documents = plain(pa.Table.from_batches(part.documents, schema=DOCUMENTS))
    left = plain(concat(part.left, DROPPED))
    bad = plain(concat(part.bad, QUARANTINE))
    task.work.put_table(piece, DOCUMENTS_NAME, documents)
    task.work.put_rows(piece, LEFT, left)
    task.work.put_rows(piece, BAD, bad)
    if task.compare:
        keys = documents.select(_KEY_COLUMNS).append_column("key", _compared(documents))
        task.work.put_table(piece, KEYS, keys)
    if part.measured:
        task.work.put_table(piece, MEASURED, join_measured(part.measured))
    return {
        "files": part.files,
        "measured": bool(part.measured),
        "rows": documents.num_rows,
        "dropped": count_rules(left),
        "quarantined": count_values(bad["error"]),
    }


def _compared(documents: pa.Table) -> pa.ChunkedArray:
    chunks = [comparison_keys(batch) for batch in documents.to_batches()]
    return pa.chunked_array(chunks, type=pa.binary(16))


def plain(table: pa.Table) -> pa.Table:
    """Returns the table with dictionary columns as plain strings: batches then join freely."""
    fields = [
        pa.field(
            item.name, item.type.value_type if pa.types.is_dictionary(item.type) else item.type
        )
        for item in table.schema
    ]
    return table.cast(pa.schema(fields))


def concat(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Returns the tables one behind another; no tables give no rows."""
    if not tables:
        return schema.empty_table()
    return pa.concat_tables([plain(table) for table in tables])


def count_values(column: pa.ChunkedArray) -> dict[str, int]:
    """Returns how often each value occurs, by value."""
    return dict(sorted(Counter(column.to_pylist()).items()))


def count_rules(left: pa.Table) -> dict[str, int]:
    """Returns how many documents each "stage.rule" removed."""
    pairs = zip(left["stage"].to_pylist(), left["rule"].to_pylist(), strict=True)
    return dict(sorted(Counter(f"{stage}.{rule}" for stage, rule in pairs).items()))
