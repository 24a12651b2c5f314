"""A store that fails where a test says, before or after the request was applied, or lies."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from tiering.checksums import Buffer
from tiering.errors import StoreError
from tiering.store import BlockingStore, Mode, ObjectInfo, View, check_path

__all__ = ["Fault", "FaultyStore"]

Fault = Callable[[str, str], Exception | None]
"""Given verb and path: the error to raise, or None."""


class FaultyStore:
    """Passes everything on to `inner`, except what `fault` refuses.

    Args:
        inner: the real store.
        fault: called with ("put" | "head" | "get" | "open" | "list" | "delete", path).
        applied: "before": a refused request never reaches the store; "after": it was carried
            out and the answer was lost.
        drops_conditions: every put overwrites, as behind a proxy that drops the headers
            If-None-Match and If-Match.
    """

    def __init__(
        self,
        inner: BlockingStore,
        *,
        fault: Fault = lambda _verb, _path: None,
        applied: Literal["before", "after"] = "before",
        drops_conditions: bool = False,
    ) -> None:
        self._inner = inner
        self._fault = fault
        self._applied = applied
        self._drops_conditions = drops_conditions

    @property
    def url(self) -> str:
        """The real store's."""
        return self._inner.url

    def head(self, path: str) -> ObjectInfo:
        """See `BlockingStore.head`."""
        self._check("head", path)
        return self._inner.head(path)

    def get(self, path: str) -> bytes:
        """See `BlockingStore.get`."""
        self._check("get", path)
        return self._inner.get(path)

    def get_range(self, path: str, offset: int, length: int) -> bytes:
        """See `BlockingStore.get_range`."""
        self._check("get", path)
        return self._inner.get_range(path, offset, length)

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> builtins.list[bytes]:
        """See `BlockingStore.get_ranges`."""
        self._check("get", path)
        return self._inner.get_ranges(path, ranges)

    def open(self, path: str) -> View:
        """See `BlockingStore.open`."""
        self._check("open", path)
        return self._inner.open(path)

    def put(
        self, path: str, data: Buffer, *, mode: Mode = Mode.CREATE, match: str | None = None
    ) -> ObjectInfo:
        """See `BlockingStore.put`."""
        error = self._fault("put", path)
        if error is not None and self._applied == "before":
            raise error
        if self._drops_conditions:
            mode, match = Mode.OVERWRITE, None
        try:
            info = self._inner.put(path, data, mode=mode, match=match)
        except StoreError as refused:
            raise (error or refused) from refused
        if error is not None:
            raise error
        return info

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[ObjectInfo]:
        """See `BlockingStore.list`."""
        self._check("list", prefix)
        return self._inner.list(prefix, after=after)

    def delete(self, path: str) -> None:
        """See `BlockingStore.delete`."""
        self._check("delete", path)
        self._inner.delete(path)

    def delete_many(self, paths: Iterable[str]) -> None:
        """See `BlockingStore.delete_many`; each path is asked for as a "delete"."""
        for path in [check_path(path) for path in paths]:
            self.delete(path)

    def _check(self, verb: str, path: str) -> None:
        error = self._fault(verb, path)
        if error is not None:
            raise error
