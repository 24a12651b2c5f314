"""Holds: versions that are to stay, whatever their age."""

from __future__ import annotations

import msgspec

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.layout import FORMAT_VERSION, HOLDS_PREFIX, hold_path
from datapipe.dataset.manifest import Digest
from datapipe.dataset.objects import get_json, put_again, reading, writing
from datapipe.dataset.reader import Dataset
from datapipe.dataset.retired import decode_reference
from datapipe.errors import UnknownReferenceError, UsageError
from tiering.errors import ObjectNotFoundError
from tiering.store import BlockingStore

__all__ = [
    "Hold",
    "drop_hold",
    "hold_version",
    "list_holds",
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
    return hold


def drop_hold(store: BlockingStore, version: int, *, dry_run: bool = False) -> Hold:
    """Removes a hold. Raises: UnknownReferenceError: there is none."""
    holds = {hold.version: hold for hold in list_holds(store)}
    if version not in holds:
        raise UnknownReferenceError(
            f"version {version} of {store.url} isn't held; nothing was changed; held are: "
            f"{', '.join(map(str, sorted(holds))) or 'none'}"
        )
    if not dry_run:
        with writing(store):
            store.delete(hold_path(version))
    return holds[version]


def list_holds(store: BlockingStore) -> list[Hold]:
    """Returns all holds, ascending by version. Raises: DamagedError: one can't be read."""
    holds = []
    with reading(store, HOLDS_PREFIX):
        for info in list(store.list(HOLDS_PREFIX)):
            try:
                holds.append(decode_reference(get_json(store, info.path), Hold, path=info.path))
            except ObjectNotFoundError:
                continue  # dropped meanwhile
    return sorted(holds, key=lambda hold: hold.version)
