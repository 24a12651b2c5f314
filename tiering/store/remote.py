"""A remote store's two faces; both hand their requests to the process's loop.

What they hold is only how to make a client, so they are cheap, picklable, safe to share between
threads, and work after a fork: each process makes its own client at first use.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tiering.checksums import Buffer
from tiering.errors import StoreError, StoreURLError
from tiering.store.client import Client
from tiering.store.loop import call, hand_over
from tiering.store.options import Transfer
from tiering.store.paths import check_path, check_prefix
from tiering.store.protocol import Mode, ObjectInfo, View
from tiering.store.remote_view import RemoteView
from tiering.store.requests import Requests

__all__ = ["Opener", "RemoteFiles", "RemoteStore"]

_SECRET_WORDS = ("key", "secret", "token", "password", "sas", "credential", "service_account")


@dataclass(frozen=True, kw_only=True, slots=True)
class Opener:
    """How a process makes its client. Raises: TypeError: pickled although it holds secrets."""

    url: str
    """Printable."""
    make: Callable[..., Client]
    """Called with the address, the options and `transfer`."""
    address: str = field(repr=False)
    """The URL as it was given."""
    options: dict[str, Any] = field(repr=False)
    transfer: Transfer

    def client(self) -> Client:
        """Returns a new client."""
        return self.make(self.address, self.options, transfer=self.transfer)

    def __reduce__(self) -> tuple[Any, ...]:
        secrets = [name for name in self.options if any(w in name.lower() for w in _SECRET_WORDS)]
        if secrets or self.address.rstrip("/") != self.url.rstrip("/"):
            what = ", ".join(sorted(secrets)) or "user info or a query in its URL"
            raise TypeError(
                f"the store {self.url} was opened with {what} and isn't pickled: credentials are "
                "never stored; give them by environment or profile, which other processes see too"
            )
        return _reopened, (self.url, self.make, self.address, self.options, self.transfer)


def _reopened(
    url: str, make: Callable[..., Client], address: str, options: dict[str, Any], transfer: Transfer
) -> Opener:
    return Opener(url=url, make=make, address=address, options=options, transfer=transfer)


class _Base:
    """What both faces share: this process's requests."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._requests: Requests | None = None
        self._pid = 0

    @property
    def url(self) -> str:
        """Where it is, printable."""
        return self._opener.url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __getstate__(self) -> Opener:
        return self._opener

    def __setstate__(self, opener: Opener) -> None:
        _Base.__init__(self, opener)

    async def _here(self) -> Requests:
        """Returns this process's requests; runs on the loop, so one caller at a time."""
        if self._requests is None or self._pid != os.getpid():
            try:
                client = self._opener.client()
            except StoreURLError as error:  # too late for a caller who opened it well
                raise StoreError(str(error)) from error
            self._requests = Requests(client, self._opener.transfer, url=self.url)
            self._pid = os.getpid()
        return self._requests

    async def _head(self, path: str) -> ObjectInfo:
        return await (await self._here()).head(check_path(path))

    async def _get(self, path: str) -> bytes:
        return await (await self._here()).get(check_path(path))

    async def _get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]]
    ) -> builtins.list[bytes]:
        for offset, length in ranges:
            if offset < 0 or length < 0:
                raise ValueError(f"range ({offset}, {length}) of {path} is negative")
        return await (await self._here()).get_ranges(check_path(path), ranges)

    async def _put(self, path: str, data: Buffer, mode: Mode, match: str | None) -> ObjectInfo:
        view = memoryview(data)
        view = view.cast("B") if view.nbytes else memoryview(b"")
        return await (await self._here()).put(check_path(path), view, mode=mode, match=match)

    async def _delete(self, path: str) -> None:
        await (await self._here()).delete(check_path(path))

    async def _delete_many(self, paths: Iterable[str]) -> None:
        await (await self._here()).delete_many([check_path(path) for path in paths])

    async def _first_page(
        self, prefix: str, after: str
    ) -> tuple[builtins.list[ObjectInfo] | None, AsyncIterator[builtins.list[ObjectInfo]]]:
        pages = (await self._here()).pages(check_prefix(prefix), after=after)
        return await anext(pages, None), pages


class RemoteFiles(_Base):
    """The blocking face."""

    def head(self, path: str) -> ObjectInfo:
        """See `BlockingStore.head`."""
        return call(self._head(path))

    def get(self, path: str) -> bytes:
        """See `BlockingStore.get`."""
        return call(self._get(path))

    def get_range(self, path: str, offset: int, length: int) -> bytes:
        """See `BlockingStore.get_range`."""
        return self.get_ranges(path, [(offset, length)])[0]

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> builtins.list[bytes]:
        """See `BlockingStore.get_ranges`."""
        return call(self._get_ranges(path, ranges))

    def open(self, path: str) -> View:
        """See `BlockingStore.open`; the view reads by ranged requests."""
        return RemoteView(self, self.head(path))

    def read_into(self, info: ObjectInfo, buffer: memoryview, offset: int) -> int:
        """Fills a buffer from the version `info` of an object; returns the bytes read.

        Raises:
            PreconditionError: it was overwritten since.
        """
        return call(self._read_into(info, buffer, offset))

    def put(
        self, path: str, data: Buffer, *, mode: Mode = Mode.CREATE, match: str | None = None
    ) -> ObjectInfo:
        """See `BlockingStore.put`."""
        return call(self._put(path, data, mode, match))

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[ObjectInfo]:
        """See `BlockingStore.list`."""
        page, pages = call(self._first_page(prefix, after))
        while page is not None:
            yield from page
            page = call(_next(pages))

    def delete(self, path: str) -> None:
        """See `BlockingStore.delete`."""
        call(self._delete(path))

    def delete_many(self, paths: Iterable[str]) -> None:
        """See `BlockingStore.delete_many`."""
        call(self._delete_many(paths))

    async def _read_into(self, info: ObjectInfo, buffer: memoryview, offset: int) -> int:
        return await (await self._here()).read_into(info, buffer, offset)


class RemoteStore(_Base):
    """The async face; may be used from any event loop."""

    async def head(self, path: str) -> ObjectInfo:
        """See `BlockingStore.head`."""
        return await hand_over(self._head(path))

    async def get(self, path: str) -> bytes:
        """See `BlockingStore.get`."""
        return await hand_over(self._get(path))

    async def get_range(self, path: str, offset: int, length: int) -> bytes:
        """See `BlockingStore.get_range`."""
        return (await self.get_ranges(path, [(offset, length)]))[0]

    async def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]]
    ) -> builtins.list[bytes]:
        """See `BlockingStore.get_ranges`."""
        return await hand_over(self._get_ranges(path, ranges))

    async def put(
        self, path: str, data: Buffer, *, mode: Mode = Mode.CREATE, match: str | None = None
    ) -> ObjectInfo:
        """See `BlockingStore.put`."""
        return await hand_over(self._put(path, data, mode, match))

    async def list(self, prefix: str = "", *, after: str = "") -> AsyncIterator[ObjectInfo]:
        """See `BlockingStore.list`."""
        page, pages = await hand_over(self._first_page(prefix, after))
        while page is not None:
            for info in page:
                yield info
            page = await hand_over(_next(pages))

    async def delete(self, path: str) -> None:
        """See `BlockingStore.delete`."""
        await hand_over(self._delete(path))

    async def delete_many(self, paths: Iterable[str]) -> None:
        """See `BlockingStore.delete_many`."""
        await hand_over(self._delete_many(paths))

    def blocking(self) -> RemoteFiles:
        """Returns the same store for use from threads."""
        return RemoteFiles(self._opener)


async def _next(
    pages: AsyncIterator[builtins.list[ObjectInfo]],
) -> builtins.list[ObjectInfo] | None:
    return await anext(pages, None)
