"""Run records: what a training job read, as a few small files however long it runs.

    <runs>/<run>/segments/<8 digits>.json   a stretch with one batch size, world size and order
    <runs>/<run>/ends/<8 digits>.json       where it ended; absent after a kill, or while it runs
    <runs>/_specs/<sha256>.json             the order's spec, stored once, bytes as they are hashed

`<runs>` is `_runs/` of a dataset, or a place of its own. Segments are created exclusively and never
changed; a later one takes the place of earlier ones from its first batch on. What a spec says is
not known here: it is bytes under a digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from datapipe.dataset.hashing import canonical_json, sha256_hex
from datapipe.dataset.manifest import Digest
from datapipe.dataset.objects import get_json, put_object, reading, writing
from datapipe.dataset.parts import SourceParts
from datapipe.dataset.repository import Repository
from datapipe.errors import DamagedError, DatasetError, UnknownReferenceError, UsageError
from tiering.errors import AccessDeniedError, ObjectExistsError, ObjectNotFoundError, StoreURLError
from tiering.store import BlockingStore, open_store, printable_url

__all__ = [
    "LOCAL_RUNS",
    "RUN_FORMAT",
    "DatasetUse",
    "RunSegment",
    "RunStore",
    "SegmentEnd",
    "check_run_name",
    "run_places",
]

RUN_FORMAT = 1
"""Written into every file; newer ones are refused."""

LOCAL_RUNS = "datapipe-runs"
"""Folder, in the working folder, for records of runs on datasets that can't be written."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_SEGMENT = re.compile(r"segments/(\d{8})\.json")

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Positive = Annotated[int, msgspec.Meta(ge=1)]


class DatasetUse(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that a run reads; the manifest digest finds it wherever it is moved to."""

    name: str | None
    """What the run calls it; None: it is the only one."""
    url: str
    version: _Positive
    manifest: Digest


class RunSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a run: what was planned when it began. See `docs/lineage.md`."""

    spec: Digest
    """Of the order."""
    sources: tuple[SourceParts, ...]
    """What the spec's sources are made of, in its order."""
    datasets: tuple[DatasetUse, ...]
    split: str
    first_batch: _Count
    first_step: _Count
    first_sample: _Count
    global_batch_size: _Positive
    dp_world_size: _Positive
    batches_per_step: _Positive
    end_sample: _Positive | None
    """One after the last sample number of the stream; None: it has no end."""
    last: Literal["drop", "repeat"]
    started_seconds: float
    """Since the epoch, by the clock of the rank that wrote it."""
    format: int = RUN_FORMAT


class SegmentEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Where a segment ended."""

    next_batch: _Count
    """Every batch below it was delivered, and none from it on."""
    reason: Literal["finished", "closed", "failed"]
    """The stream's end, the reader stopped, or an error."""
    format: int = RUN_FORMAT


_Kind = TypeVar("_Kind", RunSegment, SegmentEnd)


class RunStore:
    """The run records at one place. Threads may share it; it pickles as its URL."""

    def __init__(self, store: BlockingStore, *, prefix: str) -> None:
        self._store, self._prefix = store, prefix

    @classmethod
    def of(cls, repository: Repository) -> RunStore:
        """Returns the records inside a dataset."""
        return cls(repository.store, prefix="_runs/")

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
        """Stores a spec and returns its digest; the same again is stored once."""
        digest = sha256_hex(spec)
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
            DatasetError: a newer format.
        """
        folder = f"{self._prefix}{check_run_name(run)}/"
        with reading(self._store, folder):
            paths = [info.path for info in self._store.list(f"{folder}segments/")]
        found = [path for path in paths if _SEGMENT.fullmatch(path.removeprefix(folder))]
        expected = [self._segment_path(run, number) for number in range(len(found))]
        if found != expected:
            raise DamagedError(
                f"run {run} in {self.place} lacks a segment: {len(found)} files, the last is "
                f"{found[-1]}; what it read can't be known; restore the missing files"
            )
        return [self._read(path, RunSegment) for path in found]

    def end(self, run: str, number: int) -> SegmentEnd | None:
        """Returns where a segment ended; None: it runs still, or was killed."""
        path = self._end_path(run, number)
        with reading(self._store, path):
            try:
                self._store.head(path)
            except ObjectNotFoundError:
                return None
        return self._read(path, SegmentEnd)

    def append(self, run: str, segment: RunSegment, *, number: int) -> None:
        """Stores the next segment of a run.

        Raises:
            UsageError: another process stored this number meanwhile.
            DatasetError: the place can't be written.
            SpaceError: its disk is full.
        """
        path = self._segment_path(check_run_name(run), number)
        with writing(self._store):
            try:
                self._store.put(path, _encode(segment))
            except ObjectExistsError as error:
                raise UsageError(
                    f"segment {number} of run {run} in {self.place} was begun by another process "
                    "meanwhile: two jobs under one name can't be told apart; stop one of them, or "
                    "give it another `run=`"
                ) from error

    def finish(self, run: str, number: int, end: SegmentEnd) -> None:
        """Stores where a segment ended; the first word stands. Raises: as `append`."""
        with writing(self._store):
            try:
                self._store.put(self._end_path(run, number), _encode(end))
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

    def _spec_path(self, digest: str) -> str:
        return f"{self._prefix}_specs/{digest}.json"

    def _segment_path(self, run: str, number: int) -> str:
        return f"{self._prefix}{run}/segments/{number:08d}.json"

    def _end_path(self, run: str, number: int) -> str:
        return f"{self._prefix}{run}/ends/{number:08d}.json"

    def _read(self, path: str, kind: type[_Kind]) -> _Kind:
        with reading(self._store, path):
            data = get_json(self._store, path)
        try:
            version = msgspec.json.decode(data, type=dict[str, Any]).get("format")
            if isinstance(version, int) and version > RUN_FORMAT:
                raise DatasetError(
                    f"{path} in {self._store.url} has format {version}, this program reads up to "
                    f"{RUN_FORMAT}; the run can't be read; install a newer datapipe-train"
                )
            return msgspec.json.decode(data, type=kind)
        except msgspec.MsgspecError as error:
            raise DamagedError(
                f"{path} in {self._store.url} isn't what a run record has there: {error}; it can't "
                "be used; restore it from a copy"
            ) from error


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


def _encode(value: msgspec.Struct) -> bytes:
    return canonical_json(msgspec.to_builtins(value))
