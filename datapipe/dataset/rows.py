"""The canonical encoding of table rows, whole columns at a time; digests of rows over it.

Row i of a table is the hashed tuple (`hashing.py`) of its columns in schema order. Chunking,
dictionaries and string widths of the Arrow table don't show in it. About 1 million rows a second.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dataset.hashing import ABSENT

__all__ = ["encode_rows", "row_hashes", "rows_sha256"]

_ROWS_AT_ONCE = 1 << 16

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]


def rows_sha256(table: pa.Table) -> str:
    """Returns the logical digest of a table: SHA-256 over its encoded rows, in hex."""
    digest = hashlib.sha256()
    for encoded, _ in encode_rows(table):
        digest.update(encoded.data)
    return digest.hexdigest()


def row_hashes(table: pa.Table) -> npt.NDArray[np.void]:
    """Returns the BLAKE2b-128 of each encoded row, 16-byte items [rows]."""
    hashes = bytearray()
    for encoded, offsets in encode_rows(table):
        view = encoded.data
        for start, end in itertools.pairwise(offsets.tolist()):
            hashes += hashlib.blake2b(view[start:end], digest_size=16).digest()
    return np.frombuffer(hashes, dtype="V16")


def encode_rows(table: pa.Table) -> Iterator[tuple[Bytes, Offsets]]:
    """Yields the encoded rows of stretches of the table, in order.

    Yields:
        bytes: uint8, the rows of the stretch one after the other.
        offsets: int64 [rows + 1]; row i is bytes[offsets[i]:offsets[i + 1]].
    """
    for start in range(0, table.num_rows, _ROWS_AT_ONCE):
        yield _encode_stretch(table.slice(start, _ROWS_AT_ONCE))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Column:
    data: Bytes
    starts: Offsets
    lengths: Offsets
    absent: npt.NDArray[np.bool_] | None


def _encode_stretch(table: pa.Table) -> tuple[Bytes, Offsets]:
    columns = [_column(table.column(i)) for i in range(table.num_columns)]
    widths = np.full(table.num_rows, 8 * len(columns), dtype=np.int64)
    for column in columns:
        widths += column.lengths
    offsets = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    encoded = np.empty(offsets[-1], dtype=np.uint8)
    at = offsets[:-1].copy()
    for column in columns:
        _place_lengths(encoded, at, column)
        at += 8
        _place_data(encoded, at, column)
        at += column.lengths
    return encoded, offsets


def _place_lengths(encoded: Bytes, at: Offsets, column: _Column) -> None:
    lengths = column.lengths.astype("<u8")
    if column.absent is not None:
        lengths[column.absent] = ABSENT
    encoded[at[:, None] + np.arange(8)] = lengths.view(np.uint8).reshape(-1, 8)


def _place_data(encoded: Bytes, at: Offsets, column: _Column) -> None:
    if not len(at):
        return
    width = int(column.lengths[0])
    if width <= 64 and (column.lengths == width).all():
        steps = np.arange(width)
        encoded[at[:, None] + steps] = column.data[column.starts[:, None] + steps]
        return
    before = np.cumsum(column.lengths) - column.lengths
    steps = np.arange(int(column.lengths.sum()))
    source = np.repeat(column.starts - before, column.lengths) + steps
    encoded[np.repeat(at - before, column.lengths) + steps] = column.data[source]


def _column(column: pa.ChunkedArray) -> _Column:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _column(column.cast(kind.value_type))
    array = _combined(column)
    absent = _absent(array)
    if pa.types.is_fixed_size_binary(kind):
        return _fixed(_buffer(array, 1), width=kind.byte_width, skip=array.offset, absent=absent)
    if _is_text(kind):
        return _variable(array, absent=absent)
    return _fixed(_words(array), width=8, skip=0, absent=absent)


def _combined(column: pa.ChunkedArray) -> pa.Array:
    wide = column.cast(pa.large_binary()) if _is_text(column.type) else column
    return wide.chunk(0) if wide.num_chunks == 1 else wide.combine_chunks()


def _is_text(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _absent(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    if array.null_count == 0:
        return None
    missing: npt.NDArray[np.bool_] = pc.is_null(array).to_numpy(zero_copy_only=False)
    return missing


def _fixed(data: Bytes, *, width: int, skip: int, absent: npt.NDArray[np.bool_] | None) -> _Column:
    count = len(data) // width - skip if width else 0
    if absent is not None:
        count = len(absent)
    lengths = np.full(count, width, dtype=np.int64)
    if absent is not None:
        lengths[absent] = 0
    starts = (np.arange(count, dtype=np.int64) + skip) * width
    return _Column(data=data, starts=starts, lengths=lengths, absent=absent)


def _variable(array: pa.Array, *, absent: npt.NDArray[np.bool_] | None) -> _Column:
    stretch = slice(array.offset, array.offset + len(array) + 1)
    bounds = _buffer(array, 1).view(np.int64)[stretch]
    lengths = np.diff(bounds)
    if absent is not None:
        lengths = np.where(absent, 0, lengths)
    return _Column(data=_buffer(array, 2), starts=bounds[:-1], lengths=lengths, absent=absent)


def _words(array: pa.Array) -> Bytes:
    """Returns numbers as 8 little-endian bytes each; absent ones as any."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        array = array.cast(pa.int64())
    if array.null_count:
        array = array.fill_null(False if pa.types.is_boolean(kind) else 0)
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    wide = {"f": "<f8", "u": "<u8"}.get(values.dtype.kind, "<i8")
    return np.ascontiguousarray(values, dtype=wide).view(np.uint8)


def _buffer(array: pa.Array, index: int) -> Bytes:
    buffer = array.buffers()[index]
    return np.frombuffer(buffer if buffer is not None else b"", dtype=np.uint8)
