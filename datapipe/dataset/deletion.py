"""Deletions in progress: what garbage collection is removing at this moment.

Before it deletes anything, a collector writes the paths into `_gc/<id>.deleting.json`, and only
then looks who is at work; a writer looks there right before its commit. So one of the two always
sees the other: the collector keeps what the writer refreshed, or the writer waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

import msgspec

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.layout import FORMAT_VERSION, GARBAGE_PREFIX
from datapipe.dataset.objects import get_json, put_again, reading
from tiering.errors import ObjectNotFoundError
from tiering.store import BlockingStore

__all__ = [
    "LEASE_SECONDS",
    "Deletion",
    "await_deletions",
    "remove_dead_deletions",
    "write_deletion",
]

LEASE_SECONDS = 600.0
"""A deletion that isn't renewed for so long is over: its collector deletes nothing more."""

_SUFFIX = ".deleting.json"
_LONGEST_PAUSE_SECONDS = 1.0


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """Paths that are being deleted."""

    id: str
    paths: tuple[str, ...]
    lease_seconds: float = LEASE_SECONDS
    format: int = FORMAT_VERSION

    @property
    def path(self) -> str:
        """Where it is announced."""
        return f"{GARBAGE_PREFIX}{self.id}{_SUFFIX}"


def write_deletion(store: BlockingStore, deletion: Deletion) -> float:
    """Announces a deletion; returns when, by the store's clock."""
    put_again(store, deletion.path, canonical_json(msgspec.to_builtins(deletion)))
    return store.head(deletion.path).modified_seconds


def await_deletions(
    store: BlockingStore,
    paths: Collection[str],
    *,
    clock: Callable[[], float],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Returns when no deletion that may still go on names any of `paths`.

    Args:
        store: where.
        paths: what the caller is going to rely on.
        clock: the store's time; asked only if there are deletions.
        sleep: waits so many seconds.

    Raises:
        DatasetError: the store can't be read.
    """
    wanted, pause = frozenset(paths), 0.01
    while _is_in_progress(store, wanted, clock):
        sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def remove_dead_deletions(store: BlockingStore, *, now: float) -> None:
    """Removes the announcements of collectors that were killed; `now` by the store's clock."""
    for info in list(store.list(GARBAGE_PREFIX)):
        if info.path.endswith(_SUFFIX) and now - info.modified_seconds > 2 * LEASE_SECONDS:
            store.delete(info.path)


def _is_in_progress(
    store: BlockingStore, wanted: frozenset[str], clock: Callable[[], float]
) -> bool:
    with reading(store, GARBAGE_PREFIX):
        for info in list(store.list(GARBAGE_PREFIX)):
            if not info.path.endswith(_SUFFIX):
                continue
            try:
                deletion = msgspec.json.decode(get_json(store, info.path), type=Deletion)
            except ObjectNotFoundError:
                continue  # over
            age = clock() - info.modified_seconds
            if age <= deletion.lease_seconds and not wanted.isdisjoint(deletion.paths):
                return True
    return False
