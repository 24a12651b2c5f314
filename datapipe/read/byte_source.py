"""Bytes taken from a stream of chunks by exact counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from datapipe.read.damage import StreamDamage

__all__ = ["ByteSource"]


@dataclass(slots=True, kw_only=True)
class ByteSource:
    """The chunks' bytes, one behind the other."""

    chunks: Iterator[bytes]
    ended: Callable[[], StreamDamage]
    """Makes what is raised where bytes are missing."""
    data: bytes = b""
    position: int = 0

    def peek(self, count: int) -> bytes:
        """Returns the next `count` bytes without taking them; fewer only at the end."""
        missing = self.position + count - len(self.data)
        if missing > 0:
            parts = [self.data[self.position :]]
            while missing > 0 and (more := next(self.chunks, b"")):
                parts.append(more)
                missing -= len(more)
            self.data, self.position = b"".join(parts), 0
        return self.data[self.position : self.position + count]

    def take(self, count: int) -> bytes:
        """Returns the next `count` bytes. Raises: StreamDamage where there are fewer."""
        taken = self.peek(count)
        if len(taken) < count:
            raise self.ended()
        self.position += count
        return taken

    def take_some(self, limit: int) -> bytes:
        """Returns the next bytes, at most `limit`; none only at the end."""
        taken = self.peek(1) and self.data[self.position : self.position + limit]
        self.position += len(taken)
        return taken

    def skip(self, count: int) -> None:
        """Passes over the next `count` bytes. Raises: StreamDamage where there are fewer."""
        while count:
            taken = self.take_some(count)
            if not taken:
                raise self.ended()
            count -= len(taken)

    def untake(self, count: int) -> None:
        """Puts the last `count` bytes back; they came from one call of `take_some`."""
        self.position -= count

    def skip_zeros(self) -> bool:
        """Passes over zero bytes; tells whether there were any."""
        has_any = False
        while rest := self.peek(1 << 12):
            zeros = len(rest) - len(rest.lstrip(b"\0"))
            self.position += zeros
            has_any |= zeros > 0
            if zeros < len(rest):
                break
        return has_any

    def only_zeros(self) -> bool:
        """Tells whether the rest is zero padding, which is then taken."""
        while rest := self.peek(1 << 16):
            if rest.strip(b"\0"):
                return False
            self.position += len(rest)
        return True
