"""Just enough HTTP/1.1 for a proxy: heads, and how long the body behind one is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

__all__ = ["MAX_HEAD_BYTES", "PIECE_BYTES", "Head", "read_body", "read_head"]

MAX_HEAD_BYTES = 1 << 20
PIECE_BYTES = 16 * 1024
"""What is sent or taken at a time where there is a pace."""
_NO_BODY = (204, 304)


@dataclass(frozen=True, slots=True)
class Head:
    """The first line and the headers of a request or an answer, as they came."""

    first: str
    headers: tuple[tuple[str, str], ...]

    @property
    def method(self) -> str:
        """A request's method."""
        return self.first.split(" ")[0]

    @property
    def target(self) -> str:
        """A request's path and query, still encoded."""
        return self.first.split(" ")[1]

    @property
    def status(self) -> int:
        """An answer's status."""
        return int(self.first.split(" ")[1])

    def get(self, name: str) -> str:
        """Returns a header's value, empty where it is missing."""
        return next((v for n, v in self.headers if n.lower() == name.lower()), "")

    def without(self, *names: str) -> Head:
        """Returns the head without some headers."""
        lower = {name.lower() for name in names}
        return Head(self.first, tuple((n, v) for n, v in self.headers if n.lower() not in lower))

    def replaced(self, name: str, value: str) -> Head:
        """Returns the head with another value of one header."""
        return Head(self.first, (*self.without(name).headers, (name, value)))

    def encoded(self) -> bytes:
        """Returns the bytes to send."""
        lines = [self.first, *(f"{name}: {value}" for name, value in self.headers)]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def has_body(self, *, answers: str) -> bool:
        """Returns whether an answer to the method `answers` is followed by a body."""
        return answers != "HEAD" and self.status not in _NO_BODY


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """Returns the next head, None at a clean end."""
    try:
        data = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise ConnectionError("the connection ended within a head") from error
        return None
    first, *rest = data.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in rest)
    return Head(first, tuple((name.strip(), value.strip()) for name, _, value in pairs))


async def read_body(
    reader: asyncio.StreamReader, head: Head, *, pace: float | None = None
) -> bytes:
    """Returns the body behind a head as it was sent: chunks keep their framing.

    Args:
        reader: where the head came from.
        head: it.
        pace: take at most so many bytes a second, where the length is known; None: any.
    """
    if "chunked" in head.get("Transfer-Encoding").lower():
        return await _read_chunks(reader)
    length = int(head.get("Content-Length") or 0)
    if pace is None:
        return await reader.readexactly(length)
    parts = []
    for start in range(0, length, PIECE_BYTES):
        parts.append(await reader.readexactly(min(PIECE_BYTES, length - start)))
        await asyncio.sleep(len(parts[-1]) / pace)
    return b"".join(parts)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        parts += [line, await reader.readexactly(size + 2)]
        if size == 0:
            return b"".join(parts)
