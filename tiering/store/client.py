"""What a library for object stores must offer to become a store: plain requests, no retries."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from tiering.checksums import Buffer
from tiering.store.failures import Failure
from tiering.store.protocol import Mode, ObjectInfo

__all__ = ["Body", "Client", "ShortBodyError"]


class ShortBodyError(Exception):
    """An answer held fewer or more bytes than were asked for."""


@dataclass(frozen=True, slots=True)
class Body:
    """An answer that is being read."""

    info: ObjectInfo
    """Of the whole object."""
    pieces: AsyncIterator[Buffer]
    """The bytes asked for, in order."""


class Client(Protocol):
    """Single requests; whatever they raise is explained by `explain`."""

    @property
    def lists_in_order(self) -> bool:
        """Whether listings come ascending by whole path."""

    async def head(self, path: str) -> ObjectInfo:
        """Looks an object up."""

    async def read(
        self, path: str, *, start: int, stop: int | None, etag: str | None, resumed: bool
    ) -> Body:
        """Asks for bytes [start, stop), stop > start; stop None: to the end, then start is 0.

        Args:
            path: the object.
            start: first byte.
            stop: behind the last byte, at most the object's size, or None.
            etag: fail with CHANGED unless the object has it.
            resumed: an attempt before this broke off: give pieces as small as they come.
        """

    async def put(self, path: str, data: memoryview, *, mode: Mode, match: str | None) -> str:
        """Writes an object; returns its etag."""

    def list(self, prefix: str, *, after: str) -> AsyncIterator[builtins.list[ObjectInfo]]:
        """Yields pages that hold at least all objects with the prefix behind `after`."""

    async def delete(self, path: str) -> None:
        """Removes an object; absent is fine."""

    def renew(self) -> None:
        """Credentials expired: the next request takes new ones."""

    def explain(self, error: Exception) -> Failure:
        """Returns what an error of this client means."""
