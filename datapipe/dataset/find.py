"""Finding the rows that describe a document: kept or dropped, by index where there is one.

Without an index of the kind every table is read, of the columns that are looked at. Rows are read
by ranges, so digests aren't checked on the way; a row that an index names is compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dataset.document_tables import read_rows, read_table, table_path, table_schema
from datapipe.dataset.index import Index, IndexedRow, TableName, domain_key
from datapipe.dataset.index.covered import missing
from datapipe.dataset.index.entries import COLUMNS, entries_of
from datapipe.dataset.objects import to_repair
from datapipe.dataset.reader import Dataset
from datapipe.dataset.tables import HASH_BYTES
from datapipe.errors import DamagedError
from datapipe.observe import NO_PROGRESS, Progress

__all__ = [
    "FoundRow",
    "Wanted",
    "domain_wanted",
    "find",
    "id_wanted",
    "origin_wanted",
    "record_wanted",
    "tables_of",
    "url_wanted",
]

_AT_ONCE = 1000
"""Rows of a table that are read together, if so many are wanted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundRow:
    """A row of a docmap, or of the table `dropped`."""

    table: TableName
    row: int
    values: dict[str, Any]
    """By column, hashes as bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What is looked for."""

    columns: tuple[str, ...]
    """That decide."""
    matches: Callable[[pa.Table], pa.Array]
    """Tells of each row whether it is meant, from these columns alone."""
    kind: str | None = None
    """The index that helps."""
    hashes: tuple[int, int] = (0, 0)
    """First and last hash there."""


def id_wanted(prefix: str) -> Wanted:
    """Returns what has a doc_id that begins with these hex digits, an even or odd number of them.

    Raises:
        ValueError: they aren't hex digits, or too many.
    """
    digits = 2 * HASH_BYTES
    if len(prefix) > digits:
        raise ValueError(f"{prefix} has {len(prefix)} digits, a doc_id has {digits}")
    first, last = (bytes.fromhex(prefix.ljust(digits, fill)) for fill in "0f")
    return Wanted(
        kind="doc",
        hashes=(int.from_bytes(first[:8], "big"), int.from_bytes(last[:8], "big")),
        columns=("doc_id",),
        matches=lambda table: _is_between(table["doc_id"], first, last),
    )


def url_wanted(url_hash: int) -> Wanted:
    """Returns what has this `url_hash`."""
    value = pa.scalar(url_hash, pa.uint64())
    return Wanted(
        kind="url",
        hashes=(url_hash, url_hash),
        columns=("url_hash",),
        matches=lambda table: pc.equal(table["url_hash"], value),
    )


def domain_wanted(domain: str) -> Wanted:
    """Returns what was kept of a domain: dropped rows don't have it."""
    key = domain_key(domain)
    return Wanted(
        kind="domain",
        hashes=(key, key),
        columns=("domain",),
        matches=lambda table: pc.equal(table["domain"], domain),
    )


def record_wanted(record_id: str) -> Wanted:
    """Returns what has this id in the input; no index helps."""
    return Wanted(
        columns=("record_id",), matches=lambda table: pc.equal(table["record_id"], record_id)
    )


def origin_wanted(file: str, offset: int) -> Wanted:
    """Returns what was read from this place; no index helps."""
    return Wanted(
        columns=("source_file", "source_offset"),
        matches=lambda table: pc.and_(
            pc.equal(table["source_file"], file), pc.equal(table["source_offset"], offset)
        ),
    )


def find(
    dataset: Dataset,
    wanted: Wanted,
    *,
    limit: int | None = None,
    skip: set[str] | None = None,
    progress: Progress = NO_PROGRESS,
) -> Iterator[FoundRow]:
    """Yields the rows that are meant, in the order of the index, or else of the tables.

    Args:
        dataset: a version.
        wanted: what is looked for.
        limit: at most so many.
        skip: paths of tables that need not be read without an index; those that were, and had
            nothing, are added.
        progress: hears of tables that are read.

    Raises:
        DamagedError: a table or an index can't be read, or they don't fit each other.
    """
    index = dataset.index(wanted.kind) if wanted.kind is not None else None
    if index is not None:
        found = _by_index(dataset, index, wanted, at_once=min(limit or _AT_ONCE, _AT_ONCE))
    else:
        found = _by_scan(dataset, wanted, skip if skip is not None else set(), progress)
    for count, row in enumerate(found, start=1):
        yield row
        if count == limit:
            return


def tables_of(dataset: Dataset, wanted: Wanted) -> set[TableName] | None:
    """Returns the tables in which an index has what is looked for; None: there is no index."""
    index = dataset.index(wanted.kind) if wanted.kind is not None else None
    return None if index is None else {row.table for row in index.find(*wanted.hashes)}


def _by_index(
    dataset: Dataset, index: Index, wanted: Wanted, *, at_once: int
) -> Iterator[FoundRow]:
    assert wanted.kind is not None
    for table, group in groupby(index.find(*wanted.hashes), key=lambda row: row.table):
        for some in _chunks(group, at_once):
            rows = [row.row for row in some]
            read = read_rows(dataset, table, rows)
            _check_hashes(dataset, wanted.kind, read, some)
            yield from _matching(table, rows, read, wanted)


def _by_scan(
    dataset: Dataset, wanted: Wanted, skip: set[str], progress: Progress
) -> Iterator[FoundRow]:
    tables = missing(dataset.manifest, ())
    read: list[str] = []
    progress.begin("looking", tables.num_tables, "tables")
    for name in tables.names():
        path = table_path(dataset, name)
        if path not in skip and set(wanted.columns) <= set(table_schema(name).names):
            columns = read_table(dataset, name, wanted.columns)
            rows = np.flatnonzero(_mask(wanted, columns)).tolist()
            if rows:
                yield from _matching(name, rows, read_rows(dataset, name, rows), wanted)
        read.append(path)
        progress.advance(1)
    progress.end()
    skip.update(read)


def _matching(
    table: TableName, rows: Sequence[int], read: pa.Table, wanted: Wanted
) -> Iterator[FoundRow]:
    meant = _mask(wanted, read)
    for row, values, is_meant in zip(rows, read.to_pylist(), meant, strict=True):
        if is_meant:
            yield FoundRow(table=table, row=row, values=values)


def _is_between(ids: pa.ChunkedArray, first: bytes, last: bytes) -> pa.Array:
    if first == last:
        return pc.equal(ids, pa.scalar(first, pa.binary(HASH_BYTES)))
    plain = ids.cast(pa.binary())
    return pc.and_(pc.greater_equal(plain, first), pc.less_equal(plain, last))


def _mask(wanted: Wanted, table: pa.Table) -> Any:
    found = wanted.matches(table)
    return pc.fill_null(found, False).to_numpy(zero_copy_only=False)


def _check_hashes(dataset: Dataset, kind: str, read: pa.Table, named: Sequence[IndexedRow]) -> None:
    if COLUMNS[kind] in read.column_names:
        entries = entries_of(kind, read, number=0)
        if entries.hash.tolist() == [row.hash for row in named]:
            return
    raise DamagedError(
        f"the index {kind!r} of {dataset.url}@{dataset.version} doesn't fit the rows that it names "
        f"in {table_path(dataset, named[0].table)}; nothing can be looked up by it; "
        f"{to_repair(dataset.url, dataset.version)}"
    )


def _chunks(rows: Iterable[IndexedRow], at_once: int) -> Iterator[list[IndexedRow]]:
    some: list[IndexedRow] = []
    for row in rows:
        some.append(row)
        if len(some) == at_once:
            yield some
            some = []
    if some:
        yield some
