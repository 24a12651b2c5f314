"""Garbage collection in two steps: mark what nobody needs, and delete it once it was waited for.

Garbage is what no kept version names, and what is older than both the grace period and the oldest
living transaction, by the store's clock. Marking writes the paths into `_gc/<id>.marked.json`; when
that is older than the grace period too, everything is looked at again before it is deleted. How a
writer and a deletion see each other is described in `deletion.py`.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from datapipe.dataset.deletion import (
    LEASE_SECONDS,
    Deletion,
    remove_dead_deletions,
    write_deletion,
)
from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.layout import (
    FORMAT_VERSION,
    GARBAGE_PREFIX,
    INDEX_PREFIX,
    MANIFEST_PREFIX,
    TRANSACTIONS_PREFIX,
    WORK_PREFIX,
    transaction_path,
)
from datapipe.dataset.log import LogEntry
from datapipe.dataset.objects import reading, writing
from datapipe.dataset.reachable import Reachable
from datapipe.dataset.repository import Repository, log_entries, read_format
from datapipe.dataset.retired import read_retired
from datapipe.dataset.runs import RunStore
from datapipe.dataset.transaction import live_transactions, store_seconds
from datapipe.dataset.witnesses import check_witnesses, read_witnesses, reasons_to_keep
from datapipe.errors import DamagedError, UsageError
from tiering.errors import ObjectNotFoundError
from tiering.store import BlockingStore, ObjectInfo

__all__ = ["COLLECTED", "Collector", "Garbage", "Mark", "Swept"]

COLLECTED = (
    f"{MANIFEST_PREFIX}/",
    "tokens/",
    "docmap/",
    "dropped/",
    f"{INDEX_PREFIX}/",
    "signatures/",
    "signals/",
    "private/quarantine/",
    "tokenizer/",
)
"""Only below these, and in the work folder, is anything ever collected."""

_AT_ONCE = 1000
"""Paths of one announced deletion."""

_LOOKED_UP_AT_ONCE = 100
"""Paths that are looked up before they are deleted together."""

_MARK_SUFFIX = ".marked.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Garbage:
    """What could be freed."""

    objects: tuple[ObjectInfo, ...]
    kept: dict[int, list[str]] = field(default_factory=dict)
    """Why each version stays, by number; those that are retired and not needed aren't in it."""
    transactions: int = 0
    """Living writers: nothing that is younger than the oldest is garbage."""

    @property
    def num_bytes(self) -> int:
        """Their size together."""
        return sum(info.size for info in self.objects)

    def by_folder(self) -> dict[str, tuple[int, int]]:
        """Returns (objects, bytes) by first folder."""
        sums: dict[str, tuple[int, int]] = {}
        for info in self.objects:
            folder = info.path.split("/", 1)[0]
            count, size = sums.get(folder, (0, 0))
            sums[folder] = (count + 1, size + info.size)
        return dict(sorted(sums.items()))


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A list of garbage that waits to be deleted."""

    format: int
    id: str
    paths: tuple[str, ...]
    num_bytes: int

    @property
    def path(self) -> str:
        """Where it is."""
        return f"{GARBAGE_PREFIX}{self.id}{_MARK_SUFFIX}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Swept:
    """What was deleted."""

    objects: int
    num_bytes: int
    spared: int
    """Marked objects that somebody needs again."""
    waiting: int
    """Marked objects whose time hasn't come."""


class Collector:
    """Finds, marks and deletes the garbage of one dataset.

    Args:
        repo: the dataset.
        grace_seconds: what is younger isn't garbage, and what is marked waits so long.
        runs: places where runs are recorded, beside the dataset itself.
        now: seconds that pass while the machine sleeps too, from any start.
    """

    def __init__(
        self,
        repo: Repository,
        *,
        grace_seconds: float,
        runs: Sequence[RunStore] = (),
        now: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        if grace_seconds < 0:
            raise UsageError(f"a grace period of {grace_seconds} s can't be; give 0 or more")
        self._repo, self._store, self._grace = repo, repo.store, grace_seconds
        self._runs = runs
        self._now = now
        self._reachable = Reachable(repo.store)

    def _reasons(self) -> tuple[list[LogEntry], dict[int, list[str]]]:
        """Returns the log, and why versions must stay whatever their age.

        Raises:
            DamagedError: the log has lost entries, so what they need would look like garbage.
        """
        read_format(self._store)  # what it says decides what all the rest means
        witnesses = read_witnesses(self._repo, runs=self._runs)
        entries = log_entries(self._repo)
        manifests = {entry.version: entry.manifest for entry in entries}
        check_witnesses(self._store, witnesses, latest=len(entries), manifests=manifests)
        return entries, reasons_to_keep(witnesses, entries)

    def retirable(self, *, older_than_seconds: float, time_seconds: float) -> list[LogEntry]:
        """Returns the entries of versions that are old enough to be given up and not needed.

        Args:
            older_than_seconds: age of the version, by the clock of its writer.
            time_seconds: now, since the epoch.
        """
        entries, reasons = self._reasons()
        retired = read_retired(self._store)
        return [
            entry
            for entry in entries
            if time_seconds - entry.time_seconds > older_than_seconds
            and entry.version not in reasons
            and entry.version not in retired
        ]

    # -- step 1

    def find(self, *, without: Collection[int] = ()) -> Garbage:
        """Returns what could be freed now; changes nothing.

        Args:
            without: versions that count as retired already.

        Raises:
            DamagedError: what is needed can't be known, so nothing may be freed.
        """
        limit, writers = self._limit(store_seconds(self._store))
        kept, needed = self._needed(without=without)
        objects = [info for info in self._listed(work=not writers) if info.modified_seconds < limit]
        garbage = tuple(info for info in objects if info.path not in needed)
        return Garbage(objects=garbage, kept=kept, transactions=writers)

    def mark(self, garbage: Garbage) -> Mark | None:
        """Writes down what could be freed and isn't yet marked; None: nothing."""
        known = {path for mark, _ in self._marks() for path in mark.paths}
        new = [info for info in garbage.objects if info.path not in known]
        if not new:
            return None
        mark = Mark(
            format=FORMAT_VERSION,
            id=uuid.uuid4().hex,
            paths=tuple(info.path for info in new),
            num_bytes=sum(info.size for info in new),
        )
        with writing(self._store):
            self._store.put(mark.path, canonical_json(msgspec.to_builtins(mark)))
        return mark

    # -- step 2

    def sweep(self) -> Swept:
        """Deletes what was marked a grace period ago and is garbage still; and dead transactions.

        Raises:
            DamagedError: what is needed can't be known, so nothing may be freed.
        """
        objects = num_bytes = spared = waiting = 0
        now = store_seconds(self._store)
        for mark, marked_seconds in self._marks():
            if now - marked_seconds < self._grace:
                waiting += len(mark.paths)
                continue
            for start in range(0, len(mark.paths), _AT_ONCE):
                part = mark.paths[start : start + _AT_ONCE]
                deleted = self._delete(part)
                objects += len(deleted)
                num_bytes += sum(deleted)
                spared += len(part) - len(deleted)
            with writing(self._store):
                self._store.delete(mark.path)
        self._remove_dead()
        return Swept(objects=objects, num_bytes=num_bytes, spared=spared, waiting=waiting)

    def _delete(self, paths: Sequence[str]) -> list[int]:
        """Deletes what of `paths` is garbage still; returns the sizes."""
        sizes: list[int] = []
        rest = [path for path in paths if path.startswith((*COLLECTED, WORK_PREFIX))]
        while rest:
            work = [WORK_PREFIX] if any(path.startswith(WORK_PREFIX) for path in rest) else []
            deletion = Deletion(id=uuid.uuid4().hex, paths=(*rest, *work))
            began = self._now()
            with writing(self._store):
                announced = write_deletion(self._store, deletion)
                try:
                    # Everything below is read after the announcement: see `deletion.py`.
                    limit, writers = self._limit(announced)
                    _, needed = self._needed()
                    while rest and self._now() - began < LEASE_SECONDS / 2:
                        some, rest = rest[:_LOOKED_UP_AT_ONCE], rest[_LOOKED_UP_AT_ONCE:]
                        kept = {path for path in some if writers and path.startswith(WORK_PREFIX)}
                        sizes += self._delete_old(set(some) - needed - kept, limit)
                finally:
                    self._store.delete(deletion.path)
        return sizes

    def _delete_old(self, paths: Collection[str], limit: float) -> list[int]:
        """Deletes what is older than the limit; returns the sizes."""
        old: dict[str, int] = {}
        for path in sorted(paths):
            with contextlib.suppress(ObjectNotFoundError):
                info = self._store.head(path)
                if info.modified_seconds < limit:
                    old[path] = info.size
        self._store.delete_many(old)
        return list(old.values())

    def _remove_dead(self) -> None:
        """Removes transactions and deletions whose programs are gone."""
        with reading(self._store, TRANSACTIONS_PREFIX):
            there = [info.path for info in self._store.list(TRANSACTIONS_PREFIX)]
        living = {transaction_path(live.id) for live in live_transactions(self._repo)}
        with writing(self._store):
            for path in there:
                if path not in living:
                    self._store.delete(path)
            remove_dead_deletions(self._store, now=store_seconds(self._store))

    # -- what is needed

    def _limit(self, now: float) -> tuple[float, int]:
        """Returns the age limit by the store's clock, and the number of living writers."""
        living = live_transactions(self._repo)
        return min([now - self._grace, *(live.begun_seconds for live in living)]), len(living)

    def _needed(self, *, without: Collection[int] = ()) -> tuple[dict[int, list[str]], set[str]]:
        entries, reasons = self._reasons()
        retired = {*read_retired(self._store), *without}
        kept = {
            entry.version: reasons.get(entry.version, ["not retired"])
            for entry in entries
            if entry.version in reasons or entry.version not in retired
        }
        manifests = {entry.manifest for entry in entries if entry.version in kept}
        needed = self._reachable.of(manifests)
        needed |= {f"{MANIFEST_PREFIX}/{entry.manifest}.json" for entry in entries}
        return kept, needed

    def _listed(self, *, work: bool) -> Iterator[ObjectInfo]:
        """Yields what is collected at all; a living writer may use any of the work folder."""
        for prefix in (*COLLECTED, *([WORK_PREFIX] if work else [])):
            with reading(self._store, prefix):
                yield from self._store.list(prefix)

    def _marks(self) -> list[tuple[Mark, float]]:
        """Returns the marks with their times by the store's clock."""
        return list(_read_marks(self._store))


def _read_marks(store: BlockingStore) -> Iterator[tuple[Mark, float]]:
    with reading(store, GARBAGE_PREFIX):
        for info in list(store.list(GARBAGE_PREFIX)):
            if not info.path.endswith(_MARK_SUFFIX):
                continue
            try:
                mark = msgspec.json.decode(store.get(info.path), type=Mark)
                if mark.path != info.path:
                    raise msgspec.ValidationError(f"it is the list {mark.id[:64]!r}")
            except ObjectNotFoundError:
                continue  # another collector was faster
            except msgspec.MsgspecError as error:
                raise DamagedError(
                    f"{info.path} in {store.url} isn't a list of garbage: {error}; nothing was "
                    "freed; delete that object and run the same command again"
                ) from error
            yield mark, info.modified_seconds
