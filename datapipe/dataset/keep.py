"""Holds: versions that are to stay, whatever their age."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.layout import FORMAT_VERSION, HOLDS_PREFIX, hold_path
from datapipe.dataset.manifest import Digest
from datapipe.dataset.objects import get_json, put_again, reading, writing
from datapipe.dataset.reader import Dataset
from datapipe.dataset.register import read_register, register_object
from datapipe.dataset.retired import decode_reference
from datapipe.errors import DamagedError, UnknownReferenceError, UsageError
from tiering.errors import ObjectNotFoundError
from tiering.store import BlockingStore

__all__ = [
    "Hold",
    "drop_hold",
    "hold_version",
    "list_holds",
    "read_hold",
]


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """A version that is to stay, and why."""

    version: int
    manifest: Digest
    author: str
    reason: str
    time_seconds: float
    """Since the epoch."""
    format: int = FORMAT_VERSION


def hold_version(
    dataset: Dataset, *, author: str, reason: str, time_seconds: float, dry_run: bool = False
) -> Hold:
    """Keeps a version until the hold is dropped; a later hold takes the place of an earlier one.

    Raises:
        UsageError: no reason is given.
    """
    if not reason.strip():
        raise UsageError(
            f"a hold of version {dataset.version} needs a reason, for whoever finds it in a year; "
            "nothing was changed; give --reason"
        )
    hold = Hold(
        version=dataset.version,
        manifest=dataset.manifest_sha256,
        author=author,
        reason=reason,
        time_seconds=float(time_seconds),
    )
    store = dataset.repository.store
    if dry_run:
        return hold
    with writing(store):
        put_again(store, hold_path(hold.version), canonical_json(msgspec.to_builtins(hold)))
    _register(store, hold.version)
    return hold


def drop_hold(store: BlockingStore, version: int, *, dry_run: bool = False) -> Hold:
    """Removes a hold, also one whose object is gone and which the register still has.

    Raises:
        UnknownReferenceError: there is none.
    """
    holds = {hold.version: hold for hold in (*_registered(store), *list_holds(store))}
    if version not in holds:
        raise UnknownReferenceError(
            f"version {version} of {store.url} isn't held; nothing was changed; held are: "
            f"{', '.join(map(str, sorted(holds))) or 'none'}"
        )
    if not dry_run:
        with writing(store):
            store.delete(hold_path(version))
        _register(store, version)
    return holds[version]


def list_holds(store: BlockingStore) -> list[Hold]:
    """Returns all holds, ascending by version. Raises: DamagedError: one can't be read."""
    with reading(store, HOLDS_PREFIX):
        paths = [info.path for info in store.list(HOLDS_PREFIX)]
    found = (read_hold(store, path) for path in paths)
    return sorted((hold for hold in found if hold is not None), key=lambda hold: hold.version)


def read_hold(store: BlockingStore, path: str) -> Hold | None:
    """Returns the hold at a path, None where there is none. Raises: DamagedError."""
    with reading(store, path):
        try:
            data = get_json(store, path)
        except ObjectNotFoundError:
            return None
    return _decode(data, path=path)


def _registered(store: BlockingStore) -> Iterator[Hold]:
    """Yields what the register knows of holds."""
    for path, found in (read_register(store) or {}).items():
        if path.startswith(HOLDS_PREFIX) and found.version and found.manifest:
            yield Hold(
                version=found.version,
                manifest=found.manifest,
                author="",
                reason="its object was removed",
                time_seconds=0.0,
            )


def _decode(data: bytes, *, path: str) -> Hold:
    hold = decode_reference(data, Hold, path=path)
    if hold_path(hold.version) != path:
        raise DamagedError(
            f"{path} is the hold of version {hold.version}, whose place is "
            f"{hold_path(hold.version)}; which versions must stay can't be known; restore it from "
            "a copy"
        )
    return hold


def _register(store: BlockingStore, version: int) -> None:
    path = hold_path(version)

    def names(data: bytes) -> dict[str, Any]:
        hold = _decode(data, path=path)
        return {"version": hold.version, "manifest": hold.manifest}

    register_object(store, path, names)
