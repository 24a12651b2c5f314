"""Tables as Parquet bytes that depend on their rows alone, never on how they were chunked.

Dictionary columns are decoded and encoded again in row order, everything is one chunk, options
are fixed, and no Arrow or pandas metadata is written: types come from `tables.py` when reading.
The bytes do depend on the version of the Arrow library, which the footer names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from datapipe.errors import DamagedError

__all__ = ["GROUP_ROWS", "conform", "decode_table", "encode_table", "open_table", "restore"]

GROUP_ROWS = {"details": 1000}
"""Rows of a row group by table, where it isn't DEFAULT_GROUP_ROWS."""

DEFAULT_GROUP_ROWS = 1 << 17


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Returns the columns of `schema` in one chunk each, dictionaries decoded, text as large_*.

    Raises:
        ValueError: a column is missing, can't be cast, or has a null where none may be.
    """
    missing = sorted(set(schema.names) - set(table.column_names))
    if missing:
        raise ValueError(
            f"the table lacks the columns {', '.join(missing)}; it has "
            f"{', '.join(table.column_names)}; nothing was written"
        )
    columns = [_plain_column(table.column(field.name), field) for field in schema]
    return pa.table(columns, schema=_plain_schema(schema))


def encode_table(plain: pa.Table, *, group_rows: int = DEFAULT_GROUP_ROWS) -> memoryview:
    """Returns a conformed table as Parquet bytes."""
    names = [f.name for f in plain.schema if pa.types.is_large_string(f.type)]
    numbers = [f.name for f in plain.schema if _is_number(f.type)]
    sink = pa.BufferOutputStream()
    pq.write_table(
        plain,
        sink,
        row_group_size=group_rows,
        version="2.6",
        data_page_version="1.0",
        compression="zstd",
        compression_level=3,
        use_dictionary=names,
        column_encoding={name: "DELTA_BINARY_PACKED" for name in numbers},
        write_statistics=names + numbers,
        store_schema=False,
    )
    return memoryview(sink.getvalue())


def decode_table(data: bytes, schema: pa.Schema, *, path: str) -> pa.Table:
    """Returns the table in Parquet bytes with the columns of `schema`, in its types.

    Raises:
        DamagedError: the bytes aren't Parquet or have other columns.
    """
    return restore(open_table(pa.BufferReader(data), schema, path=path), schema, path=path)


def open_table(source: Any, schema: pa.Schema, *, path: str) -> pq.ParquetFile:
    """Opens Parquet of a seekable source. Raises: DamagedError: it isn't Parquet."""
    names = [f.name for f in schema if pa.types.is_dictionary(f.type)]
    try:
        return pq.ParquetFile(source, read_dictionary=names)
    except (pa.ArrowException, OSError, KeyError) as error:
        raise _damaged(path, error) from error


def restore(
    file: pq.ParquetFile,
    schema: pa.Schema,
    *,
    path: str,
    groups: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Reads row groups (default: all) and columns (default: all of `schema`) in its types.

    Raises:
        DamagedError: they can't be read or are of other types.
    """
    wanted = pa.schema([schema.field(name) for name in columns or schema.names])
    numbers = range(file.num_row_groups) if groups is None else groups
    is_large = file.metadata.num_rows > DEFAULT_GROUP_ROWS  # threads cost more than they give below
    try:
        table = file.read_row_groups(list(numbers), columns=wanted.names, use_threads=is_large)
        return table.select(wanted.names).cast(wanted)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(path: str, error: Exception) -> DamagedError:
    return DamagedError(
        f"{path} can't be read as its table: {error}; the version that names it can't be used in "
        "full; run `datapipe verify` to see what else is damaged"
    )


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_type(_plain_type(f.type)) for f in schema])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(kind) else kind


def _plain_column(column: pa.ChunkedArray, field: pa.Field) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        cast = column.cast(_plain_type(field.type))
    except pa.ArrowException as error:
        raise ValueError(
            f"column {field.name} is {column.type}, and can't become {field.type}: {error}; "
            "nothing was written"
        ) from error
    if cast.null_count and not field.nullable:
        raise ValueError(
            f"column {field.name} has {cast.null_count} nulls and may have none; nothing was "
            "written; give every row a value"
        )
    return cast.chunk(0) if cast.num_chunks == 1 else cast.combine_chunks()


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind)) or bool(pa.types.is_timestamp(kind))
