"""Opening Arrow IPC: files (Feather version 2) and streams, as Hugging Face `datasets` saves them.

A batch is believed after its offsets were checked: they say where in memory the texts lie.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa

from datapipe.read.parquet_file import MAX_ROWS, ParquetDamage, damage_of_parquet
from datapipe.recipe import FieldPath
from tiering.store import View, ViewFile

__all__ = ["ARROW_MAGIC", "ArrowBatch", "ArrowInput", "is_arrow_stream"]

ARROW_MAGIC = b"ARROW1"
_STREAM_MARK = b"\xff\xff\xff\xff"
_MOST_SCHEMA_BYTES = 1 << 24


def is_arrow_stream(head: bytes) -> bool:
    """Tells whether a file that starts so is an Arrow stream: a message, and a sane size of it."""
    size = int.from_bytes(head[4:8], "little")
    return head[:4] == _STREAM_MARK and 0 < size < _MOST_SCHEMA_BYTES and size % 8 == 0


@dataclass(frozen=True, slots=True)
class ArrowBatch:
    """One batch, as a group of rows."""

    schema: pa.Schema
    batch: pa.RecordBatch

    def rows(self, group: int) -> int:  # noqa: ARG002 - it is the only one
        """Returns how many rows it has."""
        return int(self.batch.num_rows)

    def has_row(self, group: int, row: int) -> bool:
        """Tells whether it has a row of this number."""
        return row < self.rows(group)

    def batches(self, group: int, *, batch_bytes: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yields its rows in pieces."""
        for start in range(0, self.batch.num_rows, MAX_ROWS):
            yield self.batch.slice(start, MAX_ROWS)


class ArrowInput:
    """An open Arrow file or stream."""

    def __init__(self, view: View, paths: Collection[FieldPath] = ()) -> None:
        """Opens it to read the columns at `paths`. Raises: ParquetDamage."""
        source = pa.PythonFile(ViewFile(view), mode="r")
        head = bytearray(min(8, view.size))
        view.read_into(memoryview(head), 0)
        self._is_file = head.startswith(ARROW_MAGIC)
        with damage_of_parquet():
            self._reader = (pa.ipc.open_file if self._is_file else pa.ipc.open_stream)(source)
            self.schema: pa.Schema = self._reader.schema
        wanted = {path[0] for path in paths}
        self._names = [name for name in self.schema.names if name in wanted] if paths else None

    @property
    def num_batches(self) -> int | None:
        """Batches of a file; None of a stream."""
        return int(self._reader.num_record_batches) if self._is_file else None

    def batches(self, numbers: range) -> Iterator[tuple[int, ArrowBatch | ParquetDamage]]:
        """Yields batches with their numbers; those of a file that the range has, of a stream all.

        Of a file a damaged batch costs that one; of a stream it is the last.
        """
        last = self.num_batches
        for number in numbers if last is not None else range(1 << 62):
            if last is not None and number >= last:
                return
            try:
                batch = self._batch(number)
            except ParquetDamage as damage:
                yield number, damage
                if last is None:
                    return
                continue
            if batch is None:
                return
            yield number, ArrowBatch(self.schema, batch)

    def _batch(self, number: int) -> pa.RecordBatch | None:
        with damage_of_parquet():
            try:
                batch = (
                    self._reader.get_batch(number)
                    if self._is_file
                    else self._reader.read_next_batch()
                )
            except StopIteration:
                return None
            if self._names is not None and len(set(self.schema.names)) == len(self.schema):
                batch = batch.select(self._names)
            _check(batch)
            return batch


def _check(batch: pa.RecordBatch) -> None:
    """Raises if offsets of texts don't fit; which texts aren't UTF-8 is looked at row by row."""
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            _as_bytes(column.dictionary).validate(full=True)
            column.indices.validate(full=True)
            pa.DictionaryArray.from_arrays(column.indices, pa.nulls(len(column.dictionary)))
        else:
            _as_bytes(column).validate(full=True)


def _as_bytes(column: pa.Array) -> pa.Array:
    if pa.types.is_string(column.type):
        return column.view(pa.binary())
    return column.view(pa.large_binary()) if pa.types.is_large_string(column.type) else column
