"""The canonical encoding of table rows, whole columns at a time; digests of rows over it.

Row i of a table is the hashed tuple (`hashing.py`) of its columns in schema order. Chunking,
dictionaries and string widths of the Arrow table don't show in it.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
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
    hashes = []
    for encoded, offsets in encode_rows(table):
        view = encoded.data
        hashes += [
            hashlib.blake2b(view[start:end], digest_size=16).digest()
            for start, end in itertools.pairwise(offsets.tolist())
        ]
    return np.frombuffer(b"".join(hashes), dtype="V16")


def encode_rows(table: pa.Table) -> Iterator[tuple[Bytes, Offsets]]:
    """Yields the encoded rows of stretches of the table, in order.

    Yields:
        bytes: uint8, the rows of the stretch one after the other.
        offsets: int64 [rows + 1]; row i is bytes[offsets[i]:offsets[i + 1]].
    """
    for start in range(0, table.num_rows, _ROWS_AT_ONCE):
        stretch = table.slice(start, _ROWS_AT_ONCE)
        pieces = _Pieces(num_rows=stretch.num_rows)
        for column in stretch.columns:
            _add_column(pieces, column)
        yield pieces.joined()


@dataclass(kw_only=True, slots=True)
class _Pieces:
    """Rows taking shape: Arrow joins pieces, and what has one width in all rows is one piece."""

    num_rows: int
    done: list[pa.Array] = field(default_factory=list)
    fixed: list[Bytes] = field(default_factory=list)

    def add_fixed(self, data: Bytes) -> None:
        """Adds uint8 [rows, width]."""
        self.fixed.append(data)

    def add_variable(self, data: pa.Array) -> None:
        """Adds a large_binary array without nulls."""
        self._close_fixed()
        self.done.append(data)

    def joined(self) -> tuple[Bytes, Offsets]:
        """Returns all rows and their bounds."""
        self._close_fixed()
        rows = self.done[0]
        if len(self.done) > 1:
            rows = pc.binary_join_element_wise(*self.done, pa.scalar(b"", pa.large_binary()))
        bounds = _offsets(rows)
        return _buffer(rows, 2)[bounds[0] : bounds[-1]], bounds - bounds[0]

    def _close_fixed(self) -> None:
        if not self.fixed:
            return
        data = np.concatenate(self.fixed, axis=1)
        bounds = np.arange(self.num_rows + 1, dtype=np.int64) * data.shape[1]
        buffers = [None, pa.py_buffer(bounds.data), pa.py_buffer(data.data)]
        self.done.append(
            pa.LargeBinaryArray.from_buffers(pa.large_binary(), self.num_rows, buffers)
        )
        self.fixed.clear()


def _add_column(pieces: _Pieces, column: pa.ChunkedArray) -> None:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not _is_text(column.type) and not column.null_count:
        data = _fixed(column)
        pieces.add_fixed(_prefixes(np.full(len(data), data.shape[1], dtype=np.int64)))
        pieces.add_fixed(data)
        return
    values = _one_chunk(column if _is_text(column.type) else _as_binary(column))
    values = values.cast(pa.large_binary())
    lengths = pc.binary_length(values).fill_null(ABSENT - (1 << 64)).to_numpy()
    pieces.add_fixed(_prefixes(lengths))
    pieces.add_variable(values.fill_null(b"") if values.null_count else values)


def _prefixes(lengths: Offsets) -> Bytes:
    """Returns lengths as uint64 little-endian, uint8 [rows, 8]; -1 has the bits of ABSENT."""
    return np.ascontiguousarray(lengths, dtype="<i8").view(np.uint8).reshape(-1, 8)


def _as_binary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns fixed-width values with nulls among them as large_binary."""
    if pa.types.is_fixed_size_binary(column.type):
        return column.cast(pa.large_binary())
    filled = _fixed(column.fill_null(False if pa.types.is_boolean(column.type) else 0))
    values = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(8), len(filled), [None, pa.py_buffer(filled.data)]
    ).cast(pa.large_binary())
    absent = pa.scalar(None, pa.large_binary())
    return pa.chunked_array([pc.if_else(_one_chunk(pc.is_null(column)), absent, values)])


def _fixed(column: pa.ChunkedArray) -> Bytes:
    """Returns values without nulls as uint8 [rows, width]; numbers as 8 little-endian bytes."""
    if pa.types.is_fixed_size_binary(column.type):
        array = _one_chunk(column)
        width = array.type.byte_width
        return _buffer(array, 1).reshape(-1, width)[array.offset : array.offset + len(array)]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: npt.NDArray[Any] = column.to_numpy()
    wide = {"f": "<f8", "u": "<u8"}.get(values.dtype.kind, "<i8")
    return np.ascontiguousarray(values, dtype=wide).view(np.uint8).reshape(-1, 8)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _is_text(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    )


def _offsets(array: pa.Array) -> Offsets:
    bounds: Offsets = np.frombuffer(array.buffers()[1], dtype=np.int64)
    return bounds[array.offset : array.offset + len(array) + 1]


def _buffer(array: pa.Array, index: int) -> Bytes:
    buffer = array.buffers()[index]
    return np.frombuffer(buffer if buffer is not None else b"", dtype=np.uint8)
