"""Opening a Parquet file and its row groups, of which nothing is believed without a look.

Whatever pyarrow raises because of what a file holds is `ParquetDamage`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from datapipe.read.columns import is_text, type_at
from datapipe.recipe import FieldPath
from tiering.errors import StoreError
from tiering.store import View, ViewFile

__all__ = ["MAX_ROWS", "ParquetDamage", "ParquetInput", "damage_of_parquet"]

MAX_ROWS = 1 << 16
"""Rows that are read at once, at most."""

_FREE_ROWS = 1 << 20
"""So many rows any file may claim; above, one a byte: few documents are packed to less."""

# Names that aren't UTF-8, sizes no machine has, numbers out of range, exceptions from C++.
_FAULTS = (
    pa.ArrowException,
    ArithmeticError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class ParquetDamage(Exception):
    """A Parquet file, or a part of it, can't be read."""


@contextmanager
def damage_of_parquet() -> Iterator[None]:
    """Turns what pyarrow raises into ParquetDamage, but not that the store can't be read."""
    try:
        yield
    except StoreError:
        raise
    except _FAULTS as error:
        raise ParquetDamage(_first_line(error)) from error


class ParquetInput:
    """An open Parquet file."""

    def __init__(self, view: View, paths: Collection[FieldPath] = ()) -> None:
        """Opens the file to read the columns at `paths`. Raises: ParquetDamage."""
        self._size = view.size
        self._names = [".".join(path) for path in paths]
        source = pa.PythonFile(ViewFile(view), mode="r")
        with damage_of_parquet():
            self._plain = file = _open(source)
            self.schema: pa.Schema = file.schema_arrow
            self._groups = [
                file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)
            ]
            # As dictionaries, a text that stands for a million rows is in memory once.
            bytes_at = _byte_columns(file)
            self._strings = [
                ".".join(path)
                for path in paths
                if ".".join(path) in bytes_at and is_text(type_at(self.schema, path))
            ]
            self._packed = _open(source, self._strings, file.metadata) if self._strings else file

    @property
    def num_groups(self) -> int:
        """Row groups."""
        return len(self._groups)

    @property
    def num_rows(self) -> int:
        """Rows of all row groups, as far as the footer is believed."""
        return sum(self.rows(number) or 0 for number in range(self.num_groups))

    def rows(self, group: int) -> int | None:
        """Returns the rows of a row group; None: the footer says what can't be true."""
        counts = [found.num_rows for found in self._groups]
        believed = min(counts) >= 0 and sum(counts) <= max(_FREE_ROWS, self._size)
        return counts[group] if believed else None

    def has_row(self, group: int, row: int) -> bool:
        """Tells whether a row group has a row of this number, by its footer."""
        return bool(row < self._groups[group].num_rows)

    def num_bytes(self, group: int) -> int:
        """Returns the unpacked bytes of a row group, as the footer says."""
        return max(int(self._groups[group].total_byte_size), 0)

    def batches(self, group: int, *, batch_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a row group. Raises: ParquetDamage: there is no more of it."""
        row_bytes = max(self.num_bytes(group) // max(self._groups[group].num_rows, 1), 1)
        with damage_of_parquet():
            file = self._plain if self._has_differences(group) else self._packed
            batches = file.iter_batches(
                batch_size=max(1, min(MAX_ROWS, batch_bytes // row_bytes)),
                row_groups=[group],
                columns=self._names,
                use_threads=False,
            )
        while True:
            with damage_of_parquet():
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _has_differences(self, group: int) -> bool:
        """Tells whether strings are encoded by differences: no dictionaries are made of those."""
        found = self._groups[group]
        columns = [found.column(number) for number in range(found.num_columns)]
        return any(
            encoding.startswith("DELTA_")
            for column in columns
            if column.path_in_schema in self._strings
            for encoding in column.encodings
        )


def _open(
    source: pa.PythonFile,
    dictionaries: list[str] | None = None,
    metadata: pq.FileMetaData | None = None,
) -> pq.ParquetFile:
    return pq.ParquetFile(
        source,
        metadata=metadata,
        read_dictionary=dictionaries,
        pre_buffer=False,
        page_checksum_verification=True,
    )


def _byte_columns(file: pq.ParquetFile) -> set[str]:
    """Returns the paths of all columns of bytes or strings that aren't in lists."""
    columns = [file.schema.column(number) for number in range(len(file.schema))]
    return {
        column.path
        for column in columns
        if column.physical_type == "BYTE_ARRAY" and not column.max_repetition_level
    }


def _first_line(error: BaseException) -> str:
    text = str(error).strip().split("\n", 1)[0].rstrip(".")
    return text if isinstance(error, pa.ArrowException | OSError) else f"{_kind(error)}: {text}"


def _kind(error: BaseException) -> str:
    return "a name isn't UTF-8" if isinstance(error, UnicodeError) else type(error).__name__
