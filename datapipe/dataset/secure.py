"""Securing what a commit is about to name: everything is there, and young enough to stay.

An object stays if it is younger than the writer's living transaction, and if no deletion that
names it is under way. Looking for deletions comes before the last look at the objects: a deletion
announced after it sees the transaction and the refreshed object (`deletion.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from datapipe.dataset.deletion import await_deletions
from datapipe.dataset.objects import check_digest, put_again, reading, writing
from datapipe.dataset.transaction import store_seconds
from datapipe.errors import CommitConflictError, DamagedError, DatasetError
from tiering.checksums import Buffer
from tiering.errors import ObjectNotFoundError
from tiering.store import BlockingStore

__all__ = ["NewObject", "secure_objects"]

_ROUNDS = 5
_ALONE = 32  # so few are looked up one after the other
_THREADS = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class NewObject:
    """An object that a commit relies on."""

    path: str
    sha256: str
    num_bytes: int | None
    """None: not known beforehand."""
    data: Buffer | None
    """Its bytes, where they are at hand."""


def secure_objects(
    store: BlockingStore, objects: Iterable[NewObject], *, since_seconds: float
) -> None:
    """Makes sure that all objects are there and not older than the transaction.

    Args:
        store: where.
        objects: what the version will name and its parent doesn't.
        since_seconds: begin of the transaction, by the store's clock.

    Raises:
        CommitConflictError: one was removed, and its bytes aren't at hand.
        DamagedError: one has another size or other bytes, and they aren't at hand.
        DatasetError: the store can't be read or written, or its clock runs backwards.
    """
    unique = {item.path: item for item in objects}
    for _ in range(_ROUNDS):
        await_deletions(store, unique, clock=lambda: store_seconds(store))
        old = _too_old(store, list(unique.values()), since_seconds=since_seconds)
        if not old:
            return
        for item in old:
            _refresh(store, item)
    raise DatasetError(
        f"{len(old)} objects in {store.url} are older than the transaction that wrote them, the "
        f"first is {old[0].path}: the store's clock runs backwards; nothing was committed; set "
        "the clocks of its machines right"
    )


def _too_old(
    store: BlockingStore, objects: Sequence[NewObject], *, since_seconds: float
) -> list[NewObject]:
    def stands(item: NewObject) -> bool:
        return _stands(store, item, since_seconds=since_seconds)

    if len(objects) <= _ALONE:
        found = [stands(item) for item in objects]
    else:
        with ThreadPoolExecutor(_THREADS) as threads:
            found = list(threads.map(stands, objects))
    return [item for item, good in zip(objects, found, strict=True) if not good]


def _stands(store: BlockingStore, item: NewObject, *, since_seconds: float) -> bool:
    with reading(store, item.path):
        try:
            info = store.head(item.path)
        except ObjectNotFoundError as error:
            if item.data is None:
                raise _gone(store, item) from error
            return False
    if item.num_bytes is not None and info.size != item.num_bytes:
        if item.data is not None:
            return False
        raise DamagedError(
            f"{item.path} in {store.url} has {info.size} bytes, {item.num_bytes} were written; "
            "nothing was committed; run the same command again, it is written anew"
        )
    return info.modified_seconds >= since_seconds


def _gone(store: BlockingStore, item: NewObject) -> CommitConflictError:
    return CommitConflictError(
        f"{item.path} in {store.url}, written before, was removed by another program; nothing was "
        "committed; run the same command again, it is written anew"
    )


def _refresh(store: BlockingStore, item: NewObject) -> None:
    data = item.data
    if data is None:
        with reading(store, item.path):
            try:
                data = store.get(item.path)
            except ObjectNotFoundError as error:
                raise _gone(store, item) from error
        check_digest(store, item.path, data, sha256=item.sha256)
    with writing(store):
        put_again(store, item.path, data)
