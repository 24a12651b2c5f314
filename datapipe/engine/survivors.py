"""Documents that are in already: exact duplicates over all units, and repeated records.

One row of about 100 bytes a document is held in memory here; text never is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dataset.tables import DROPPED
from datapipe.dedup import choose_survivors, key_words, rank_columns
from datapipe.documents import dropped_rows
from datapipe.engine.scan import DOCUMENTS_NAME, KEYS, concat, plain
from datapipe.engine.work import Piece, Work

__all__ = ["Removal", "ScannedUnit", "remove_duplicates", "remove_known"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ScannedUnit:
    """A unit after its scan."""

    source: str
    piece: Piece
    rows: int


@dataclass(frozen=True, slots=True)
class Removal:
    """What is taken out of one unit."""

    rows: Bools
    """[documents of the unit] True where removed."""
    left: pa.Table
    """Their rows of the dropped table."""

    @property
    def bits(self) -> bytes:
        """One bit a document, 1 where removed; empty when none is."""
        return np.packbits(self.rows).tobytes() if self.rows.any() else b""

    def joined(self, other: Removal) -> Removal:
        """Returns both removals as one."""
        return Removal(self.rows | other.rows, concat([self.left, other.left], DROPPED))


def remove_known(
    work: Work, units: Sequence[ScannedUnit], doc_ids: pa.Array | None
) -> list[Removal]:
    """Returns for every unit which of its documents have one of `doc_ids`."""
    return [_known(work, unit, doc_ids) for unit in units]


def _known(work: Work, unit: ScannedUnit, doc_ids: pa.Array | None) -> Removal:
    if doc_ids is None or len(doc_ids) == 0 or unit.rows == 0:
        return _nothing(unit)
    documents = work.get_table(unit.piece, DOCUMENTS_NAME)
    known = pc.is_in(documents["doc_id"], value_set=doc_ids).to_numpy()
    rows = documents.filter(pa.array(known))
    left = dropped_rows(rows, stage="append", rule="already_in", survivor=rows["doc_id"])
    return Removal(known, plain(left))


def remove_duplicates(
    work: Work,
    units: Sequence[ScannedUnit],
    known: Sequence[Removal],
    *,
    sources: Sequence[str],
    existing: pa.Table | None,
) -> list[Removal]:
    """Returns for every unit which of its documents are exact duplicates, and of what.

    Args:
        work: the work folder that holds the units.
        units: all units of the build.
        known: of every unit what is out already; it neither survives nor is removed again.
        sources: source names by priority; the first one's documents survive.
        existing: SIGNATURES of the version that is added to; its documents always survive.
    """
    tables = [
        _compared(work, unit, out, sources.index(unit.source))
        for unit, out in zip(units, known, strict=True)
    ]
    rows = [table.num_rows for table in tables]
    if existing is not None and existing.num_rows and tables:
        tables.append(_existing_rows(existing, tables[0].schema))
    if sum(rows) == 0:
        return [_nothing(unit) for unit in units]
    table = pa.concat_tables(tables)
    survivor = _choose(table)
    doc_ids = table["doc_id"].combine_chunks()
    ends = np.cumsum(rows)
    return [
        _duplicates(work, unit, table["row"].to_numpy()[start:end], survivor[start:end], doc_ids)
        for unit, start, end in zip(units, ends - rows, ends, strict=True)
    ]


def _choose(table: pa.Table) -> npt.NDArray[np.int64]:
    """Returns for each row the row that stays in its place, -1 where it stays itself."""
    priority = table["priority"].to_numpy()
    ranks = rank_columns(
        source_order=priority,
        content_hash=table["content_hash"],
        source_file=table["source_file"],
        source_offset=table["source_offset"].to_numpy(),
        source_length=table["source_length"].to_numpy(),
    )
    survivor = choose_survivors(key_words(table["key"]), ranks, existing=priority < 0)
    return np.where(survivor == np.arange(len(survivor)), -1, survivor)


def _compared(work: Work, unit: ScannedUnit, out: Removal, priority: int) -> pa.Table:
    """Returns the unit's keys, what decides who survives, and where its documents stand."""
    table = work.get_table(unit.piece, KEYS)
    table = table.append_column("priority", _constant(priority, table.num_rows, pa.int32()))
    table = table.append_column("row", pa.array(np.arange(table.num_rows)))
    return table.filter(pa.array(~out.rows))


def _existing_rows(existing: pa.Table, schema: pa.Schema) -> pa.Table:
    rows = existing.num_rows
    columns = {
        "key": existing["key"],
        "priority": _constant(-1, rows, pa.int32()),  # before every source of the build
        "content_hash": _constant(bytes(16), rows, pa.binary(16)),
        "source_file": _constant("", rows, pa.string()),
        "source_offset": _constant(0, rows, pa.int64()),
        "source_length": _constant(0, rows, pa.int64()),
        "doc_id": existing["doc_id"],
        "row": _constant(-1, rows, pa.int64()),
    }
    return pa.table(columns).select(schema.names).cast(schema)


def _constant(value: int | float | str | bytes, rows: int, type_: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, type_), rows)


def _duplicates(
    work: Work,
    unit: ScannedUnit,
    rows: npt.NDArray[np.int64],
    survivor: npt.NDArray[np.int64],
    doc_ids: pa.Array,
) -> Removal:
    duplicate = survivor >= 0
    if not duplicate.any():
        return _nothing(unit)
    removed = np.zeros(unit.rows, dtype=np.bool_)
    removed[rows[duplicate]] = True
    documents = work.get_table(unit.piece, DOCUMENTS_NAME).take(pa.array(rows[duplicate]))
    left = dropped_rows(
        documents,
        stage="dedup_exact",
        rule="duplicate",
        survivor=doc_ids.take(pa.array(survivor[duplicate])),
        similarity=_constant(1.0, len(documents), pa.float64()),
    )
    return Removal(removed, plain(left))


def _nothing(unit: ScannedUnit) -> Removal:
    return Removal(np.zeros(unit.rows, dtype=np.bool_), plain(DROPPED.empty_table()))
