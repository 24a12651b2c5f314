"""Columns of Parquet files, of whatever type they are, as the columns of documents."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.read.dates import parse_dates
from datapipe.recipe import FieldPath

__all__ = [
    "byte_lengths",
    "column_at",
    "date_column",
    "id_column",
    "is_text",
    "num_named",
    "string_column",
    "text_column",
    "type_at",
]

_SECONDS = pa.timestamp("s", tz="UTC")
_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_800
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def type_at(schema: pa.Schema, path: FieldPath) -> pa.DataType | None:
    """Returns the type of the column at `path`; None if there is none."""
    index = schema.get_field_index(path[0])
    if index < 0:
        return None
    kind = schema.field(index).type
    for key in path[1:]:
        if not pa.types.is_struct(kind) or kind.get_field_index(key) < 0:
            return None
        kind = kind.field(key).type
    return kind


def column_at(batch: pa.RecordBatch, path: FieldPath) -> pa.Array | None:
    """Returns the column at `path`, null where something above it is; None if there is none."""
    if type_at(batch.schema, path) is None:
        return None
    column = batch.column(path[0])
    for key in path[1:]:
        column = pc.struct_field(column, [column.type.get_field_index(key)])
    return column


def num_named(schema: pa.Schema, name: str) -> int:
    """Returns how many top-level columns have this name."""
    return len(schema.get_all_field_indices(name))


def byte_lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    """Returns how many bytes each value unpacks to: int64 [rows]; 0 if null or no string."""
    if pa.types.is_dictionary(column.type):
        lengths = np.append(byte_lengths(column.dictionary), np.int64(0))
        indices: npt.NDArray[np.int64] = column.indices.fill_null(len(lengths) - 1).to_numpy()
        return lengths[indices]
    if not is_text(column.type):
        return np.zeros(len(column), dtype=np.int64)
    lengths = pc.binary_length(column.cast(pa.large_binary()))
    return np.asarray(lengths.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)


def is_text(kind: pa.DataType | None) -> bool:
    """Tells whether there is a column of this type and it can hold texts."""
    if kind is None:
        return False
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return _is_string(kind) or _is_binary(kind)


def text_column(column: pa.Array) -> pa.Array:
    """Returns a column for which `is_text` as large_binary, from offset 0."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    column = column.cast(pa.large_binary())
    return pa.concat_arrays([column]) if column.offset else column


def string_column(column: pa.Array | None) -> pa.Array | None:
    """Returns strings, null where the value isn't UTF-8; None where it isn't a string column."""
    if column is None:
        return None
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not _is_string(column.type):
        return None
    column = column.cast(pa.string())
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(map(_decoded, column.cast(pa.binary()).to_pylist()), pa.string())
    return column


def id_column(column: pa.Array | None) -> pa.Array | None:
    """Returns strings; of numbers and booleans their text; None for any other type."""
    if column is None:
        return None
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        return column.cast(pa.string())
    return string_column(column)


def date_column(column: pa.Array | None) -> pa.Array | None:
    """Returns UTC seconds of timestamps (without a zone: UTC), dates and ISO 8601 strings.

    Null where the year isn't one of 1 to 9999.
    """
    if column is None:
        return None
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _floored(column.cast(pa.int64()), _PER_SECOND[kind.unit])
    if pa.types.is_date(kind):
        days = column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
        return _in_calendar(pc.multiply(days, 86_400))
    strings = string_column(column)
    return None if strings is None else parse_dates(strings.to_pylist())


def _floored(ticks: pa.Array, per_second: int) -> pa.Array:
    seconds = np.floor_divide(ticks.fill_null(0).to_numpy(), per_second)
    missing = ticks.is_null().to_numpy(zero_copy_only=False)
    return _in_calendar(pa.array(seconds, pa.int64(), mask=missing))


def _in_calendar(seconds: pa.Array) -> pa.Array:
    """Returns the times, null where they are outside of the years 1 to 9999."""
    known = pc.and_(pc.greater_equal(seconds, _YEAR_1), pc.less(seconds, _YEAR_10000))
    return pc.if_else(known, seconds, pa.scalar(None, pa.int64())).cast(_SECONDS)


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _is_string(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
