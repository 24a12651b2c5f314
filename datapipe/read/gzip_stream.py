"""gzip in all its shapes: many members, empty members, zero padding, garbage behind, cut anywhere.

Uses zlib; a call's output is bounded, so a ratio bomb costs time and no memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from datapipe.read.damage import RAW_LIMIT_BYTES, StreamDamage

if TYPE_CHECKING:
    from zlib import _Decompress

__all__ = ["GZIP_MAGIC", "gunzip"]

GZIP_MAGIC = b"\x1f\x8b\x08"
_OUTPUT_BYTES = 1 << 20
_GZIP_ONLY = 16 + zlib.MAX_WBITS


def gunzip(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the members' contents, one behind the other.

    Zero bytes behind a member are padding. Anything else there that isn't a member is garbage:
    gzip(1) ignores it with a warning, here it is damage that says so.

    Raises:
        StreamDamage: truncated_gzip, corrupt_gzip or trailing_garbage, after all bytes that can be
            had; those of a corrupt member may be wrong.
    """
    pending = b""
    members = trusted = 0
    while True:
        pending = _skip_padding(pending, chunks) if members else _at_least(pending, 1, chunks)
        if not pending:
            return
        if members:
            pending = _at_least(pending, len(GZIP_MAGIC), chunks)
            if not GZIP_MAGIC.startswith(pending[: len(GZIP_MAGIC)]):
                raise _garbage(pending, chunks)
        try:
            pending, num_bytes = yield from _member(pending, chunks)
        except StreamDamage as damage:
            damage.trusted = trusted if damage.error == "corrupt_gzip" else None
            raise
        members += 1
        trusted += num_bytes


def _member(data: bytes, chunks: Iterator[bytes]) -> Generator[bytes, None, tuple[bytes, int]]:
    """Yields one member's content; returns what lies behind it, and how many bytes it has."""
    num_bytes = 0
    state = zlib.decompressobj(_GZIP_ONLY)
    while not state.eof:
        if not data:
            data = next(chunks, b"")
            if not data:
                raise StreamDamage(
                    "truncated_gzip", "the file ends inside a gzip member", truncated=True
                )
        before = state.copy()
        try:
            output = state.decompress(data, _OUTPUT_BYTES)
        except zlib.error as error:
            yield _salvage(before, data)
            raise StreamDamage("corrupt_gzip", _reason(error), truncated=True) from error
        if output:
            yield output
        num_bytes += len(output)
        data = state.unconsumed_tail
    return state.unused_data, num_bytes


def _salvage(state: _Decompress, data: bytes) -> bytes:
    """Returns what can be had of `data` before its first wrong bit; a failing call returns none."""
    parts: list[bytes] = []
    while data:
        half = (len(data) + 1) // 2
        trial = state.copy()
        try:
            output = trial.decompress(data[:half], _OUTPUT_BYTES)
        except zlib.error:
            if half == 1:
                return b"".join(parts) + _single_bytes(state, data[:1])
            data = data[:half]
            continue
        parts.append(output)
        state, data = trial, trial.unconsumed_tail + data[half:]
    return b"".join(parts)


def _single_bytes(state: _Decompress, data: bytes) -> bytes:
    output = bytearray()
    try:
        while piece := state.decompress(data, 1):
            output += piece
            data = state.unconsumed_tail
    except zlib.error:
        pass
    return bytes(output)


def _at_least(data: bytes, count: int, chunks: Iterator[bytes]) -> bytes:
    while len(data) < count and (more := next(chunks, b"")):
        data += more
    return data


def _skip_padding(data: bytes, chunks: Iterator[bytes]) -> bytes:
    data = data.lstrip(b"\0")
    while not data and (more := next(chunks, b"")):
        data = more.lstrip(b"\0")
    return data


def _garbage(data: bytes, chunks: Iterator[bytes]) -> StreamDamage:
    data = _at_least(data, RAW_LIMIT_BYTES, chunks)[:RAW_LIMIT_BYTES]
    return StreamDamage(
        "trailing_garbage", "bytes that aren't gzip follow the data", raw=data, truncated=True
    )


def _reason(error: zlib.error) -> str:
    return f"the gzip data is damaged: {str(error).split(': ', 1)[-1]}"
