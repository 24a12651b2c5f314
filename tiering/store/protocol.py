"""What a store is: immutable or compare-and-swapped objects under relative paths.

The core is async (`Store`); `Store.blocking()` gives the same verbs for threads (`BlockingStore`).
Paths are relative, `/`-separated, without empty, `.` or `..` parts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from tiering.checksums import Buffer

__all__ = ["BlockingStore", "Mode", "ObjectInfo", "Store", "View"]


class Mode(Enum):
    """When `put` may write."""

    CREATE = "create"
    """Only if no object has the path; exactly one of many concurrent writers succeeds."""
    OVERWRITE = "overwrite"
    """Always; readers see the old or the new bytes, never a mixture."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectInfo:
    """What a store says of an object without reading it."""

    path: str
    size: int
    """Bytes."""
    etag: str
    """Changes whenever the bytes change; opaque."""
    modified_seconds: float
    """Time of the last write, seconds since the epoch, by the store's clock."""


class View(Protocol):
    """An open object that is read by ranges; closed by `close` or as a context manager."""

    @property
    def size(self) -> int:
        """Bytes of the object."""

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fills `buffer` from `offset` on; returns the bytes read, fewer only at the end."""

    def fileno(self) -> int | None:
        """Returns a descriptor for `preadv`, or None where the object isn't a local file."""

    def close(self) -> None:
        """Gives the object back; reading afterwards is an error."""

    def __enter__(self) -> View: ...

    def __exit__(self, *exc: object) -> None: ...


class BlockingStore(Protocol):
    """The verbs of a store for use from threads; safe to share between them."""

    @property
    def url(self) -> str:
        """Where it is, printable: no user info, no query, no signature."""

    def head(self, path: str) -> ObjectInfo:
        """Returns size and etag. Raises: ObjectNotFoundError."""

    def get(self, path: str) -> bytes:
        """Returns the whole object. Raises: ObjectNotFoundError."""

    def get_range(self, path: str, offset: int, length: int) -> bytes:
        """Returns `length` bytes from `offset` on, fewer only at the object's end."""

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Returns each (offset, length) in the order asked."""

    def open(self, path: str) -> View:
        """Opens an object for many ranged reads. Raises: ObjectNotFoundError."""

    def put(
        self, path: str, data: Buffer, *, mode: Mode = Mode.CREATE, match: str | None = None
    ) -> ObjectInfo:
        """Writes an object whole and durably, or not at all.

        Args:
            path: the object's path.
            data: its bytes.
            mode: when it may be written.
            match: write only if the object now has this etag (compare-and-swap); `mode` is then
                not looked at.

        Raises:
            ObjectExistsError: mode CREATE, and it is there.
            PreconditionError: it has another etag than `match`, or is absent.
            NoSpaceError: the disk is full; nothing is visible.
            UndecidedError: no answer; it may or may not have been written.
        """

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[ObjectInfo]:
        """Yields objects whose path starts with `prefix`, ascending by path, behind `after`."""

    def delete(self, path: str) -> None:
        """Removes an object; one that isn't there is no error."""

    def delete_many(self, paths: Iterable[str]) -> None:
        """Removes objects, durably when it returns; those that aren't there are no error.

        Much cheaper than one `delete` each, and in no order: a program that is killed meanwhile
        may have removed any of them.
        """


class Store(Protocol):
    """The async core; every verb as in `BlockingStore`."""

    @property
    def url(self) -> str:
        """Where it is, printable."""

    async def head(self, path: str) -> ObjectInfo:
        """See `BlockingStore.head`."""

    async def get(self, path: str) -> bytes:
        """See `BlockingStore.get`."""

    async def get_range(self, path: str, offset: int, length: int) -> bytes:
        """See `BlockingStore.get_range`."""

    async def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """See `BlockingStore.get_ranges`."""

    async def put(
        self, path: str, data: Buffer, *, mode: Mode = Mode.CREATE, match: str | None = None
    ) -> ObjectInfo:
        """See `BlockingStore.put`."""

    def list(self, prefix: str = "", *, after: str = "") -> AsyncIterator[ObjectInfo]:
        """See `BlockingStore.list`."""

    async def delete(self, path: str) -> None:
        """See `BlockingStore.delete`."""

    async def delete_many(self, paths: Iterable[str]) -> None:
        """See `BlockingStore.delete_many`."""

    def blocking(self) -> BlockingStore:
        """Returns the same store for use from threads."""
