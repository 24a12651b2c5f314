"""Cutting a JSON array into its elements, or a file of JSON values into those; one is in memory.

A value that isn't JSON is a fault, and cutting goes on at the next one: a string can't hold a line
end, so one without its closing quote is noticed there; and values begin alike.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

import numpy as np

from datapipe.read.damage import RAW_LIMIT_BYTES, Fault, StreamDamage
from datapipe.read.lines import LineBlock

__all__ = [
    "ELEMENTS",
    "FIRST_ELEMENTS",
    "LAST_ELEMENTS",
    "VALUES",
    "ValueCutter",
    "cut_values",
]

VALUES = "values"
FIRST_ELEMENTS, ELEMENTS, LAST_ELEMENTS = "first elements", "elements", "last elements"
"""What a stretch of a JSON file is."""

_SPACE = b" \t\r\n"
_NO_SPACE = re.compile(rb"[^ \t\r\n]")
_OUTSIDE = re.compile(rb'["\[\]{},]')
_INSIDE = re.compile(rb'[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+')
"""What of a string lies before its end, a line end, or a backslash that a chunk ends with."""
_FIRST_KEY = re.compile(rb'\{\s*"[^"\\\n]{1,200}"\s*:')
_OPEN, _CLOSE = b"[{", b"]}"
_BLOCK_VALUES = 256
_RETRIES = 16  # of looking for values inside one that has no end


def cut_values(chunks: Iterator[bytes], cutter: ValueCutter) -> Iterator[LineBlock | Fault]:
    """Yields the stream's values, and a fault for each that is too long.

    Raises:
        StreamDamage: the stream's own; the cutter then holds the value that was cut.
    """
    try:
        for chunk in chunks:
            yield from cutter.feed(chunk)
    except StreamDamage:
        yield from cutter.interrupt()
        raise
    yield from cutter.finish()


class ValueCutter:
    """Cuts chunks into values; between two chunks it holds the one that isn't finished."""

    def __init__(
        self, *, max_record_bytes: int, start: int = 0, context: str | None = None
    ) -> None:
        """Begins at `start`; `context` is that of a stretch: VALUES, or the FIRST_ELEMENTS of an
        array, more of its ELEMENTS, or its LAST_ELEMENTS. None: the stream is a whole file's.
        """
        self._max = max_record_bytes
        self._position = start  # in the stream, of the next byte that is looked at
        is_beginning = context in (None, FIRST_ELEMENTS)
        self._is_array = None if is_beginning else context != VALUES
        self._may_be_open = context in (FIRST_ELEMENTS, ELEMENTS)
        self.is_over = False
        """Whether the array has ended."""
        self._open = bytearray()  # brackets that aren't closed
        self._in_string = False
        self._escaped = False
        self._is_broken = False
        self._key: bytes | None = None  # what values begin with
        self._held = bytearray()
        self._pending = b""  # may be the start of what values begin with
        self.offset = start
        """Where the unfinished value starts in the stream."""
        self.length = 0
        """Bytes of the unfinished value so far."""
        self._values: list[bytes] = []
        self._offsets: list[int] = []

    def beginning(self) -> bytes:
        """Returns what is kept of the unfinished value, at most RAW_LIMIT_BYTES."""
        return bytes(self._held[:RAW_LIMIT_BYTES])

    def feed(self, chunk: bytes) -> Iterator[LineBlock | Fault]:
        """Takes the next bytes; yields what they complete."""
        chunk, self._pending = self._pending + chunk, b""
        place = 0
        while place < len(chunk):
            if self._is_array is None:
                place = self._begin(chunk, place)
            elif self._is_broken:
                place = yield from self._resume(chunk, place)
            elif self._in_string:
                place = self._string(chunk, place)
            else:
                place = yield from self._structure(chunk, place)
        self._position += len(chunk) - len(self._pending)
        if len(self._values) >= _BLOCK_VALUES or len(chunk) >= 1 << 16:
            yield from self.flush()

    def finish(self) -> Iterator[LineBlock | Fault]:
        """Yields what is left at the end of the stream."""
        for _ in range(0 if self.is_over else _RETRIES):
            key, rest = self._key, bytes(self._held) + self._pending
            inside = len(rest) - len(rest.lstrip(_SPACE)) + 1
            found = rest.find(key, inside) if key is not None else -1
            if found < 0 or self.length > self._max:
                break
            # A value that has no end has swallowed those behind it.
            self._pending, self._position = b"", self.offset + found
            self._held, self.length = bytearray(rest[:found]), found
            yield from self.flush()
            yield self._fault("invalid_json", "the value isn't JSON: it has no end", rest[:found])
            self._drop()
            self.offset = self._position
            yield from self.feed(rest[found:])
        yield from self.interrupt()

    def interrupt(self) -> Iterator[LineBlock | Fault]:
        """Yields the values that are whole where the stream ends."""
        is_whole = not (self._open or self._in_string or self._is_broken or self.is_over)
        if is_whole and self._held.rstrip(_SPACE).endswith(b"}"):
            offset = self.offset + self.length
            yield from self._complete(is_last=True)
            self.offset = offset
        yield from self.flush()

    @property
    def is_whole(self) -> bool:
        """Tells whether no value and no array is open, and nothing stands behind an array."""
        is_open = bool(self._held.strip(_SPACE) or self._pending)
        return not is_open and (self.is_over or not self._is_array or self._may_be_open)

    @property
    def is_array(self) -> bool:
        """Whether it is an array that is cut, as far as is known."""
        return bool(self._is_array)

    def _begin(self, chunk: bytes, place: int) -> int:
        found = _NO_SPACE.search(chunk, place)
        if found is None:
            return len(chunk)
        place = found.start()
        if chunk.startswith(b"\xef\xbb\xbf", place):
            return place + 3
        self._is_array = chunk[place : place + 1] == b"["
        place += self._is_array
        self.offset = self._position + place
        return place

    def _string(self, chunk: bytes, place: int) -> int:
        if self._escaped:
            self._escaped = False
            self._hold(chunk, place, place + 1)
            return place + 1
        found = _INSIDE.match(chunk, place)
        assert found is not None  # nothing matches too
        character = chunk[found.end() : found.end() + 1]
        end = found.end() + len(character)
        self._hold(chunk, place, end)
        self._in_string = character in (b"", b"\\")
        self._escaped = character == b"\\"
        self._is_broken = character == b"\n"
        return end

    def _structure(self, chunk: bytes, place: int) -> Generator[LineBlock | Fault, None, int]:
        found = _OUTSIDE.search(chunk, place)
        if found is None or self.is_over:
            self._hold(chunk, place, len(chunk))
            return len(chunk)
        character = found[0]
        end = found.end()
        if not self._open and character in b",]" and self._is_array:
            self._hold(chunk, place, found.start())
            yield from self._complete(is_last=character == b"]")
            self.offset = self._position + end
            self.is_over = character == b"]"
            return end
        self._hold(chunk, place, end)
        self._in_string = character == b'"'
        if character in _OPEN:
            self._open += character
        elif character in _CLOSE:
            self._is_broken = not self._open or _OPEN.find(self._open.pop()) != _CLOSE.find(
                character
            )
        if character in _CLOSE and not self._open and not self._is_broken and not self._is_array:
            yield from self._complete(is_last=True)
            self.offset = self._position + end
        return end

    def _resume(self, chunk: bytes, place: int) -> Generator[LineBlock | Fault, None, int]:
        """Looks for the next value behind one that is broken."""
        key = self._key or b'{"'
        found = chunk.find(key, place)
        if found < 0:
            end = max(len(chunk) - len(key) + 1, place)
            self._hold(chunk, place, end)
            self._pending = chunk[end:]
            return len(chunk)
        self._hold(chunk, place, found)
        yield from self.flush()
        yield self._fault("invalid_json", "the value isn't JSON: it has no end", bytes(self._held))
        self._drop()
        self.offset = self._position + found
        return found

    def _complete(self, *, is_last: bool) -> Iterator[LineBlock | Fault]:
        """Takes the value that is held as one."""
        value = bytes(self._held).strip(_SPACE)
        if self.length > self._max:
            yield from self.flush()
            yield self._fault("record_too_large", self._too_large(), value)
        elif value:
            lead = len(self._held) - len(self._held.lstrip(_SPACE))
            self._values.append(value)
            self._offsets.append(self.offset + lead)
            if self._key is None and (found := _FIRST_KEY.match(value)):
                self._key = found[0]
        elif not is_last:
            yield from self.flush()
            yield self._fault("invalid_json", "there is nothing between two commas", b"")
        self._drop()
        if len(self._values) >= _BLOCK_VALUES:
            yield from self.flush()

    def _hold(self, chunk: bytes, start: int, end: int) -> None:
        self.length += end - start
        if self.length <= self._max:
            self._held += chunk[start:end]
        else:
            del self._held[RAW_LIMIT_BYTES:]

    def _drop(self) -> None:
        self._held = bytearray()
        self.length, self._open = 0, bytearray()
        self._in_string = self._escaped = self._is_broken = False

    def flush(self) -> Iterator[LineBlock | Fault]:
        """Yields the values that are whole."""
        if self._values:
            values, self._values = self._values, []
            offsets, self._offsets = self._offsets, []
            yield LineBlock(
                lines=values,
                offsets=np.array(offsets, dtype=np.int64),
                data=b"\n".join(values),
            )

    def _too_large(self) -> str:
        return f"the record has {self.length:,} bytes, {self._max:,} are allowed"

    def _fault(self, error: str, detail: str, raw: bytes) -> Fault:
        return Fault(
            error=error,
            detail=detail,
            offset=self.offset,
            length=self.length,
            raw=raw[:RAW_LIMIT_BYTES],
        )
