"""Run records: what a training job read, as a few small files however long it runs.

    <runs>/<run>/segments/<8 digits>.json   a stretch with one batch size, world size and order
    <runs>/<run>/progress/<8 digits>.json   how far it came for certain; overwritten
    <runs>/<run>/ends/<8 digits>.json       where it ended; absent after a kill, or while it runs
    <runs>/_specs/<sha256>.json             the order's spec, stored once, bytes as they are hashed

`<runs>` is `_runs/` of a dataset, or a place of its own. Segments are created exclusively and never
changed; a later one takes the place of earlier ones from its first batch on. What a spec says is
not known here: it is bytes under a digest. `run_records.py` says what the other files hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from datapipe.dataset.hashing import sha256_hex
from datapipe.dataset.layout import FORMAT_PATH
from datapipe.dataset.objects import get_json, put_again, put_object, reading, writing
from datapipe.dataset.repository import Repository
from datapipe.dataset.run_records import (
    RunRecord,
    RunSegment,
    SegmentEnd,
    SegmentProgress,
    decode_record,
    encode_record,
)
from datapipe.errors import DamagedError, DatasetError, UnknownReferenceError, UsageError
from tiering.errors import AccessDeniedError, ObjectExistsError, ObjectNotFoundError, StoreURLError
from tiering.store import BlockingStore, open_store, printable_url

__all__ = [
    "LOCAL_RUNS",
    "RUNS_PREFIX",
    "RunStore",
    "SegmentFiles",
    "check_run_name",
    "record_kind",
    "run_places",
]

RUNS_PREFIX = "_runs/"
"""Where a dataset keeps the records of the runs that read it."""

LOCAL_RUNS = "datapipe-runs"
"""Folder, in the working folder, for records of runs on datasets that can't be written."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_RECORD = re.compile(r"(?P<folder>segments|progress|ends)/(?P<number>\d{8})\.json")

_KINDS: dict[str, type[RunRecord]] = {
    "segments": RunSegment,
    "progress": SegmentProgress,
    "ends": SegmentEnd,
}

_Kind = TypeVar("_Kind", bound=RunRecord)


class SegmentFiles(NamedTuple):
    """What the files of a run say of one segment."""

    record: RunSegment
    end: SegmentEnd | None
    "None: it runs still, or was killed."
    progress: SegmentProgress | None
    "None: no state of it was saved."

    @property
    def next_batch(self) -> int | None:
        """One after the last batch; None: not known."""
        return None if self.end is None else self.end.next_batch

    @property
    def saved_sample(self) -> int | None:
        """next_sample of the last state that was noted."""
        return None if self.progress is None else self.progress.next_sample


class RunStore:
    """The run records at one place. Threads may share it; it pickles as its URL."""

    def __init__(self, store: BlockingStore, *, prefix: str, home: str | None = None) -> None:
        """Takes where the records are, and an object without which none is begun there."""
        self._store, self._prefix, self._home = store, prefix, home

    @classmethod
    def of(cls, repository: Repository) -> RunStore:
        """Returns the records inside a dataset."""
        return cls(repository.store, prefix=RUNS_PREFIX, home=FORMAT_PATH)

    @classmethod
    def at(cls, url: str) -> RunStore:
        """Returns the records at a place of their own. Raises: UsageError: no such store."""
        try:
            return cls(open_store(url).blocking(), prefix="")
        except StoreURLError as error:
            raise UsageError(f"runs={printable_url(url)} can't be used: {error}") from error

    @property
    def place(self) -> str:
        """Where the records are, for messages."""
        return f"{self._store.url}/{self._prefix}".rstrip("/")

    # -- specs

    def put_spec(self, spec: bytes) -> str:
        """Stores a spec and returns its digest; the same again is stored once.

        Raises:
            DatasetError: the place can't be written, or the dataset isn't there any more.
            SpaceError: its disk is full.
        """
        digest = sha256_hex(spec)
        if self._home is not None and not self._has(self._home):
            raise DatasetError(
                f"the order of a run can't be recorded in {self.place}: no dataset is there any "
                f"more ({self._home} is missing); it was moved or removed, and nothing was written "
                "there. Open it where it is now"
            )
        put_object(self._store, self._spec_path(digest), spec)
        return digest

    def is_writable(self, spec: bytes) -> bool:
        """Returns whether this user may write here, by storing a spec.

        Raises:
            SpaceError, DatasetError: it can't be written for another reason.
        """
        try:
            self.put_spec(spec)
        except DatasetError as error:
            if isinstance(error.__cause__, AccessDeniedError):
                return False
            raise
        return True

    def spec(self, digest: str) -> bytes | None:
        """Returns a spec, None where it isn't stored. Raises: DamagedError."""
        path = self._spec_path(digest)
        with reading(self._store, path):
            try:
                data = self._store.get(path)
            except ObjectNotFoundError:
                return None
        if sha256_hex(data) != digest:
            raise DamagedError(
                f"{path} in {self._store.url} is damaged: SHA-256 {sha256_hex(data)} read; the "
                "order of the runs that name it can't be known; restore it from a copy"
            )
        return data

    # -- runs

    def runs(self) -> list[str]:
        """Returns the names of all runs, ascending."""
        with reading(self._store, self._prefix):
            paths = [info.path for info in self._store.list(self._prefix)]
        names = (path.removeprefix(self._prefix).split("/", 1)[0] for path in paths)
        return sorted({name for name in names if _NAME.fullmatch(name)})

    def segments(self, run: str) -> list[RunSegment]:
        """Returns the segments of a run in the order they were begun, none for no such run.

        Raises:
            DamagedError: one is missing between others or can't be read.
            DatasetError: a newer format, or the place can't be read.
        """
        count = len(self.check_numbers(run)["segments"])
        return [self._read(run, "segments", RunSegment, number) for number in range(count)]

    def read(self, run: str) -> list[SegmentFiles]:
        """Returns all that is recorded of a run's segments, in order. Raises: as `segments`."""
        numbers = self.check_numbers(run)
        found = []
        for number in numbers["segments"]:
            end = progress = None
            if number in numbers["ends"]:
                end = self._read(run, "ends", SegmentEnd, number)
            if number in numbers["progress"]:
                progress = self._read(run, "progress", SegmentProgress, number)
            record = self._read(run, "segments", RunSegment, number)
            found.append(SegmentFiles(record=record, end=end, progress=progress))
        return found

    def check_numbers(self, run: str) -> dict[str, list[int]]:
        """Returns the numbers of a run's files by folder, ascending.

        Raises:
            DamagedError: a segment is missing.
            DatasetError: the place can't be read.
        """
        numbers = self._numbers(run)
        count = len(numbers["segments"])
        last = max((number for found in numbers.values() for number in found), default=-1)
        if numbers["segments"] != list(range(count)) or last >= count:
            raise DamagedError(
                f"run {run} in {self.place} lacks a segment: it has {count}, and a file of number "
                f"{last}; what it read can't be known; restore the missing files"
            )
        return numbers

    def append(self, run: str, segment: RunSegment, *, number: int) -> None:
        """Stores the next segment of a run.

        Raises:
            UsageError: another process stored this number meanwhile.
            DatasetError: the place can't be written.
            SpaceError: its disk is full.
        """
        path = self._path(check_run_name(run), "segments", number)
        with writing(self._store):
            try:
                self._store.put(path, encode_record(segment))
            except ObjectExistsError as error:
                raise UsageError(
                    f"segment {number} of run {run} in {self.place} was begun by another process "
                    "meanwhile: two jobs under one name can't be told apart; stop one of them, or "
                    "give it another `run=`"
                ) from error

    def note(self, run: str, number: int, progress: SegmentProgress) -> None:
        """Stores how far a segment came, in the place of what was noted before.

        Raises:
            DatasetError: the place can't be written, or the segment isn't there any more.
            SpaceError: its disk is full.
        """
        self._require_segment(run, number)
        with writing(self._store):
            put_again(self._store, self._path(run, "progress", number), encode_record(progress))

    def finish(self, run: str, number: int, end: SegmentEnd) -> None:
        """Stores where a segment ended; the first word stands. Raises: as `note`."""
        self._require_segment(run, number)
        with writing(self._store):
            try:
                self._store.put(self._path(run, "ends", number), encode_record(end))
            except ObjectExistsError:
                return

    def unknown(self, run: str) -> UnknownReferenceError:
        """Returns the error that there is no such run, naming those that there are."""
        names = self.runs()
        known = ", ".join(names[:20]) or "none"
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        return UnknownReferenceError(
            f"there is no run {run} in {self.place}; nothing is known of what it read; runs there: "
            f"{known}{more}. Records kept elsewhere are found with `runs=` (`--runs`)"
        )

    def _require_segment(self, run: str, number: int) -> None:
        # Else a write would make the folder of a dataset anew that was moved away meanwhile.
        if not self._has(self._path(run, "segments", number)):
            raise DatasetError(
                f"segment {number} of run {run} is no longer in {self.place}: it was moved or "
                "removed meanwhile, and nothing was written there"
            )

    def _has(self, path: str) -> bool:
        with reading(self._store, path):
            try:
                self._store.head(path)
            except ObjectNotFoundError:
                return False
        return True

    def _spec_path(self, digest: str) -> str:
        return f"{self._prefix}_specs/{digest}.json"

    def _path(self, run: str, folder: str, number: int) -> str:
        return f"{self._prefix}{run}/{folder}/{number:08d}.json"

    def _numbers(self, run: str) -> dict[str, list[int]]:
        """Returns the numbers of a run's files by folder, ascending."""
        folder = f"{self._prefix}{check_run_name(run)}/"
        with reading(self._store, folder):
            paths = [info.path for info in self._store.list(folder)]
        numbers: dict[str, list[int]] = {name: [] for name in _KINDS}
        for path in paths:
            if match := _RECORD.fullmatch(path.removeprefix(folder)):
                numbers[match["folder"]].append(int(match["number"]))
        return numbers

    def _read(self, run: str, folder: str, kind: type[_Kind], number: int) -> _Kind:
        path = self._path(run, folder, number)
        with reading(self._store, path):
            data = get_json(self._store, path)
        return decode_record(data, kind, path=f"{path} in {self._store.url}")


def record_kind(path: str) -> type[RunRecord] | None:
    """Returns what a file of a run holds, by its path below the run's folder; None: no record."""
    match = _RECORD.fullmatch(path)
    return None if match is None else _KINDS[match["folder"]]


def run_places(repositories: Iterable[Repository], *, runs: str | None) -> list[RunStore]:
    """Returns where run records may be: `runs` alone if given, else the datasets and a folder.

    The folder, ./datapipe-runs, holds the records of jobs that may not write their dataset.

    Raises:
        UsageError: `runs` isn't the URL of a store.
    """
    if runs is not None:
        return [RunStore.at(runs)]
    return [*map(RunStore.of, repositories), RunStore.at(LOCAL_RUNS)]


def check_run_name(run: str) -> str:
    """Returns a run's name. Raises: UsageError: it can't be the name of a folder everywhere."""
    if not isinstance(run, str) or not _NAME.fullmatch(run):
        raise UsageError(
            f"{run!r} can't name a run: no record was made; take 1 to 128 letters, digits, '.', "
            "'_' and '-', the first a letter or digit"
        )
    return run
