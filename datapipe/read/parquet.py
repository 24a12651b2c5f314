"""Parquet and Arrow to documents: a row is a document, its place (row group or batch, row in it).

Only the columns asked for are read, in slices of a row group. Of a row group that can't be read
every row is a quarantined record; the others are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.documents import batch_from_columns
from datapipe.read.arrow_file import ArrowInput
from datapipe.read.columns import (
    byte_lengths,
    column_at,
    date_column,
    id_column,
    is_text,
    num_named,
    string_column,
    text_column,
    type_at,
)
from datapipe.read.damage import RAW_LIMIT_BYTES, Fault
from datapipe.read.lines import is_utf8
from datapipe.read.parquet_file import MAX_ROWS, ParquetDamage, ParquetInput, damage_of_parquet
from datapipe.read.results import Origin, ReadResult
from datapipe.recipe import FieldPath, Fields
from tiering.store import View

__all__ = ["read_arrow", "read_parquet"]


def read_parquet(
    view: View,
    *,
    groups: range,
    origin: Origin,
    fields: Fields,
    batch_bytes: int,
    max_record_bytes: int,
) -> Iterator[ReadResult]:
    """Yields the documents of some row groups.

    Args:
        view: the file.
        groups: which row groups; those that the file doesn't have are passed over.
        origin: what all records share.
        fields: where text and attributes stand.
        batch_bytes: about how many bytes of text go into one batch.
        max_record_bytes: a longer text is quarantined.
    """
    if not groups:
        yield origin.result()
        return
    try:
        file = ParquetInput(view, fields.paths().values())
    except ParquetDamage as damage:
        detail = f"the file can't be opened as Parquet: {damage}"
        fault = Fault(error="corrupt_parquet", detail=detail, offset=0, length=0, raw=b"")
        yield origin.result(faults=[fault], truncated=True)
        return
    for group in groups[: max(file.num_groups - groups.start, 0)]:
        reader = _GroupReader(
            file, group, paths=fields.paths(), origin=origin, max_record_bytes=max_record_bytes
        )
        yield from reader.read(batch_bytes=batch_bytes)


def read_arrow(
    view: View,
    *,
    batches: range,
    origin: Origin,
    fields: Fields,
    batch_bytes: int,
    max_record_bytes: int,
) -> Iterator[ReadResult]:
    """Yields the documents of some batches of an Arrow file, or of all of a stream.

    Arguments as `read_parquet`.
    """
    yield origin.result()
    try:
        file = ArrowInput(view, fields.paths().values())
    except ParquetDamage as damage:
        yield _lost_batch(0, f"the file can't be opened as Arrow IPC: {damage}", origin)
        return
    for number, batch in file.batches(batches):
        if isinstance(batch, ParquetDamage):
            yield _lost_batch(number, f"batch {number} can't be read: {batch}", origin)
            continue
        reader = _GroupReader(
            batch, number, paths=fields.paths(), origin=origin, max_record_bytes=max_record_bytes
        )
        yield from reader.read(batch_bytes=batch_bytes)


def _lost_batch(number: int, detail: str, origin: Origin) -> ReadResult:
    fault = Fault(error="corrupt_arrow", detail=detail, offset=number, length=0, raw=b"")
    return origin.result(faults=[fault], truncated=True)


class RowGroups(Protocol):
    """What has rows in groups: a Parquet file, a batch of an Arrow file."""

    @property
    def schema(self) -> pa.Schema:
        """Of all columns."""

    def rows(self, group: int) -> int | None:
        """Returns how many rows a group has; None: nobody knows."""

    def has_row(self, group: int, row: int) -> bool:
        """Tells whether a group says that it has a row of this number."""

    def batches(self, group: int, *, batch_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a group. Raises: ParquetDamage: there is no more of it."""


class _GroupReader:
    """Reads one row group; `row` is the first one that was not delivered yet."""

    def __init__(
        self,
        file: RowGroups,
        group: int,
        *,
        paths: dict[str, FieldPath],
        origin: Origin,
        max_record_bytes: int,
    ) -> None:
        self._file = file
        self._group = group
        self._paths = paths
        self._origin = origin
        self._max_record_bytes = max_record_bytes
        self._row = 0

    def read(self, *, batch_bytes: int) -> Iterator[ReadResult]:
        kind = type_at(self._file.schema, self._paths["text"])
        if not is_text(kind):
            yield from self._refuse_all(kind)
            return
        try:
            for batch in self._file.batches(self._group, batch_bytes=batch_bytes):
                for piece in self._pieces(batch, batch_bytes):
                    with damage_of_parquet():
                        result = self._result(piece)
                    yield result
                    self._row += piece.num_rows
        except ParquetDamage as damage:
            yield from self._lost(str(damage))
        else:
            yield from self._missing()

    def _pieces(self, batch: pa.RecordBatch, batch_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yields a batch in pieces of about `batch_bytes`, however much its rows unpack to."""
        with damage_of_parquet():
            columns = [column_at(batch, path) for path in self._paths.values()]
            sizes = sum(byte_lengths(column) for column in columns if column is not None)
            ends = np.cumsum(sizes)
        start, before = 0, 0
        while start < batch.num_rows:
            stop = int(np.searchsorted(ends, before + batch_bytes, side="right"))
            stop = max(stop, start + 1)
            yield batch.slice(start, stop - start)
            start, before = stop, int(ends[stop - 1])

    def _result(self, batch: pa.RecordBatch) -> ReadResult:
        rows = np.arange(self._row, self._row + batch.num_rows, dtype=np.int64)
        column = column_at(batch, self._paths["text"])
        assert column is not None
        faults = self._unfit(column)
        batch, rows = _without(faults, batch, rows)
        texts = text_column(column_at(batch, self._paths["text"]))
        not_utf8 = self._not_utf8(texts, rows)
        if not_utf8:
            batch, rows = _without(not_utf8, batch, rows)
            texts = text_column(column_at(batch, self._paths["text"]))
        return self._origin.result(self._documents(batch, texts, rows), faults + not_utf8)

    def _documents(
        self, batch: pa.RecordBatch, texts: pa.Array, rows: npt.NDArray[np.int64]
    ) -> pa.RecordBatch:
        columns = {name: column_at(batch, path) for name, path in self._paths.items()}
        return batch_from_columns(
            texts.cast(pa.large_string()),
            source=self._origin.source,
            source_file=self._origin.source_file,
            offsets=np.full(len(rows), self._group, dtype=np.int64),
            lengths=rows,
            record_id=id_column(columns["id"]),
            url=string_column(columns["url"]),
            licence=self._origin.licence,
            language=string_column(columns["language"]),
            crawled_at=date_column(columns["date"]),
        )

    def _unfit(self, column: pa.Array) -> list[Fault]:
        """Returns a fault for each text that is null or too long; none is unpacked for that."""
        faults = [
            self._fault(self._row + row, "text_missing", f"`{self._name}` is null", b"")
            for row in np.flatnonzero(column.is_null()).tolist()
        ]
        lengths = byte_lengths(column)
        for row in np.flatnonzero(lengths > self._max_record_bytes).tolist():
            detail = f"the text has {lengths[row]:,} bytes, {self._max_record_bytes:,} are allowed"
            raw = _beginning(column[row])
            faults.append(self._fault(self._row + row, "record_too_large", detail, raw))
        return faults

    def _not_utf8(self, texts: pa.Array, rows: npt.NDArray[np.int64]) -> list[Fault]:
        detail = f"`{self._name}` isn't UTF-8"
        return [
            self._fault(int(rows[row]), "invalid_utf8", detail, texts[row].as_py())
            for row in _not_utf8(texts)
        ]

    def _refuse_all(self, kind: pa.DataType | None) -> Iterator[ReadResult]:
        error = "text_missing" if kind is None or pa.types.is_null(kind) else "text_not_string"
        twice = num_named(self._file.schema, self._paths["text"][0])
        what = "there is no column" if kind is None else f"the type is {kind} in column"
        if kind is None and twice > 1:
            what = f"there are {twice} columns"
        yield from self._rest(error, f"{what} `{self._name}`")

    def _lost(self, reason: str) -> Iterator[ReadResult]:
        """Yields what became of the rows that were not delivered; the first one says why."""
        first = self._row
        detail = f"row group {self._group} can't be read from row {first} on: {reason}"
        if self._file.rows(self._group) is None or not self._file.has_row(self._group, first + 1):
            yield from self._rest("corrupt_parquet", detail, truncated=True)
            return
        fault = self._fault(first, "corrupt_parquet", detail, b"")
        yield self._origin.result(faults=[fault], truncated=True)
        self._row += 1
        yield from self._rest("corrupt_parquet", f"lost with row {first}", truncated=True)

    def _missing(self) -> Iterator[ReadResult]:
        if self._file.has_row(self._group, self._row):
            yield from self._lost("it ends there, and its footer says otherwise")

    def _rest(self, error: str, detail: str, *, truncated: bool = False) -> Iterator[ReadResult]:
        """Yields one quarantined record for each row that is left, or for all if nobody can say."""
        rows = self._file.rows(self._group)
        if rows is None or rows <= self._row:
            detail = f"{detail}; how many rows there are isn't known"
            yield self._origin.result(
                faults=[self._fault(self._row, error, detail, b"")], truncated=truncated
            )
            return
        for start in range(self._row, rows, MAX_ROWS):
            places = range(start, min(start + MAX_ROWS, rows))
            yield self._origin.without_documents(
                error, detail, offset=self._group, lengths=places, truncated=truncated
            )

    @property
    def _name(self) -> str:
        return ".".join(self._paths["text"])

    def _fault(self, row: int, error: str, detail: str, raw: bytes) -> Fault:
        return Fault(
            error=error,
            detail=detail,
            offset=self._group,
            length=row,
            raw=raw[:RAW_LIMIT_BYTES],
        )


def _without(
    faults: list[Fault], batch: pa.RecordBatch, rows: npt.NDArray[np.int64]
) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
    """Returns the rows that have no fault, and their numbers in the row group."""
    if not faults:
        return batch, rows
    good = ~np.isin(rows, [fault.length for fault in faults])
    return batch.filter(pa.array(good)), rows[good]


def _beginning(scalar: pa.Scalar) -> bytes:
    value = scalar.value if isinstance(scalar, pa.DictionaryScalar) else scalar
    found: bytes = value.as_buffer()[:RAW_LIMIT_BYTES].to_pybytes()
    return found


def _not_utf8(texts: pa.Array) -> list[int]:
    """Returns the rows that aren't UTF-8; the whole column is checked at once first."""
    data = texts.buffers()[2]
    if data is None or not len(texts):
        return []
    strings = pa.Array.from_buffers(
        pa.large_string(), len(texts), texts.buffers(), offset=texts.offset
    )
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        return [row for row, text in enumerate(texts.to_pylist()) if text and not is_utf8(text)]
    return []
