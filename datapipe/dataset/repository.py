"""A dataset's repository: all of its objects and versions below one URL."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pyarrow as pa

from datapipe.dataset import layout
from datapipe.dataset.hashing import canonical_json, sha256_hex
from datapipe.dataset.log import LogEntry, list_versions, read_entry, read_latest
from datapipe.dataset.manifest import check_format, decode_manifest
from datapipe.dataset.objects import get_json, read_object, reading, writing
from datapipe.dataset.reader import Dataset
from datapipe.dataset.references import resolve
from datapipe.dataset.retired import read_retired
from datapipe.dataset.seen import SeenVersions
from datapipe.dataset.shards import ShardRecord, Tokens, write_shard
from datapipe.errors import DamagedError, DatasetError, UnknownReferenceError
from tiering.errors import ObjectExistsError, ObjectNotFoundError, StoreError, StoreURLError
from tiering.store import BlockingStore, open_store

__all__ = [
    "FormatFile",
    "Repository",
    "find_repository",
    "log_entries",
    "note_committed",
    "open_dataset",
    "read_format",
    "rollback_check",
]


OpenCheck = Callable[[LogEntry, LogEntry | None], None]


class FormatFile(msgspec.Struct, frozen=True, kw_only=True):
    """format.json: what stands here once and for all."""

    format: int
    id: str
    """Random; tells datasets at the same URL apart."""
    exclusive_create: bool
    """Whether the store honoured "create only" when it was probed."""
    probed_at_seconds: float
    format_sha256: str
    """SHA-256 of the canonical JSON of all other fields."""


class Repository:
    """One dataset's objects below a URL; cheap to make, safe to share, picklable.

    Args:
        url: a local path or a URL that `tiering.store.open_store` knows.
        **options: of the store, see `tiering.store.open_store`; what environment and profile say
            need not be given.

    Raises:
        UnknownReferenceError: no store is known for the URL.
    """

    def __init__(self, url: str, **options: Any) -> None:
        self._since_seconds: float | None = None
        self._is_known = False
        try:
            self._store: BlockingStore = open_store(url, **options).blocking()
        except StoreURLError as error:
            raise UnknownReferenceError(str(error)) from error

    @classmethod
    def over(cls, store: BlockingStore) -> Repository:
        """Returns the repository in a store that is already open."""
        repository = cls.__new__(cls)
        repository._store = store
        repository._since_seconds = None
        repository._is_known = False
        return repository

    def since(self, seconds: float) -> Repository:
        """Returns the same repository for one transaction: it writes again what is older.

        Args:
            seconds: when the transaction began, by the store's clock.
        """
        repository = Repository.over(self._store)
        repository._since_seconds, repository._is_known = seconds, self._is_known
        return repository

    def __repr__(self) -> str:
        return f"Repository({self.url!r})"

    @property
    def url(self) -> str:
        """Where it is; printable."""
        return self._store.url

    @property
    def store(self) -> BlockingStore:
        """Where its objects are; whatever is done with a dataset passes here.

        Raises:
            DatasetError: a newer datapipe made it.
        """
        if not self._is_known:
            self._is_known = _refuse_newer(self._store)
        return self._store

    # -- the repository itself

    def exists(self) -> bool:
        """Returns whether there is a dataset, with versions or without."""
        try:
            self.store.head(layout.FORMAT_PATH)
        except ObjectNotFoundError:
            return False
        except StoreError as error:
            raise DatasetError(f"{self.url} can't be read: {error}") from error
        return True

    def has_log(self) -> bool:
        """Returns whether versions were committed here, whatever else is lost."""
        with reading(self.store, layout.LOG_PREFIX):
            return next(iter(self.store.list(layout.LOG_PREFIX)), None) is not None

    def create(self) -> None:
        """Makes an empty dataset; nothing to do where there is one.

        Raises:
            DatasetError: it can't be written, or what is there has a newer format.
            SpaceError: the disk is full.
        """
        if self.exists():
            read_format(self._store)
            return
        with writing(self._store):
            exclusive = _probe(self._store)
            data = _encode_format(exclusive=exclusive, now_seconds=time.time())
            try:
                self._store.put(layout.FORMAT_PATH, data)
            except ObjectExistsError:
                read_format(self._store)

    def check_numbers(self) -> None:
        """Returns if every version up to the newest has its log entry.

        Raises:
            DamagedError: one is missing.
        """
        with reading(self.store, layout.LOG_PREFIX):
            list_versions(self.store)

    # -- objects

    def write_shard(
        self, tokens: Tokens, *, source: str, number: int, docmap: pa.Table, text_bytes: int
    ) -> ShardRecord:
        """Writes a shard and its docmap; see `shards.write_shard`."""
        return write_shard(
            self._store,
            tokens,
            source=source,
            number=number,
            docmap=docmap,
            text_bytes=text_bytes,
            since_seconds=self._since_seconds,
        )

    def holds_shard(self, shard: ShardRecord) -> bool:
        """Returns whether a shard that was written before is whole still, with its docmap."""
        docmap = layout.docmap_path(shard.docmap_sha256)
        tokens = layout.tokens_path(shard.stored_sha256)
        try:
            read_object(self._store, docmap, sha256=shard.docmap_sha256)
            read_object(self._store, tokens, sha256=shard.stored_sha256)
        except DamagedError:
            return False
        return True

    # -- versions

    def latest(self, *, check: OpenCheck | None = None) -> Dataset | None:
        """Returns the newest version, None where there is none.

        Args:
            check: as for `open`.

        Raises:
            DamagedError: its entry or manifest is missing or damaged.
        """
        found = self._read_latest()
        if found is not None and check is not None:
            check(found[0], None)
        return self.open_entry(found[0]) if found else None

    def unreadable(self) -> LogEntry | None:
        """Returns the newest version's entry if its manifest is damaged or missing, else None.

        Raises:
            DamagedError: the log is damaged.
        """
        found = self._read_latest()
        try:
            if found:
                self.open_entry(found[0])
        except DamagedError:
            return found[0] if found else None
        return None

    def before(self, entry: LogEntry) -> Dataset | None:
        """Returns the version before the one of `entry`, None before the first."""
        if entry.version == 1:
            return None
        return self.open_entry(read_entry(self.store, entry.version - 1)[0])

    def open(self, ref: str | int | None = None, *, check: OpenCheck | None = None) -> Dataset:
        """Returns a version: the newest (None), by number, tag, manifest digest or time.

        What it means is found out once; the dataset returned never changes.

        Args:
            ref: 3, "3", "v3", "a-tag", "4f2a9c", "2026-11-30", "2026-11-30T12:00" (UTC).
            check: called with the newest entry and, where `ref` is given, the one it means, before
                the version is read; raises what it doesn't like.

        Raises:
            UnknownReferenceError: there is no such version.
            DamagedError: its entry or manifest is missing or damaged.
        """
        latest = self._read_latest()
        if latest is None:
            raise _no_versions(self)
        if ref is None:
            if check is not None:
                check(latest[0], None)
            return self.open_entry(latest[0])
        entry = resolve(
            self._store, str(ref), latest=latest[0].version, entries=lambda: log_entries(self)
        )
        if entry.version != latest[0].version:
            self._refuse_retired(entry.version)
        if check is not None:
            check(latest[0], entry)
        return self.open_entry(entry)

    def _read_latest(self) -> tuple[LogEntry, bytes] | None:
        """Returns what `read_latest` does, and asks for format.json meanwhile if need be."""
        if self._is_known:
            return read_latest(self._store)
        with ThreadPoolExecutor(1) as threads:
            known = threads.submit(_refuse_newer, self._store)
            try:
                return read_latest(self._store)
            finally:
                self._is_known = known.result()  # that it is newer comes before all damage

    def _refuse_retired(self, version: int) -> None:
        found = read_retired(self._store).get(version)
        if found is not None:
            raise UnknownReferenceError(
                f"version {version} of {self.url} was retired by {found.author or 'somebody'} "
                f"({found.reason}): what it held may be gone; open another version "
                "(`datapipe log` lists them)"
            )

    def open_entry(self, entry: LogEntry) -> Dataset:
        """Returns the version of a log entry, retired or not. Raises: DamagedError."""
        path = layout.manifest_path(entry.manifest)
        data = read_object(self._store, path, sha256=entry.manifest, json=True)
        return Dataset(
            repository=self,
            version=entry.version,
            manifest=decode_manifest(data, path=path),
            manifest_sha256=entry.manifest,
        )


def open_dataset(ref: str, *, accept_rollback: bool = False) -> Dataset:
    """Opens "URL" or "URL@VERSION": a number, a tag, a time, or the digits of a manifest digest.

    Args:
        ref: what to open.
        accept_rollback: the newest version may be older than the one that this user saw before,
            or another one; from now on what is there counts as seen.

    Raises:
        UnknownReferenceError: no dataset or version is there.
        RollbackError: versions that this user saw before are gone.
        DamagedError: the version's entry or manifest is missing or damaged.
    """
    repository, version = find_repository(ref)
    return repository.open(version, check=rollback_check(repository, accept=accept_rollback))


def rollback_check(repository: Repository, *, accept: bool = False) -> OpenCheck:
    """Returns what refuses a dataset that lost versions which this user saw; see `seen.py`."""

    def check(latest: LogEntry, opened: LogEntry | None) -> None:
        SeenVersions.of_user().check(
            repository.url,
            latest=latest,
            opened=opened,
            entry_at=lambda number: read_entry(repository.store, number)[0],
            accept=accept,
        )

    return check


def note_committed(repository: Repository, version: int) -> None:
    """Remembers that this user saw a version, since it was committed by them."""
    entry, _ = read_entry(repository.store, version)
    SeenVersions.of_user().note(repository.url, entry)


def find_repository(ref: str) -> tuple[Repository, str | None]:
    """Returns the dataset that "URL" or "URL@VERSION" means, and the version if one is named."""
    whole = Repository(ref)
    url, at, version = ref.rpartition("@")
    if not at or "/" in version or whole.exists():
        return whole, None
    repository = Repository(url) if url else whole
    is_one = repository.exists() or (bool(url) and repository.has_log())
    return (repository, version) if is_one else (whole, None)


def log_entries(repo: Repository) -> list[LogEntry]:
    """Returns all log entries, version 1 first. Raises: DamagedError: one is missing or damaged."""
    with reading(repo.store, layout.LOG_PREFIX):
        versions = list_versions(repo.store)
    return [read_entry(repo.store, version)[0] for version in versions]


def read_format(store: BlockingStore) -> FormatFile:
    """Returns what format.json says. Raises: DamagedError, DatasetError (newer format)."""
    with reading(store, layout.FORMAT_PATH):
        data = get_json(store, layout.FORMAT_PATH)
    check_format(data, path=layout.FORMAT_PATH)
    try:
        found = msgspec.json.decode(data, type=FormatFile)
        fields = msgspec.json.decode(data, type=dict[str, Any])
        canonical = canonical_json(fields) == data
        del fields["format_sha256"]
        digest = sha256_hex(canonical_json(fields))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _damaged_format(store, str(error)) from error
    if digest != found.format_sha256 or not canonical:
        raise _damaged_format(store, "its bytes aren't what format_sha256 says")
    return found


def _refuse_newer(store: BlockingStore) -> bool:
    """Returns whether there is a format.json to go by; damage is for those to say who need it.

    Raises:
        DatasetError: it is of a newer format.
    """
    try:
        data = get_json(store, layout.FORMAT_PATH)
        check_format(data, path=f"{layout.FORMAT_PATH} in {store.url}")
    except StoreError:
        return False
    except DamagedError:
        return True
    return True


def _encode_format(*, exclusive: bool, now_seconds: float) -> bytes:
    fields = {
        "format": layout.FORMAT_VERSION,
        "id": uuid.uuid4().hex,
        "exclusive_create": exclusive,
        "probed_at_seconds": now_seconds,
    }
    return canonical_json({**fields, "format_sha256": sha256_hex(canonical_json(fields))})


def _probe(store: BlockingStore) -> bool:
    """Returns whether the second of two creates of one key fails, as it must."""
    path = f"_work/probe-{uuid.uuid4().hex}"
    store.put(path, b"first")
    try:
        store.put(path, b"second")
    except ObjectExistsError:
        return True
    finally:
        store.delete(path)
    return False


def _damaged_format(store: BlockingStore, why: str) -> DamagedError:
    return DamagedError(
        f"{layout.FORMAT_PATH} in {store.url} is damaged: {why}; nothing can be written there; "
        "restore it from a copy"
    )


def _no_versions(repo: Repository) -> UnknownReferenceError:
    if repo.exists():
        return UnknownReferenceError(
            f"the dataset {repo.url} has no version yet; nothing can be read; run `datapipe build` "
            "to the end"
        )
    return UnknownReferenceError(
        f"there is no dataset at {repo.url}; nothing can be read; check the path, or make one "
        "with `datapipe build`"
    )
