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

_ROWS_PREPARED = 1 << 16
_ROWS_AT_ONCE = 1 << 11
"""So few that the encoded rows are in the processor's cache when they are hashed: 0.6 MB."""

_AS_SIGNED = ABSENT - (1 << 64)
_SEPARATOR = pa.scalar(b"", pa.large_binary())

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
        bytes: uint8, the rows of the stretch one after the other; valid until the next stretch.
        offsets: int64 [rows + 1]; row i is bytes[offsets[i]:offsets[i + 1]]; valid as long.
    """
    for start in range(0, table.num_rows, _ROWS_PREPARED):
        stretch = table.slice(start, _ROWS_PREPARED)
        pieces = _Pieces(num_rows=stretch.num_rows)
        for column in stretch.columns:
            _add_column(pieces, column)
        for first in range(0, stretch.num_rows, _ROWS_AT_ONCE):
            rows = pieces.joined(first, min(first + _ROWS_AT_ONCE, stretch.num_rows))
            bounds = _offsets(rows)
            yield _buffer(rows, 2)[bounds[0] : bounds[-1]], bounds - bounds[0]


@dataclass(kw_only=True, slots=True)
class _Pieces:
    """Rows taking shape: Arrow joins the pieces, and neighbours of one width are one piece."""

    num_rows: int
    done: list[pa.Array | _Fixed] = field(default_factory=list)

    def add_fixed(self, data: Words | Bytes) -> None:
        """Adds what is equally wide in all rows, [rows, width]; or [1, width]: the same."""
        if not self.done or not isinstance(self.done[-1], _Fixed):
            self.done.append(_Fixed(num_rows=min(self.num_rows, _ROWS_AT_ONCE)))
        self.done[-1].parts.append(data)

    def add_constant(self, data: bytes) -> None:
        """Adds what is the same in all rows."""
        self.add_fixed(np.frombuffer(data, dtype=np.uint8).reshape(1, -1))

    def add_variable(self, data: pa.Array) -> None:
        """Adds a large_binary array without nulls."""
        bounds = _offsets(data)
        width = int(bounds[1] - bounds[0])
        if (bounds[1:] - bounds[:-1] == width).all():  # ids of one kind, numbered names
            self.add_fixed(_buffer(data, 2)[bounds[0] : bounds[-1]].reshape(len(data), width))
        else:
            self.done.append(data)

    def joined(self, start: int, stop: int) -> pa.Array:
        """Returns rows [start, stop) as large_binary; valid until the next call."""
        pieces = [
            piece.rows(start, stop)
            if isinstance(piece, _Fixed)
            else piece.slice(start, stop - start)
            for piece in self.done
        ]
        if len(pieces) == 1:
            return pieces[0]
        return pc.binary_join_element_wise(*pieces, _SEPARATOR)


class _Fixed:
    """A stretch of a row that is equally wide in all rows, in one buffer for all stretches."""

    def __init__(self, *, num_rows: int) -> None:
        self.parts: list[Words | Bytes] = []
        self._num_rows = num_rows
        self._laid_out: pa.Array | None = None
        self._places: list[tuple[Words | Bytes, Words | Bytes]] = []

    def rows(self, start: int, stop: int) -> pa.Array:
        """Returns rows [start, stop) as large_binary; valid until the next call."""
        if self._laid_out is None:
            self._laid_out = self._lay_out()
        for place, data in self._places:
            place[: stop - start] = data[start:stop]
        return self._laid_out.slice(0, stop - start)

    def _lay_out(self) -> pa.Array:
        """Returns rows with what is the same in all of them; notes where the rest belongs."""
        widths = [part.shape[1] * part.itemsize for part in self.parts]
        rows = np.empty((self._num_rows, sum(widths)), dtype=np.uint8)
        for part, width, end in zip(self.parts, widths, np.cumsum(widths).tolist(), strict=True):
            place = rows[:, end - width : end]
            if len(part) == 1:
                place[:] = part.view(np.uint8)
            else:
                self._places.append((place.view(part.dtype), part))
        bounds = np.arange(self._num_rows + 1, dtype=np.int64) * rows.shape[1]
        return _binary(rows, bounds)


def _add_column(pieces: _Pieces, column: pa.ChunkedArray) -> None:
    array = _one_chunk(column)
    if array.null_count == len(array):
        return pieces.add_constant(_length(None))
    if pa.types.is_dictionary(array.type):
        if len(array.dictionary) < pieces.num_rows:
            return _add_names(pieces, array)
        array = array.cast(array.type.value_type)
    if _is_text(array.type) or (_is_hash(array.type) and not _is_whole(array)):
        return _add_text(pieces, array)
    words = _words(array)
    if array.null_count:
        return _add_with_gaps(pieces, words, array)
    pieces.add_constant(_length(8 * words.shape[1]))
    pieces.add_fixed(words)


def _add_names(pieces: _Pieces, array: pa.DictionaryArray) -> None:
    """Adds a column of few values: each is encoded once."""
    names = _encoded_names(array.dictionary.cast(pa.large_binary()))
    codes = array.indices.fill_null(len(array.dictionary))
    numbers = codes.to_numpy(zero_copy_only=False)
    if (numbers == numbers[0]).all():
        pieces.add_constant(names[int(numbers[0])].as_py())
    else:
        pieces.add_variable(names.take(codes))


def _encoded_names(values: pa.Array) -> pa.Array:
    """Returns each value as it stands in a row, and the mark of absence behind them."""
    lengths = _binary(_lengths(values), np.arange(len(values) + 1, dtype=np.int64) * 8)
    absent = pa.array([_length(None)], pa.large_binary())
    return pa.concat_arrays([pc.binary_join_element_wise(lengths, values, _SEPARATOR), absent])


def _add_text(pieces: _Pieces, array: pa.Array) -> None:
    values = array.cast(pa.large_binary())
    pieces.add_fixed(_lengths(values))
    pieces.add_variable(values.fill_null(b""))


def _lengths(values: pa.Array) -> Words:
    """Returns what stands before each value, uint64 [rows, 1]."""
    lengths = pc.binary_length(values).fill_null(_AS_SIGNED)
    words: Words = lengths.to_numpy().view("<u8").reshape(-1, 1)
    return words


def _length(num_bytes: int | None) -> bytes:
    """Returns what stands before a value of so many bytes; None: before none."""
    return (ABSENT if num_bytes is None else num_bytes).to_bytes(8, "little")


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
