"""Tables as Parquet bytes that depend on their rows alone, never on how they were chunked.

Dictionary columns are decoded and encoded again in row order, everything is one chunk, options
are fixed, and no Arrow or pandas metadata is written: types come from `tables.py` when reading.
The bytes do depend on the version of the Arrow library, which the footer names.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from datapipe.errors import DamagedError
from tiering.errors import StoreError

__all__ = [
    "GROUP_ROWS",
    "MOST_ROWS_PER_BYTE",
    "conform",
    "decode_table",
    "encode_table",
    "open_table",
    "restore",
]

GROUP_ROWS = {"details": 1000, "docmap": 1 << 14, "dropped": 1 << 15}
"""Rows of a row group by table, where it isn't DEFAULT_GROUP_ROWS. Single rows of a docmap and of
`dropped` are looked up, for which a group is read: groups of 16,384 rows make docmaps 0.2 % larger.
The footer of `dropped`, whose files may have many million rows, would grow too large with them."""

DEFAULT_GROUP_ROWS = 1 << 17

_WITHOUT_DICTIONARY = {"record_id"}
"""Texts that no two rows share: a dictionary would double the time to read and write them."""

MOST_ROWS_PER_BYTE = 8
"""A file that claims more rows than this a stored byte is refused before anything is allocated for
them: every table has a hash or a name in each row that no other row has, and takes 2 bytes a row
at least (a million numbered copies of one input file)."""

_DAMAGE = (
    pa.ArrowException,
    OSError,
    LookupError,
    ValueError,  # UnicodeDecodeError too: a column's name isn't UTF-8
    TypeError,
    ArithmeticError,
    MemoryError,
)
"""What pyarrow was seen to raise, or may, about bytes that aren't the table they should be."""


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
    texts = [f.name for f in plain.schema if pa.types.is_large_string(f.type)]
    names = [name for name in texts if name not in _WITHOUT_DICTIONARY]
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
        write_statistics=texts + numbers,
        store_schema=False,
    )
    return memoryview(sink.getvalue())


def decode_table(data: bytes, schema: pa.Schema, *, path: str, of: str = "") -> pa.Table:
    """Returns the table in Parquet bytes with the columns of `schema`, in its types.

    Args:
        data: the bytes.
        schema: what must be in them.
        path: where they are, for messages.
        of: which table of which version they are, for messages.

    Raises:
        DamagedError: the bytes aren't Parquet or have other columns.
    """
    opened = open_table(pa.BufferReader(data), schema, path=path, of=of)
    return restore(opened, schema, path=path, of=of)


def open_table(source: Any, schema: pa.Schema, *, path: str, of: str = "") -> pq.ParquetFile:
    """Opens Parquet of a seekable source; see `decode_table`. Raises: DamagedError."""
    names = [f.name for f in schema if pa.types.is_dictionary(f.type)]
    try:
        stored_bytes = source.seek(0, io.SEEK_END)
        file = pq.ParquetFile(source, read_dictionary=names)
        _check_claims(file.metadata, most_rows=MOST_ROWS_PER_BYTE * stored_bytes)
    except StoreError:
        raise  # the source failed, not what it holds
    except _DAMAGE as error:
        raise _damaged(path, of, error) from error
    return file


def _check_claims(metadata: pq.FileMetaData, *, most_rows: int) -> None:
    groups = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    if metadata.num_rows != sum(groups) or min(groups, default=0) < 0:
        raise ValueError(f"it claims {metadata.num_rows:,} rows, its groups {sum(groups):,}")
    if metadata.num_rows > most_rows:
        raise ValueError(
            f"it claims {metadata.num_rows:,} rows, so many bytes have {most_rows:,} at most"
        )


def restore(
    file: pq.ParquetFile,
    schema: pa.Schema,
    *,
    path: str,
    of: str = "",
    groups: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Reads row groups (default: all) and columns (default: all of `schema`) in its types.

    `path` and `of` as in `decode_table`.

    Raises:
        DamagedError: they can't be read or are of other types.
    """
    wanted = pa.schema([schema.field(name) for name in columns or schema.names])
    try:
        numbers = range(file.num_row_groups) if groups is None else groups
        is_large = file.metadata.num_rows > DEFAULT_GROUP_ROWS  # below, threads cost more than help
        table = file.read_row_groups(list(numbers), columns=wanted.names, use_threads=is_large)
        return table.select(wanted.names).cast(wanted)
    except StoreError:
        raise
    except _DAMAGE as error:
        raise _damaged(path, of, error) from error


def _damaged(path: str, of: str, error: Exception) -> DamagedError:
    what = f"{path}, {of}," if of else path
    return DamagedError(
        f"{what} can't be read as its table: {error or type(error).__name__}; the version that "
        "names it can't be used in full; restore it from a copy, or run `datapipe verify` to see "
        "what else is damaged"
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
