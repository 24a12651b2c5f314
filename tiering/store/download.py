"""One range of one object, resumed at its offset when the transfer breaks off or stalls."""

from __future__ import annotations

from collections.abc import Callable

from tiering.checksums import Buffer
from tiering.store.client import Client, ShortBodyError
from tiering.store.protocol import ObjectInfo
from tiering.store.retry import Attempts

__all__ = ["Download", "into_buffer"]


class Download:
    """Bytes [start, stop) of an object, handed to `take` in order, each exactly once.

    All attempts read the same version of the object: from the first answer on, or from the start
    where an etag is given.
    """

    def __init__(
        self,
        client: Client,
        attempts: Attempts,
        take: Callable[[Buffer], None],
        *,
        path: str,
        start: int,
        stop: int | None,
        etag: str | None,
    ) -> None:
        self._client = client
        self._attempts = attempts
        self._take = take
        self._path = path
        self._start = self._at = start
        self._stop = stop
        self._etag = etag
        self._info: ObjectInfo | None = None

    @property
    def num_bytes(self) -> int:
        """Bytes handed over until now."""
        return self._at - self._start

    async def run(self) -> None:
        """Reads to the end of the range or of the object. Raises: StoreError."""
        await self._attempts.run(self._attempt)

    async def _attempt(self) -> None:
        if self._info is not None and self._at == self._stop:
            return
        body = await self._client.read(
            self._path,
            start=self._at,
            stop=self._stop,
            etag=self._etag,
            resumed=self._attempts.num > 0,
        )
        self._info, self._etag = body.info, body.info.etag
        self._stop = min(body.info.size, body.info.size if self._stop is None else self._stop)
        async for piece in body.pieces:
            self._accept(piece)
        if self._at < self._stop:
            raise ShortBodyError(f"the answer ended {self._stop - self._at} bytes early")

    def _accept(self, piece: Buffer) -> None:
        size = memoryview(piece).nbytes
        assert self._stop is not None
        if self._at + size > self._stop:
            raise ShortBodyError("the answer holds more bytes than were asked for")
        self._take(piece)
        self._at += size
        self._attempts.progress()


def into_buffer(target: memoryview) -> Callable[[Buffer], None]:
    """Returns a taker that fills a buffer from its start on."""
    at = 0

    def take(piece: Buffer) -> None:
        nonlocal at
        view = memoryview(piece).cast("B")
        target[at : at + view.nbytes] = view
        at += view.nbytes

    return take
