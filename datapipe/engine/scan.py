"""The first pass over a unit: read, the stages before the first global one, hashes.

Leaves in the work folder the documents that are still in, the keys that deduplication compares, the
rows that went out and why, and the records that could not be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from datapipe.clean import Stage, document_stage
from datapipe.dataset.tables import DROPPED, QUARANTINE
from datapipe.dedup import comparison_keys
from datapipe.documents import DOCUMENTS
from datapipe.engine.units import Unit
from datapipe.engine.work import Piece, Work
from datapipe.errors import ResumableError
from datapipe.read import FileRange, read_range
from datapipe.recipe import Fields

__all__ = ["BAD", "DOCUMENTS_NAME", "KEYS", "LEFT", "ScanTask", "apply_stages", "scan_unit"]

DOCUMENTS_NAME = "documents.arrow"
KEYS = "keys.arrow"
LEFT = "left.arrow"
BAD = "bad.arrow"

_KEY_COLUMNS = ["content_hash", "source_file", "source_offset", "source_length", "doc_id"]


@dataclass(frozen=True, slots=True)
class ScanTask:
    """One unit to read, and all that its result depends on."""

    work: Work
    key: str
    unit: Unit
    fields: Fields
    licence: str | None
    stages: tuple[tuple[str, Mapping[str, Any]], ...]
    compare: bool
    """Whether a deduplication follows, so that keys are needed."""

    @property
    def piece(self) -> Piece:
        """Where the result lies."""
        return Piece("scan", self.key)


@dataclass(slots=True)
class _Scan:
    """What one unit gave so far."""

    documents: list[pa.RecordBatch] = field(default_factory=list)
    left: list[pa.Table] = field(default_factory=list)
    bad: list[pa.Table] = field(default_factory=list)
    files: dict[str, dict[str, int | bool]] = field(default_factory=dict)


def scan_unit(task: ScanTask) -> dict[str, Any]:
    """Returns the unit's record, doing the work unless it is finished already."""
    record = task.work.record(task.piece)
    return record if record is not None else _scan(task)


def _scan(task: ScanTask) -> dict[str, Any]:
    scan = _Scan()
    stages = [document_stage(name, options) for name, options in task.stages]
    before = _stamps(task.unit)
    for piece in task.unit.ranges:
        _scan_range(task, piece, stages, scan)
    _check_unchanged(before, _stamps(task.unit))
    return _store(task, scan)


def _scan_range(task: ScanTask, piece: FileRange, stages: Sequence[Stage], scan: _Scan) -> None:
    seen = scan.files.setdefault(
        piece.file.relative, {"records": 0, "blank_lines": 0, "truncated": False}
    )
    results = read_range(piece, source=task.unit.source, fields=task.fields, licence=task.licence)
    for result in results:
        seen["blank_lines"] += result.blank_lines
        seen["truncated"] |= result.truncated
        seen["records"] += result.num_records
        if result.quarantined.num_rows:
            scan.bad.append(result.quarantined)
        if result.batch is not None:
            scan.documents.extend(apply_stages(result.batch, stages, scan.left))


def apply_stages(
    batch: pa.RecordBatch, stages: Sequence[Stage], left: list[pa.Table]
) -> Iterator[pa.RecordBatch]:
    """Yields the batch behind the stages if any is left; appends what went out to `left`."""
    for stage in stages:
        batch, dropped = stage.apply(batch)
        if dropped.num_rows:
            left.append(dropped)
    if batch.num_rows:
        yield batch


def _store(task: ScanTask, scan: _Scan) -> dict[str, Any]:
    documents = plain(pa.Table.from_batches(scan.documents, schema=DOCUMENTS))
    left = plain(concat(scan.left, DROPPED))
    bad = plain(concat(scan.bad, QUARANTINE))
    task.work.put_table(task.piece, DOCUMENTS_NAME, documents)
    task.work.put_rows(task.piece, LEFT, left)
    task.work.put_rows(task.piece, BAD, bad)
    if task.compare:
        keys = documents.select(_KEY_COLUMNS).append_column("key", _compared(documents))
        task.work.put_table(task.piece, KEYS, keys)
    record = {
        "files": scan.files,
        "rows": documents.num_rows,
        "dropped": count_rules(left),
        "quarantined": count_values(bad["error"]),
    }
    task.work.finish(task.piece, record)
    return record


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


def _stamps(unit: Unit) -> dict[str, tuple[int, int]]:
    paths = sorted({piece.file.path for piece in unit.ranges})
    stats = {path: Path(path).stat() for path in paths}
    return {path: (found.st_size, found.st_mtime_ns) for path, found in stats.items()}


def _check_unchanged(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]
) -> None:
    changed = [path for path, stamp in before.items() if after[path] != stamp]
    if changed:
        raise ResumableError(
            f"{changed[0]} changed while it was read; what was read of it is not used. "
            "Run the same command again when nothing writes to it"
        )
