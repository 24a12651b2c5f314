"""The verbs of a remote store on the process's loop: retried, resumed, in parallel, by version."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from tiering.checksums import Buffer
from tiering.errors import PreconditionError
from tiering.store.client import Client
from tiering.store.download import Download, into_buffer
from tiering.store.failures import BeyondEndError
from tiering.store.options import Transfer
from tiering.store.paths import is_path
from tiering.store.protocol import Mode, ObjectInfo
from tiering.store.ranges import Request, coalesce_ranges, split_range
from tiering.store.retry import Attempts
from tiering.store.throttle import ConcurrencyLimit

__all__ = ["Requests"]

T = TypeVar("T")

_DELETED_AT_ONCE = 1000  # bounds the tasks that wait, not the requests
_REREADS = 10  # each one loses only to an overwrite of the object while it was read


class Requests:
    """One client's requests; belongs to the process's loop."""

    def __init__(self, client: Client, transfer: Transfer, *, url: str) -> None:
        self._client = client
        self._transfer = transfer
        self._url = url
        self._limit = ConcurrencyLimit(transfer.max_concurrency)

    async def head(self, path: str) -> ObjectInfo:
        """See `BlockingStore.head`."""
        attempts = self._attempts("looking up", path)
        return await attempts.run(lambda: self._client.head(path), seconds=self._patience)

    async def get(self, path: str) -> bytes:
        """See `BlockingStore.get`."""
        return await _reread(lambda: self._get(path))

    async def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]]
    ) -> builtins.list[bytes]:
        """See `BlockingStore.get_ranges`."""
        return await _reread(lambda: self._get_ranges(path, ranges))

    async def read_into(self, info: ObjectInfo, buffer: memoryview, offset: int) -> int:
        """Fills a buffer from the version `info` of an object; returns the bytes read."""
        length = max(0, min(buffer.nbytes, info.size - offset))
        parts = split_range(offset, length, max_bytes=self._transfer.range_bytes)
        await _all([
            self._read_range(
                info.path, at, buffer[at - offset : at - offset + size], etag=info.etag
            )
            for at, size in parts
        ])  # fmt: skip
        return length

    async def put(
        self, path: str, data: memoryview, *, mode: Mode, match: str | None
    ) -> ObjectInfo:
        """See `BlockingStore.put`; `modified_seconds` is by this machine's clock."""
        attempts = self._attempts("writing", path)
        etag = await attempts.run(
            lambda: self._client.put(path, data, mode=mode, match=match),
            seconds=self._transfer.upload_seconds(data.nbytes),
        )
        if not etag:
            return await self.head(path)
        return ObjectInfo(path=path, size=data.nbytes, etag=etag, modified_seconds=time.time())

    async def pages(self, prefix: str, *, after: str) -> AsyncIterator[builtins.list[ObjectInfo]]:
        """Yields what `BlockingStore.list` does, in pages."""
        found = self._pages(prefix, after=after)
        if self._client.lists_in_order:
            async for page in found:
                yield page
            return
        whole = {info.path: info async for page in found for info in page}
        yield [whole[path] for path in sorted(whole)]

    async def delete(self, path: str) -> None:
        """See `BlockingStore.delete`."""
        attempts = self._attempts("deleting", path)
        await attempts.run(lambda: self._client.delete(path), seconds=self._patience)

    async def delete_many(self, paths: Sequence[str]) -> None:
        """See `BlockingStore.delete_many`; as many at a time as the limit of requests lets in."""
        for start in range(0, len(paths), _DELETED_AT_ONCE):
            await _all([self.delete(path) for path in paths[start : start + _DELETED_AT_ONCE]])

    # -- parts

    @property
    def _patience(self) -> float:
        return self._transfer.connect_seconds + self._transfer.stall_seconds

    def _attempts(self, doing: str, path: str) -> Attempts:
        return Attempts(
            self._client, self._transfer, self._limit, doing=doing, path=path, url=self._url
        )

    def _download(
        self,
        path: str,
        take: Callable[[Buffer], None],
        start: int,
        stop: int | None,
        etag: str | None,
    ) -> Download:
        attempts = self._attempts("reading", path)
        return Download(self._client, attempts, take, path=path, start=start, stop=stop, etag=etag)

    async def _get(self, path: str) -> bytes:
        pieces: builtins.list[Buffer] = []
        with contextlib.suppress(BeyondEndError):  # it is empty
            await self._download(path, pieces.append, start=0, stop=None, etag=None).run()
        return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)

    async def _get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]]
    ) -> builtins.list[bytes]:
        plan = coalesce_ranges(
            ranges, gap_bytes=self._transfer.gap_bytes, max_bytes=self._transfer.range_bytes
        )
        if len(plan) == 1 and plan[0].stop - plan[0].start <= self._transfer.range_bytes:
            found = [await self._read_once(path, plan[0])]
        else:
            info = await self.head(path) if plan else None
            found = await _all([self._read_request(info, request) for request in plan if info])
        result = [b""] * len(ranges)
        for request, data in zip(plan, found, strict=True):
            for number in request.ranges:
                start = ranges[number][0] - request.start
                result[number] = bytes(data[start : start + ranges[number][1]])
        return result

    async def _read_once(self, path: str, request: Request) -> memoryview:
        """Returns a request's bytes, fewer at the object's end."""
        data = memoryview(bytearray(request.stop - request.start))
        return data[: await self._read_range(path, request.start, data, etag=None)]

    async def _read_request(self, info: ObjectInfo, request: Request) -> memoryview:
        size = max(0, min(request.stop, info.size) - request.start)
        data = memoryview(bytearray(size))
        await self.read_into(info, data, request.start)
        return data

    async def _read_range(
        self, path: str, offset: int, target: memoryview, *, etag: str | None
    ) -> int:
        """Fills a buffer from `offset` on; returns the bytes read, fewer at the object's end."""
        stop = offset + target.nbytes
        download = self._download(path, into_buffer(target), start=offset, stop=stop, etag=etag)
        try:
            await download.run()
        except BeyondEndError:
            return 0
        return download.num_bytes

    async def _pages(self, prefix: str, *, after: str) -> AsyncIterator[builtins.list[ObjectInfo]]:
        """Yields pages of what has the prefix and is behind `after`; resumed when one fails."""
        attempts = self._attempts("listing", prefix)
        listing = _Listing(self._client, prefix, after=after)
        while True:
            page = await attempts.run(listing.next_page, seconds=self._patience)
            if page is None:
                return
            attempts.progress()
            yield page


class _Listing:
    """A listing that goes on behind the last page when one fails."""

    def __init__(self, client: Client, prefix: str, *, after: str) -> None:
        self._client = client
        self._prefix = prefix
        self._after = after
        self._source: AsyncIterator[builtins.list[ObjectInfo]] | None = None

    async def next_page(self) -> builtins.list[ObjectInfo] | None:
        """Returns the next page without what wasn't asked for, None at the end."""
        if self._source is None:
            self._source = self._client.list(self._prefix, after=self._after)
        try:
            page = await anext(self._source, None)
        except BaseException:
            self._source = None
            raise
        if page is None:
            return None
        wanted = [info for info in page if self._is_wanted(info.path)]
        if wanted and self._client.lists_in_order:
            self._after = wanted[-1].path
        return wanted

    def _is_wanted(self, path: str) -> bool:
        return path.startswith(self._prefix) and path > self._after and is_path(path)


async def _reread(read: Callable[[], Awaitable[T]]) -> T:
    """Reads one version whole, anew when the object was overwritten meanwhile."""
    for _ in range(_REREADS - 1):
        with contextlib.suppress(PreconditionError):
            return await read()
    return await read()


async def _all(work: Sequence[Coroutine[Any, Any, T]]) -> builtins.list[T]:
    """Returns all results in order; the first failure ends the others."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
