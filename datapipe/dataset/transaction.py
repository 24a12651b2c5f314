"""Transactions: what a writer says of itself while its objects are not yet part of a version.

A writer creates `_transactions/<id>.json` before its first object and removes it after its last.
As long as it is renewed, garbage collection keeps every object that is younger than it; so the
writer writes those again that are older. All ages are taken by the store's clock, never by the
writer's.
"""

from __future__ import annotations

import contextlib
import re
import threading
import uuid
from types import TracebackType
from typing import Self

import msgspec

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.layout import (
    FORMAT_VERSION,
    TRANSACTIONS_PREFIX,
    WORK_PREFIX,
    transaction_path,
)
from datapipe.dataset.objects import get_json, put_again, reading, writing
from datapipe.dataset.process import this_process
from datapipe.dataset.repository import Repository, read_format
from datapipe.dataset.witnesses import check_log
from datapipe.errors import (
    CommitUndecidedError,
    DatasetError,
    StoreUnfitError,
    TransactionExpiredError,
)
from tiering.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
    UndecidedError,
)
from tiering.store import BlockingStore, ObjectInfo

__all__ = [
    "GRACE_SECONDS",
    "HEARTBEAT_SECONDS",
    "LiveTransaction",
    "Transaction",
    "TransactionFile",
    "begin_transaction",
    "check_alone",
    "live_transactions",
    "store_seconds",
]

HEARTBEAT_SECONDS = 3600.0
"""A transaction is renewed as often."""

GRACE_SECONDS = 86_400.0
"""One that wasn't renewed for so long is dead: its writer doesn't commit, its objects are freed."""

_ATTEMPTS = 5
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class TransactionFile(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in `_transactions/<id>.json`; its age is the store's time of the object."""

    format: int
    id: str
    author: str
    base_version: int
    """The newest version when it began, 0 for none."""
    started_seconds: float
    """Since the epoch, by the writer's clock; for people."""
    begun_seconds: float | None
    """By the store's clock; None until it is renewed for the first time: the object's own time."""
    heartbeats: int
    """How often it was renewed."""
    grace_seconds: float
    """Without renewal for so long it is dead."""
    process: str = ""
    """Of the writer, as `process.this_process` has it; empty: not known."""


class LiveTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A writer's transaction, as the store shows it; times by the store's clock."""

    id: str
    author: str
    begun_seconds: float
    """Objects that are older aren't protected by it."""
    renewed_seconds: float
    grace_seconds: float
    process: str


class Transaction:
    """A running transaction; as a context manager it ends when the block does.

    Made by `begin_transaction`. Renews itself in a thread of its own; `check` says whether it is
    still alive.
    """

    def __init__(
        self, store: BlockingStore, file: TransactionFile, *, begun: ObjectInfo, exclusive: bool
    ) -> None:
        self._store, self._file, self._info = store, file, begun
        self.started_seconds = begun.modified_seconds
        """By the store's clock: objects that are older aren't protected by it."""
        self.is_exclusive = exclusive
        """Whether the store honours "create only if absent"."""
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._lapsed = ""

    @property
    def id(self) -> str:
        """Unique; stands in the log entry."""
        return self._file.id

    @property
    def path(self) -> str:
        """Where its file is."""
        return transaction_path(self.id)

    def check(self) -> None:
        """Renews it, and makes sure that it was alive all the time.

        Raises:
            TransactionExpiredError: it wasn't renewed for longer than its grace period, or
                somebody removed it: its objects may be gone.
            DatasetError: the store can't be written.
        """
        with self._lock, writing(self._store):
            if not self._lapsed:
                self._renew()
        if self._lapsed:
            raise TransactionExpiredError(
                f"transaction {self.id} in {self._store.url} {self._lapsed}: objects that it wrote "
                "may be gone; nothing was committed; run the same command again, it goes on from "
                "what is there"
            )

    def end(self) -> None:
        """Stops renewing and removes the file; to be called once nothing needs protection."""
        self._ended.set()
        with self._lock, contextlib.suppress(StoreError):  # it dies by itself after its grace
            self._store.delete(self.path)

    def keep_alive(self, *, every_seconds: float) -> None:
        """Starts the thread that renews it."""
        threading.Thread(
            target=self._beat, args=(every_seconds,), name=f"transaction-{self.id}", daemon=True
        ).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, CommitUndecidedError):
            self._ended.set()  # its entry may yet appear: the file protects the objects till then
        else:
            self.end()

    def _beat(self, every_seconds: float) -> None:
        while not self._ended.wait(every_seconds):
            # A renewal that fails is tried again; whether it was too late is for `check` to say.
            with self._lock, contextlib.suppress(StoreError):
                if not self._ended.is_set() and not self._lapsed:
                    self._renew()

    def _renew(self) -> None:
        file = msgspec.structs.replace(
            self._file, begun_seconds=self.started_seconds, heartbeats=self._file.heartbeats + 1
        )
        try:
            self._store.head(self.path)
        except ObjectNotFoundError:
            self._lapsed = "was removed by another program"
            return
        put_again(self._store, self.path, _encode(file))
        renewed = self._store.head(self.path)
        silent = renewed.modified_seconds - self._info.modified_seconds
        if silent > file.grace_seconds:
            self._lapsed = f"wasn't renewed for {silent:,.0f} s"
        self._file, self._info = file, renewed


def begin_transaction(
    repo: Repository,
    *,
    base_version: int,
    author: str,
    time_seconds: float,
    id: str | None = None,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
    grace_seconds: float = GRACE_SECONDS,
) -> Transaction:
    """Begins a transaction, before its first object is written.

    Args:
        repo: the dataset, created before.
        base_version: the version that the work started from, 0 for none.
        author: who.
        time_seconds: now, since the epoch, by the writer's clock.
        id: default: a random one. A given one that is there already is taken over.
        heartbeat_seconds: how often it is renewed.
        grace_seconds: without renewal for so long it is dead.

    Raises:
        StoreUnfitError: the store ignores "create only if absent", and it was thought to honour
            it, or another writer is at work.
        DamagedError: the log has lost entries.
        DatasetError: the store can't be read or written.
    """
    verdict = read_format(repo.store).exclusive_create
    check_log(repo)
    name = id or uuid.uuid4().hex
    if not _ID.fullmatch(name):
        raise ValueError(f"{name!r} can't name a transaction; give up to 64 letters and digits")
    file = TransactionFile(
        format=FORMAT_VERSION,
        id=name,
        author=author,
        base_version=base_version,
        started_seconds=float(time_seconds),
        begun_seconds=None,
        heartbeats=0,
        grace_seconds=float(grace_seconds),
        process=this_process(),
    )
    with writing(repo.store):
        honoured = _create(repo.store, file)
        begun = repo.store.head(transaction_path(name))
    transaction = Transaction(repo.store, file, begun=begun, exclusive=verdict)
    try:
        _check_store(repo, transaction, honoured=honoured)
    except BaseException:
        transaction.end()
        raise
    transaction.keep_alive(every_seconds=heartbeat_seconds)
    return transaction


def _check_store(repo: Repository, transaction: Transaction, *, honoured: bool) -> None:
    """Returns if one may write there; `honoured`: whether the second of two creates failed."""
    if not transaction.is_exclusive:
        check_alone(repo, transaction)
    elif not honoured:
        raise _unfit(
            repo,
            "but the dataset was made where it is honoured, and other writers rely on it; "
            "nothing was written; reach the store without that proxy",
        )


def check_alone(repo: Repository, transaction: Transaction) -> None:
    """Returns if no other writer is at work.

    Two that begin at once both see the other, because each writes its file before it looks.

    Raises:
        StoreUnfitError: another one is.
    """
    others = [other for other in live_transactions(repo) if other.id != transaction.id]
    if others:
        first = others[0]
        raise _unfit(
            repo,
            f"so one writer at a time can be let in, and {first.author or 'another'} writes in "
            f"transaction {first.id}; nothing was committed; wait for that one to end, or if it is "
            f"certainly dead delete {transaction_path(first.id)}",
        )


def live_transactions(repo: Repository) -> list[LiveTransaction]:
    """Returns the transactions that aren't dead, by the store's clock, ascending by id.

    Raises:
        DatasetError: the store can't be read or written.
    """
    with reading(repo.store, TRANSACTIONS_PREFIX):
        files = list(repo.store.list(TRANSACTIONS_PREFIX))
        found = [_read(repo.store, info) for info in files]
    now = store_seconds(repo.store) if files else 0.0
    return [t for t in found if t is not None and now - t.renewed_seconds <= t.grace_seconds]


def store_seconds(store: BlockingStore) -> float:
    """Returns the time by the store's clock, since the epoch: that of an object written now."""
    path = f"{WORK_PREFIX}clock-{uuid.uuid4().hex}"
    with writing(store):
        for _ in range(_ATTEMPTS):
            put_again(store, path, b"")
            # One that is gone already was taken for garbage by a collector without grace.
            with contextlib.suppress(ObjectNotFoundError):
                seconds = store.head(path).modified_seconds
                store.delete(path)
                return seconds
    raise DatasetError(
        f"{path} in {store.url} was removed {_ATTEMPTS} times as soon as it was written; the "
        "store's time can't be known; run the same command again"
    )


def _create(store: BlockingStore, file: TransactionFile) -> bool:
    """Creates the file, then once more; returns whether the second time failed, as it must."""
    path, data, created = transaction_path(file.id), _encode(file), False
    for _ in range(_ATTEMPTS):
        try:
            store.put(path, data)
            if created:
                return False
            created = True
            store.put(path, data)
        except ObjectExistsError:
            if not created:  # an earlier run's, or ours and the answer was lost
                put_again(store, path, data)
            return True
        except UndecidedError as error:
            unanswered = error
            continue
        return False
    raise DatasetError(
        f"{path} in {store.url} was asked for {_ATTEMPTS} times without an answer; nothing was "
        "begun; run the same command again when the store answers"
    ) from unanswered


def _read(store: BlockingStore, info: ObjectInfo) -> LiveTransaction | None:
    """Returns a transaction, dead or alive; None: it ended meanwhile."""
    try:
        data = get_json(store, info.path)
    except ObjectNotFoundError:
        return None
    renewed = info.modified_seconds
    try:
        file = msgspec.json.decode(data, type=TransactionFile)
        if transaction_path(file.id) != info.path:
            raise msgspec.ValidationError(f"it is the file of transaction {file.id}")
    except msgspec.MsgspecError:  # whatever it is, it may be a writer's: everything is protected
        return LiveTransaction(
            id=info.path.removeprefix(TRANSACTIONS_PREFIX).removesuffix(".json"),
            author="",
            begun_seconds=0.0,
            renewed_seconds=renewed,
            grace_seconds=GRACE_SECONDS,
            process="",
        )
    return LiveTransaction(
        id=file.id,
        author=file.author,
        begun_seconds=renewed if file.begun_seconds is None else file.begun_seconds,
        renewed_seconds=renewed,
        grace_seconds=file.grace_seconds,
        process=file.process,
    )


def _unfit(repo: Repository, what: str) -> StoreUnfitError:
    return StoreUnfitError(
        f'{repo.url} ignores "create only if absent" (on S3 the header If-None-Match), or a proxy '
        f"in between drops it: two writers could overwrite each other's versions; {what}"
    )


def _encode(file: TransactionFile) -> bytes:
    return canonical_json(msgspec.to_builtins(file))
