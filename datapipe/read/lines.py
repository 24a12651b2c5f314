"""Cutting a stream of bytes into lines, with the place of each; memory is bounded by one record.

Only LF ends a line, and a CR before it belongs to the line end: U+2028, U+0085, form feeds and the
like may stand unescaped inside JSON strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.read.damage import RAW_LIMIT_BYTES, Fault

_LF, _CR = ord("\n"), ord("\r")

__all__ = ["LineBlock", "LineCutter", "cut_lines", "is_utf8"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LineBlock:
    """Some whole lines, ascending in the stream."""

    lines: list[bytes]
    """Each without its LF, and without one CR before it."""
    offsets: npt.NDArray[np.int64]
    """Where each starts in the stream."""
    data: bytes
    """The bytes that the lines were cut from, for looking at all of them at once."""
    blanks: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Where the empty lines start; they aren't among `lines`, of which some may be white space."""
    unterminated: bool = False
    """The last line is the stream's end and has no LF."""


def cut_lines(
    chunks: Iterator[bytes], cutter: LineCutter, *, end: int | None = None
) -> Iterator[LineBlock | Fault]:
    """Yields the stream's lines that start before `end`, and a fault for each that is too long.

    Raises:
        StreamDamage: the stream's own; the cutter then holds the line that was cut.
    """
    for chunk in chunks:
        for piece in cutter.feed(chunk):
            yield from _before(piece, end)
        if end is not None and cutter.beyond(end):
            return
    for piece in cutter.finish():
        yield from _before(piece, end)


@dataclass(slots=True, kw_only=True)
class LineCutter:
    """Cuts chunks into lines; between two chunks it holds the line that isn't finished."""

    max_record_bytes: int
    """A longer line becomes a fault, without ever being in memory whole."""
    offset: int = 0
    """Where the unfinished line starts in the stream."""
    foreign: bool = False
    """The unfinished line began before this range: it is passed over."""
    length: int = 0
    """Bytes of the unfinished line so far."""
    _parts: list[bytes] = field(default_factory=list)
    _held: int = 0

    def feed(self, chunk: bytes) -> Iterator[LineBlock | Fault]:
        """Takes the next bytes; yields what they complete."""
        first = chunk.find(b"\n")
        if first < 0:
            self._extend(chunk)
            return
        self._extend(chunk[:first])
        yield from self._finished_line(unterminated=False)
        last = chunk.rfind(b"\n")
        if last > first:
            yield from self._whole_lines(chunk[first + 1 : last])
        self._extend(chunk[last + 1 :])

    def finish(self) -> Iterator[LineBlock | Fault]:
        """Yields the line behind the last LF, if there is one."""
        if self.length:
            yield from self._finished_line(unterminated=True)

    def beyond(self, end: int) -> bool:
        """Tells that no further line starts before `end`."""
        reached = self.offset + self.length if self.foreign else self.offset
        return reached >= end

    def beginning(self) -> bytes:
        """Returns what is kept of the unfinished line, at most RAW_LIMIT_BYTES."""
        return b"".join(self._parts)[:RAW_LIMIT_BYTES]

    def _extend(self, data: bytes) -> None:
        self.length += len(data)
        if self.foreign or self._held > self.max_record_bytes:
            return
        self._parts.append(data)
        self._held += len(data)
        if self._held > self.max_record_bytes:
            self._parts = [self.beginning()]

    def _finished_line(self, *, unterminated: bool) -> Iterator[LineBlock | Fault]:
        offset, length, foreign = self.offset, self.length, self.foreign
        parts, self._parts = self._parts, []
        self.offset, self.length, self.foreign, self._held = offset + length + 1, 0, False, 0
        if foreign:
            return
        line = b"".join(parts)
        if length > self.max_record_bytes:
            yield _too_large(line, offset=offset, length=length, limit=self.max_record_bytes)
            return
        yield LineBlock(
            lines=[line[:-1] if line.endswith(b"\r") else line],
            offsets=np.array([offset], dtype=np.int64),
            data=line,
            unterminated=unterminated,
        )

    def _whole_lines(self, data: bytes) -> Iterator[LineBlock | Fault]:
        characters = np.frombuffer(data + b"\n", dtype=np.uint8)
        ends = np.flatnonzero(characters == _LF)
        starts = np.concatenate([[0], ends[:-1] + 1])
        lengths = ends - starts
        blank = (lengths == 0) | ((lengths == 1) & (characters[starts] == _CR))
        blanks = starts[blank] + self.offset
        if blanks.size:
            starts, ends, lengths = starts[~blank], ends[~blank], lengths[~blank]
            lines = [data[i:j] for i, j in zip(starts.tolist(), ends.tolist(), strict=True)]
        else:
            lines = data.split(b"\n")
        offsets = starts + self.offset
        self.offset += len(data) + 1
        if b"\r" in data:
            lines = [line[:-1] if line.endswith(b"\r") else line for line in lines]
        long = np.flatnonzero(lengths > self.max_record_bytes)
        for index in long[::-1].tolist():
            yield _too_large(
                lines.pop(index),
                offset=int(offsets[index]),
                length=int(lengths[index]),
                limit=self.max_record_bytes,
            )
        yield LineBlock(lines=lines, offsets=np.delete(offsets, long), data=data, blanks=blanks)


def is_utf8(data: bytes) -> bool:
    """Tells whether `data` is valid UTF-8; measured 2-25 GB/s, several times `bytes.decode`."""
    if data.isascii():
        return True
    offsets = pa.py_buffer(np.array([0, len(data)], dtype=np.int64))
    text = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(data)])
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _before(piece: LineBlock | Fault, end: int | None) -> Iterator[LineBlock | Fault]:
    if end is None:
        yield piece
    elif isinstance(piece, Fault):
        if piece.offset < end:
            yield piece
    else:
        count = int(np.searchsorted(piece.offsets, end))
        yield LineBlock(
            lines=piece.lines[:count],
            offsets=piece.offsets[:count],
            data=piece.data,
            blanks=piece.blanks[: int(np.searchsorted(piece.blanks, end))],
            unterminated=piece.unterminated and count == len(piece.lines),
        )


def _too_large(line: bytes, *, offset: int, length: int, limit: int) -> Fault:
    return Fault(
        error="record_too_large",
        detail=f"the record has {length:,} bytes, {limit:,} are allowed",
        offset=offset,
        length=length,
        raw=line[:RAW_LIMIT_BYTES],
    )
