"""What keeps a version whatever its age: that it is the newest, a tag, a hold, or a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.layout import FORMAT_VERSION, HOLDS_PREFIX, hold_path
from datapipe.dataset.log import LogEntry
from datapipe.dataset.manifest import Digest
from datapipe.dataset.objects import get_json, put_again, reading, writing
from datapipe.dataset.reader import Dataset
from datapipe.dataset.retired import decode_reference
from datapipe.dataset.runs import RunStore
from datapipe.dataset.tags import list_tags
from datapipe.errors import UnknownReferenceError, UsageError
from tiering.errors import ObjectNotFoundError
from tiering.store import BlockingStore

__all__ = [
    "Hold",
    "drop_hold",
    "hold_version",
    "list_holds",
    "reasons_to_keep",
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


# -- holds


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


def reasons_to_keep(
    store: BlockingStore, entries: Sequence[LogEntry], *, runs: Iterable[RunStore]
) -> dict[int, list[str]]:
    """Returns, for each version that must stay whatever its age, why.

    Args:
        store: the dataset's.
        entries: the whole log.
        runs: where runs are recorded.

    Raises:
        DamagedError: a tag, hold or run can't be read, so what it needs can't be known.
    """
    reasons: dict[int, list[str]] = {}
    if entries:
        reasons[entries[-1].version] = ["newest"]
    for tag in list_tags(store):
        if tag.version is not None:
            reasons.setdefault(tag.version, []).append(f"tag {tag.name}")
    for hold in list_holds(store):
        reasons.setdefault(hold.version, []).append(f"hold: {hold.reason}")
    versions = {entry.manifest: entry.version for entry in entries}
    for place in runs:
        for run, used in _uses(place, versions).items():
            for version in sorted(used):
                reasons.setdefault(version, []).append(f"run {run}")
    return reasons


def _uses(place: RunStore, versions: Mapping[str, int]) -> dict[str, set[int]]:
    """Returns the versions that each run read, found by digest wherever the dataset was."""
    return {
        run: {
            versions[use.manifest]
            for segment in place.segments(run)
            for use in segment.datasets
            if use.manifest in versions
        }
        for run in place.runs()
    }
