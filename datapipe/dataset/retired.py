"""Versions that were given up: `_refs/retired.json` lists them, for good.

A retired version isn't opened any more, and its objects are garbage unless others need them. Its
log entry and manifest stay. One that a tag, hold or run turns out to need keeps its objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.layout import FORMAT_VERSION, RETIRED_PATH
from datapipe.dataset.log import LogEntry
from datapipe.dataset.manifest import Digest, check_format
from datapipe.dataset.objects import get_json, reading, writing
from datapipe.dataset.register import register_object
from datapipe.errors import CommitConflictError, DamagedError
from tiering.errors import ObjectExistsError, ObjectNotFoundError, PreconditionError
from tiering.store import BlockingStore

__all__ = ["Retirement", "decode_reference", "read_retired", "retire_versions"]

_Kind = TypeVar("_Kind")


class Retirement(msgspec.Struct, frozen=True, kw_only=True):
    """A version that was given up."""

    version: int
    manifest: Digest
    author: str
    reason: str
    time_seconds: float
    """Since the epoch."""


class _Retired(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    versions: tuple[Retirement, ...]


def read_retired(store: BlockingStore) -> dict[int, Retirement]:
    """Returns the retired versions by number. Raises: DamagedError: the list can't be read."""
    return {found.version: found for found in _read_retired(store)[0]}


def retire_versions(
    store: BlockingStore,
    entries: Iterable[LogEntry],
    *,
    author: str,
    reason: str,
    time_seconds: float,
) -> None:
    """Gives versions up for good.

    Raises:
        CommitConflictError: somebody else retired others at the same time.
    """
    before, etag = _read_retired(store)
    known = {found.version for found in before}
    new = tuple(
        Retirement(
            version=entry.version,
            manifest=entry.manifest,
            author=author,
            reason=reason,
            time_seconds=float(time_seconds),
        )
        for entry in entries
        if entry.version not in known
    )
    if not new:
        if before:
            register_object(store, RETIRED_PATH, lambda _: {})
        return
    after = _Retired(format=FORMAT_VERSION, versions=(*before, *new))
    with writing(store):
        try:
            store.put(RETIRED_PATH, canonical_json(msgspec.to_builtins(after)), match=etag)
        except (ObjectExistsError, PreconditionError) as error:
            raise CommitConflictError(
                f"versions of {store.url} were retired by another program meanwhile; nothing was "
                "changed; run the same command again"
            ) from error
    register_object(store, RETIRED_PATH, lambda _: {})


def _read_retired(store: BlockingStore) -> tuple[tuple[Retirement, ...], str | None]:
    with reading(store, RETIRED_PATH):
        try:
            etag = store.head(RETIRED_PATH).etag
            data = get_json(store, RETIRED_PATH)
        except ObjectNotFoundError:
            return (), None
    return decode_reference(data, _Retired, path=RETIRED_PATH).versions, etag


def decode_reference(data: bytes, kind: type[_Kind], *, path: str) -> _Kind:
    """Returns what JSON bytes below `_refs/` say. Raises: DamagedError, DatasetError."""
    check_format(data, path=path)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DamagedError(
            f"{path} isn't what a dataset has there: {error}; which versions must stay can't be "
            "known; restore it from a copy"
        ) from error
