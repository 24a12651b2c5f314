"""The local backend's async face: every verb runs the blocking one in a thread."""

from __future__ import annotations

import asyncio
import builtins
import itertools
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from tiering.checksums import Buffer
from tiering.store.local import LocalFiles
from tiering.store.protocol import Mode, ObjectInfo

__all__ = ["LocalStore"]

_LISTED_AT_ONCE = 1000


class LocalStore:
    """A store on a local folder; the folder need not exist before the first write."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._files = LocalFiles(root)

    @property
    def url(self) -> str:
        """The folder's absolute path."""
        return self._files.url

    async def head(self, path: str) -> ObjectInfo:
        """See `BlockingStore.head`."""
        return await asyncio.to_thread(self._files.head, path)

    async def get(self, path: str) -> bytes:
        """See `BlockingStore.get`."""
        return await asyncio.to_thread(self._files.get, path)

    async def get_range(self, path: str, offset: int, length: int) -> bytes:
        """See `BlockingStore.get_range`."""
        return await asyncio.to_thread(self._files.get_range, path, offset, length)

    async def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]]
    ) -> builtins.list[bytes]:
        """See `BlockingStore.get_ranges`."""
        return await asyncio.to_thread(self._files.get_ranges, path, ranges)

    async def put(
        self, path: str, data: Buffer, *, mode: Mode = Mode.CREATE, match: str | None = None
    ) -> ObjectInfo:
        """See `BlockingStore.put`."""
        return await asyncio.to_thread(self._files.put, path, data, mode=mode, match=match)

    async def list(self, prefix: str = "", *, after: str = "") -> AsyncIterator[ObjectInfo]:
        """See `BlockingStore.list`."""
        found = self._files.list(prefix, after=after)
        while part := await asyncio.to_thread(_take, found):
            for info in part:
                yield info

    async def delete(self, path: str) -> None:
        """See `BlockingStore.delete`."""
        await asyncio.to_thread(self._files.delete, path)

    async def delete_many(self, paths: Iterable[str]) -> None:
        """See `BlockingStore.delete_many`."""
        await asyncio.to_thread(self._files.delete_many, paths)

    def blocking(self) -> LocalFiles:
        """Returns the same store for use from threads."""
        return self._files


def _take(found: Iterator[ObjectInfo]) -> builtins.list[ObjectInfo]:
    return builtins.list(itertools.islice(found, _LISTED_AT_ONCE))
