"""Bytes taken from a stream of chunks by exact counts, with the place of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from datapipe.read.damage import StreamDamage

__all__ = ["ByteSource"]


@dataclass(slots=True, kw_only=True)
class ByteSource:
    """The chunks' bytes, one behind the other.

    Where the chunks are damaged the bytes end, and `damage` says why. If the damage is one that
    reading can go on behind, `resume` does.
    """

    chunks: Iterator[bytes]
    ended: Callable[[], StreamDamage]
    """Makes what is raised where bytes are missing."""
    start: int = 0
    """Where the first byte stands in a larger stream."""
    damage: StreamDamage | None = None
    _data: bytes = b""
    _position: int = 0
    _before: int = 0
    """Bytes before `_data`."""

    @property
    def offset(self) -> int:
        """Where the next byte stands in the stream."""
        return self.start + self._before + self._position

    def peek(self, count: int) -> bytes:
        """Returns the next `count` bytes without taking them; fewer only at the end."""
        end = self._position + count
        missing = end - len(self._data)
        if missing <= 0:
            return self._data[self._position : end]
        if missing > 0:
            parts = [self._data[self._position :]]
            while missing > 0 and (more := self._more()):
                parts.append(more)
                missing -= len(more)
            self._before += self._position
            self._data, self._position = b"".join(parts), 0
        return self._data[self._position : self._position + count]

    def take(self, count: int) -> bytes:
        """Returns the next `count` bytes. Raises: StreamDamage where there are fewer."""
        taken = self.peek(count)
        if len(taken) < count:
            raise self.ended()
        self._position += count
        return taken

    def advance(self, count: int) -> None:
        """Takes `count` bytes that were peeked at."""
        self._position += count

    def take_some(self, limit: int) -> bytes:
        """Returns the next bytes, at most `limit`; none only at the end."""
        taken = self.peek(1) and self._data[self._position : self._position + limit]
        self._position += len(taken)
        return taken

    def skip(self, count: int) -> None:
        """Passes over the next `count` bytes. Raises: StreamDamage where there are fewer."""
        while count:
            taken = self.take_some(count)
            if not taken:
                raise self.ended()
            count -= len(taken)

    def skip_any(self, characters: bytes) -> bool:
        """Passes over bytes that are among `characters`; tells whether there were any."""
        has_any = False
        while self.peek(1).strip(characters) == b"" and (rest := self.peek(1 << 12)):
            count = len(rest) - len(rest.lstrip(characters))
            self._position += count
            has_any |= count > 0
            if count < len(rest):
                break
        return has_any

    def search(self, pattern: re.Pattern[bytes], *, overlap: int, keep: int = 1 << 20) -> bytes:
        """Passes over all before the next match, or over the rest.

        Args:
            pattern: of matches of at most `overlap` bytes.
            overlap: see there.
            keep: bytes of what is passed over that are wanted.

        Returns:
            How that begins.
        """
        beginning = bytearray()
        while window := self.peek(1 << 20):
            found = pattern.search(window)
            is_last = len(window) < 1 << 20
            end = found.start() if found else len(window) - (0 if is_last else overlap)
            beginning += window[: min(end, keep - len(beginning))]
            self._position += end
            if found or is_last:
                break
        return bytes(beginning)

    def put_back(self, data: bytes) -> None:
        """Puts bytes that were taken last before the next ones."""
        self._before -= len(data) - self._position
        self._data, self._position = data + self._data[self._position :], 0

    def untake(self, count: int) -> None:
        """Puts the last `count` bytes back; they came from one call of `take_some`."""
        self._position -= count

    def only_zeros(self) -> bool:
        """Tells whether the rest is zero padding, which is then taken."""
        while rest := self.peek(1 << 16):
            if rest.strip(b"\0"):
                return False
            self._position += len(rest)
        return True

    def resume(self) -> bool:
        """Goes on behind the damage; tells whether that is possible."""
        if self.damage is None or not self.damage.resumes:
            return False
        self._before += self.damage.lost_bytes
        self.damage = None
        return True

    def _more(self) -> bytes:
        if self.damage is not None:
            return b""
        try:
            return next(self.chunks, b"")
        except StreamDamage as damage:
            self.damage = damage
            return b""
