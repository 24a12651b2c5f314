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
_AS_SIGNED = ABSENT - (1 << 64)
_NOTHING = pa.array([None], pa.large_binary())

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
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
        rows = pieces.joined()
        bounds = _offsets(rows)
        yield _buffer(rows, 2)[bounds[0] : bounds[-1]], bounds - bounds[0]


@dataclass(kw_only=True, slots=True)
class _Pieces:
    """Rows taking shape: Arrow joins the pieces, and neighbours of one width are one piece."""

    num_rows: int
    done: list[pa.Array | pa.Scalar] = field(default_factory=list)
    fixed: list[Words | int] = field(default_factory=list)

    def add_words(self, words: Words | int) -> None:
        """Adds uint64 [rows, width], or one word that is the same in all rows."""
        self.fixed.append(words)

    def add_variable(self, data: pa.Array) -> None:
        """Adds a large_binary array without nulls."""
        self._close_fixed()
        self.done.append(data)

    def add_constant(self, data: bytes) -> None:
        """Adds what is the same in all rows."""
        self._close_fixed()
        if self.done and isinstance(self.done[-1], pa.Scalar):
            data = self.done.pop().as_py() + data
        self.done.append(pa.scalar(data, pa.large_binary()))

    def joined(self) -> pa.Array:
        """Returns all rows as large_binary."""
        self._close_fixed()
        if len(self.done) > 1:
            return pc.binary_join_element_wise(*self.done, pa.scalar(b"", pa.large_binary()))
        (rows,) = self.done
        return pa.repeat(rows, self.num_rows) if isinstance(rows, pa.Scalar) else rows

    def _close_fixed(self) -> None:
        if not self.fixed:
            return
        widths = [1 if isinstance(words, int) else words.shape[1] for words in self.fixed]
        rows = np.empty((self.num_rows, sum(widths)), dtype="<u8")
        for words, width, end in zip(self.fixed, widths, np.cumsum(widths).tolist(), strict=True):
            rows[:, end - width : end] = words
        bounds = np.arange(self.num_rows + 1, dtype=np.int64) * (8 * rows.shape[1])
        self.done.append(_binary(rows, bounds))
        self.fixed.clear()


def _add_column(pieces: _Pieces, column: pa.ChunkedArray) -> None:
    array = _one_chunk(column)
    if pa.types.is_dictionary(array.type):
        if len(array.dictionary) < pieces.num_rows:
            return _add_names(pieces, array)
        array = array.cast(array.type.value_type)
    if _is_text(array.type) or (_is_hash(array.type) and not _is_whole(array)):
        return _add_text(pieces, array)
    words = _words(array)
    if array.null_count:
        return _add_with_gaps(pieces, words, array)
    pieces.add_words(8 * words.shape[1])
    pieces.add_words(words)


def _add_names(pieces: _Pieces, array: pa.DictionaryArray) -> None:
    """Adds a column of few values: each is encoded once."""
    absent = len(array.dictionary)
    values = pa.concat_arrays([array.dictionary.cast(pa.large_binary()), _NOTHING])
    encoded = _Pieces(num_rows=len(values))
    _add_text(encoded, values)
    names = encoded.joined()
    codes = array.indices.fill_null(absent) if array.indices.null_count else array.indices
    numbers = codes.to_numpy(zero_copy_only=False)
    if (numbers == numbers[0]).all():
        pieces.add_constant(names[int(numbers[0])].as_py())
    else:
        pieces.add_variable(names.take(codes))


def _add_text(pieces: _Pieces, array: pa.Array) -> None:
    values = array.cast(pa.large_binary())
    if values.null_count == len(values):
        return pieces.add_constant(ABSENT.to_bytes(8, "little"))
    lengths = pc.binary_length(values)
    if values.null_count:
        lengths, values = lengths.fill_null(_AS_SIGNED), values.fill_null(b"")
    pieces.add_words(lengths.to_numpy().view("<u8").reshape(-1, 1))
    pieces.add_variable(values)


def _add_with_gaps(pieces: _Pieces, words: Words, array: pa.Array) -> None:
    """Adds numbers where there are any, and only the mark of absence elsewhere."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    prefixes = np.where(valid, np.uint64(8), np.uint64(ABSENT))
    kept = np.stack([np.ones_like(valid), valid], axis=1)
    bounds = np.concatenate([[0], np.cumsum(np.where(valid, 16, 8))])
    pieces.add_variable(_binary(np.stack([prefixes, words[:, 0]], axis=1)[kept], bounds))


def _binary(data: npt.NDArray[Any], bounds: Offsets) -> pa.Array:
    buffers = [None, pa.py_buffer(bounds.data), pa.py_buffer(np.ascontiguousarray(data).data)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)


def _words(array: pa.Array) -> Words:
    """Returns values as uint64 [rows, width / 8]; numbers as one word, nulls as any."""
    if _is_hash(array.type):
        width = array.type.byte_width
        rows = _buffer(array, 1).reshape(-1, width)[array.offset : array.offset + len(array)]
        return rows.view("<u8")
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    if array.null_count:
        array = array.fill_null(False if pa.types.is_boolean(array.type) else 0)
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    wide = {"f": "<f8", "u": "<u8"}.get(values.dtype.kind, "<i8")
    return np.ascontiguousarray(values, dtype=wide).view("<u8").reshape(-1, 1)


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


def _is_hash(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(kind))


def _is_whole(hashes: pa.Array) -> bool:
    """Tells whether every row has a hash, in whole words."""
    return not hashes.null_count and hashes.type.byte_width % 8 == 0


def _offsets(array: pa.Array) -> Offsets:
    bounds: Offsets = np.frombuffer(array.buffers()[1], dtype=np.int64)
    return bounds[array.offset : array.offset + len(array) + 1]


def _buffer(array: pa.Array, index: int) -> Bytes:
    buffer = array.buffers()[index]
    return np.frombuffer(buffer if buffer is not None else b"", dtype=np.uint8)
