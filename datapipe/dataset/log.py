"""The log: one entry a version, created exclusively, each holding the hash of the one before.

HINT holds a recent number, so that readers need not list: they read that entry, then the next ones
until one is absent. It may be stale or absent. A gap in the numbers is damage.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.layout import HINT_PATH, LOG_PREFIX, entry_path, entry_version
from datapipe.dataset.manifest import Digest, check_format
from datapipe.dataset.objects import get_json, get_json_together, reading, writing
from datapipe.dataset.seals import check_seal, seal_of
from datapipe.errors import CommitUndecidedError, DamagedError
from tiering.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
    ThrottledError,
    UndecidedError,
)
from tiering.store import BlockingStore, Mode

__all__ = [
    "LogEntry",
    "decode_entry",
    "encode_entry",
    "find_latest",
    "find_newest_number",
    "list_versions",
    "publish_entry",
    "read_entry",
    "read_hint",
    "read_latest",
    "seal_entry",
]

_LISTINGS = 3
"""A listing while entries are created may have a later one and lack an earlier one."""

_SEAL = "entry_sha256"

_PAUSES_SECONDS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Between the attempts to get an answer: most outages of a store are shorter than their sum."""


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One commit. Times and places stand here and not in the manifest."""

    format: int
    dataset: str
    """The random id of format.json."""
    version: int
    previous_sha256: Digest | None
    """SHA-256 of the bytes of the entry before; None for version 1."""
    manifest: Digest
    transaction: str
    operation: str
    author: str
    reason: str
    time_seconds: float
    """Since the epoch."""
    input_roots: tuple[dict[str, Any], ...]
    entry_sha256: Digest
    """SHA-256 of the canonical JSON of all other fields."""


def seal_entry(entry: LogEntry) -> LogEntry:
    """Returns the entry with its own digest in the place of whatever was there."""
    seal = seal_of(msgspec.to_builtins(entry), name=_SEAL)
    return msgspec.structs.replace(entry, entry_sha256=seal)


def encode_entry(entry: LogEntry) -> bytes:
    """Returns an entry's canonical JSON."""
    return canonical_json(msgspec.to_builtins(entry))


def decode_entry(data: bytes, *, path: str) -> LogEntry:
    """Returns the entry in JSON bytes. Raises: DamagedError, DatasetError (newer format)."""
    check_format(data, path=path)
    try:
        entry = msgspec.json.decode(data, type=LogEntry)
        check_seal(msgspec.json.decode(data, type=dict[str, Any]), name=_SEAL)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    if path != entry_path(entry.version):
        raise _damaged(path, f"it is the entry of version {entry.version}")
    return entry


def read_entry(store: BlockingStore, version: int) -> tuple[LogEntry, bytes]:
    """Returns an entry and its bytes. Raises: DamagedError: missing or damaged."""
    path = entry_path(version)
    with reading(store, path):
        data = get_json(store, path)
    return decode_entry(data, path=path), data


def read_hint(store: BlockingStore) -> int | None:
    """Returns the number in HINT, or None where there is none or it can't be understood."""
    try:
        text = store.get_range(HINT_PATH, 0, 32)
    except ObjectNotFoundError:
        return None
    return int(text) if text.isdigit() else None


def find_latest(store: BlockingStore) -> int:
    """Returns the number of the newest version, 0 where there is none. Raises: DamagedError."""
    found = read_latest(store)
    return found[0].version if found else 0


def read_latest(store: BlockingStore) -> tuple[LogEntry, bytes] | None:
    """Returns the newest version's entry and its bytes, None where there is none.

    Two round trips where HINT is right: the entry that it names and the next are asked for at
    once.

    Raises:
        DamagedError: the entry is damaged, or HINT didn't help and the numbers have a gap.
    """
    with reading(store, LOG_PREFIX):
        number = read_hint(store) or 0
        data, following = get_json_together(store, [entry_path(number), entry_path(number + 1)])
        if data is None:
            number = len(list_versions(store))
            data, following = _bytes_of(store, number), _bytes_of(store, number + 1)
        while data is not None and following is not None:
            number, data, following = number + 1, following, _bytes_of(store, number + 2)
    return (decode_entry(data, path=entry_path(number)), data) if data is not None else None


def find_newest_number(store: BlockingStore) -> int:
    """Returns the largest number that an entry has, 0 where there is none; gaps don't matter."""
    with reading(store, LOG_PREFIX):
        return max((entry_version(info.path) or 0 for info in store.list(LOG_PREFIX)), default=0)


def list_versions(store: BlockingStore) -> range:
    """Returns the numbers of all versions. Raises: DamagedError: they have a gap."""
    for _ in range(_LISTINGS):
        found = [entry_version(info.path) for info in store.list(LOG_PREFIX)]
        numbers = [number for number in found if number is not None]
        if numbers == list(range(1, len(numbers) + 1)):
            return range(1, len(numbers) + 1)
    expected, number = next(pair for pair in enumerate(numbers, start=1) if pair[0] != pair[1])
    raise _damaged(entry_path(expected), f"it is missing, but version {number} is there")


def publish_entry(
    store: BlockingStore, entry: LogEntry, *, sleep: Callable[[float], None] = time.sleep
) -> bool:
    """Makes a version visible: creates its entry, then moves HINT.

    Whether an unanswered request was applied is found out by asking again for the same name with
    the same body, never with the next number.

    Returns:
        False: another writer's entry has the number, and nothing was written.

    Raises:
        CommitUndecidedError: no answer; nothing may be concluded.
        DatasetError: the store refuses.
    """
    path = entry_path(entry.version)
    with writing(store):
        if not _create(store, path, encode_entry(entry), sleep):
            theirs = decode_entry(get_json(store, path), path=path)
            if theirs.transaction != entry.transaction:
                return False
        try:
            store.put(HINT_PATH, b"%d" % entry.version, mode=Mode.OVERWRITE)
        except StoreError:
            return True  # only a hint: the version is visible without it
    return True


def _create(store: BlockingStore, path: str, data: bytes, sleep: Callable[[float], None]) -> bool:
    """Returns whether the entry was created, False if one is there."""
    for pause in (*_PAUSES_SECONDS, None):
        try:
            store.put(path, data)
            return True
        except ObjectExistsError:
            return False
        except (UndecidedError, ThrottledError) as error:
            unanswered = error
        if pause is not None:
            sleep(pause)
    raise CommitUndecidedError(
        f"{path} in {store.url} was asked for {len(_PAUSES_SECONDS) + 1} times in "
        f"{sum(_PAUSES_SECONDS):.0f} s without an answer: the commit is undecided; run `datapipe "
        "log` before anything else: if the version isn't there, run the same command again "
        f"({unanswered})"
    ) from unanswered


def _bytes_of(store: BlockingStore, version: int) -> bytes | None:
    try:
        return get_json(store, entry_path(version)) if version else None
    except ObjectNotFoundError:
        return None


def _damaged(path: str, why: str) -> DamagedError:
    return DamagedError(
        f"{path} is damaged: {why}; versions from there on can't be trusted; restore it from a copy"
    )
