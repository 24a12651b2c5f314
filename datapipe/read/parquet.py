"""Parquet to documents: a row is a document, its place is (row group, row in the group).

Only the columns asked for are read, in slices of a row group. A row group that can't be read is one
quarantined record; the others are read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from datapipe.documents import batch_from_columns
from datapipe.read.columns import (
    column_at,
    date_column,
    id_column,
    is_text,
    string_column,
    text_column,
    type_at,
)
from datapipe.read.damage import RAW_LIMIT_BYTES, Fault
from datapipe.read.lines import is_utf8
from datapipe.read.results import Origin, ReadResult
from datapipe.recipe import FieldPath, Fields
from tiering.errors import StoreError
from tiering.store import View, ViewFile

__all__ = ["ParquetDamage", "open_parquet", "read_parquet"]

_MAX_ROWS = 1 << 16


class ParquetDamage(Exception):
    """A Parquet file can't be opened."""


def open_parquet(view: View) -> pq.ParquetFile:
    """Returns the open file. Raises: ParquetDamage: its footer can't be read."""
    try:
        return pq.ParquetFile(pa.PythonFile(ViewFile(view), mode="r"), pre_buffer=False)
    except StoreError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise ParquetDamage(_first_line(error)) from error


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
        file = open_parquet(view)
    except ParquetDamage as damage:
        yield origin.result(faults=[_corrupt(0, 0, str(damage))], truncated=True)
        return
    for group in groups[: max(file.num_row_groups - groups.start, 0)]:
        reader = _GroupReader(
            file, group, paths=fields.paths(), origin=origin, max_record_bytes=max_record_bytes
        )
        yield from reader.read(batch_bytes=batch_bytes)


class _GroupReader:
    """Reads one row group; `row` is the first one that was not delivered yet."""

    def __init__(
        self,
        file: pq.ParquetFile,
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
        kind = type_at(self._file.schema_arrow, self._paths["text"])
        if kind is None or not is_text(kind):
            yield from self._refuse_all(kind)
            return
        batches = self._file.iter_batches(
            batch_size=self._slice_rows(batch_bytes),
            row_groups=[self._group],
            columns=[".".join(path) for path in self._paths.values()],
            use_threads=False,
        )
        try:
            for batch in batches:
                yield self._result(batch)
                self._row += batch.num_rows
        except StoreError:
            raise
        except (pa.ArrowException, OSError) as error:
            fault = _corrupt(self._group, self._row, _first_line(error))
            yield self._origin.result(faults=[fault], truncated=True)

    def _slice_rows(self, batch_bytes: int) -> int:
        metadata = self._file.metadata.row_group(self._group)
        row_bytes = max(metadata.total_byte_size // max(metadata.num_rows, 1), 1)
        return max(1, min(_MAX_ROWS, int(batch_bytes // row_bytes)))

    def _result(self, batch: pa.RecordBatch) -> ReadResult:
        texts = text_column(column_at(batch, self._paths["text"]))
        faults = self._faults(texts)
        rows = np.arange(self._row, self._row + batch.num_rows, dtype=np.int64)
        if faults:
            good = np.ones(batch.num_rows, dtype=bool)
            good[[fault.length - self._row for fault in faults]] = False
            batch, texts, rows = batch.filter(pa.array(good)), texts.filter(good), rows[good]
        return self._origin.result(self._documents(batch, texts, rows), faults)

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

    def _faults(self, texts: pa.Array) -> list[Fault]:
        """Returns a fault for each text that is null, too long or not UTF-8."""
        faults = [
            self._fault(row, "text_missing", f"`{self._name}` is null", b"")
            for row in np.flatnonzero(texts.is_null()).tolist()
        ]
        lengths = _lengths(texts)
        for row in np.flatnonzero(lengths > self._max_record_bytes).tolist():
            size, raw = int(lengths[row]), texts[row].as_buffer()[:RAW_LIMIT_BYTES]
            detail = f"the text has {size:,} bytes, {self._max_record_bytes:,} are allowed"
            faults.append(self._fault(row, "record_too_large", detail, raw.to_pybytes()))
        known = {fault.length - self._row for fault in faults}
        for row in _not_utf8(texts):
            if row not in known:
                detail = f"`{self._name}` isn't UTF-8"
                faults.append(self._fault(row, "invalid_utf8", detail, texts[row].as_py()))
        return faults

    def _refuse_all(self, kind: pa.DataType | None) -> Iterator[ReadResult]:
        error = "text_missing" if kind is None or pa.types.is_null(kind) else "text_not_string"
        what = "there is no column" if kind is None else f"the type is {kind} in column"
        num_rows = self._file.metadata.row_group(self._group).num_rows
        for start in range(0, num_rows, _MAX_ROWS):
            rows = range(min(_MAX_ROWS, num_rows - start))
            self._row = start
            faults = [self._fault(row, error, f"{what} `{self._name}`", b"") for row in rows]
            yield self._origin.result(faults=faults)

    @property
    def _name(self) -> str:
        return ".".join(self._paths["text"])

    def _fault(self, row: int, error: str, detail: str, raw: bytes) -> Fault:
        return Fault(
            error=error,
            detail=detail,
            offset=self._group,
            length=self._row + row,
            raw=raw[:RAW_LIMIT_BYTES],
        )


def _lengths(texts: pa.Array) -> npt.NDArray[np.int64]:
    if not len(texts):
        return np.empty(0, dtype=np.int64)
    offsets = np.frombuffer(texts.buffers()[1], np.int64, count=len(texts) + 1)
    return offsets[1:] - offsets[:-1]


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


def _corrupt(group: int, row: int, detail: str) -> Fault:
    return Fault(error="corrupt_parquet", detail=detail, offset=group, length=row, raw=b"")


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]
