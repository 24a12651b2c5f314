"""Who names versions: HINT, tags, holds, retirements, the register and runs; what that proves.

Whatever is named was committed. Where the log doesn't have it, entries were lost, and whoever took
the rest for the whole would free what is needed, or give a number to a second version. All of them
are read before the log: it may grow meanwhile, and nothing ever runs ahead of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from datapipe.dataset.keep import list_holds
from datapipe.dataset.layout import (
    HINT_PATH,
    LOG_PREFIX,
    SIGNATURES_PREFIX,
    entry_path,
    manifest_path,
)
from datapipe.dataset.log import LogEntry, find_latest, read_entry, read_hint
from datapipe.dataset.objects import reading
from datapipe.dataset.register import read_register, registered_paths
from datapipe.dataset.repository import Repository
from datapipe.dataset.retired import read_retired
from datapipe.dataset.runs import RunStore
from datapipe.dataset.tags import list_tags
from datapipe.errors import DamagedError, DatasetError
from tiering.errors import ObjectNotFoundError
from tiering.store import BlockingStore

__all__ = ["Witness", "check_log", "check_witnesses", "read_witnesses", "reasons_to_keep"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Witness:
    """Something that names a version."""

    who: str
    """For people."""
    version: int
    manifest: str | None
    """None: not known."""
    needs: bool = True
    """Whether the version must stay."""
    is_ours: bool = True
    """Whether it can only mean this dataset; a run may have read others too."""


def read_witnesses(repo: Repository, *, runs: Sequence[RunStore] = ()) -> list[Witness]:
    """Returns all that names a version; to be called before the log is read.

    Args:
        repo: the dataset.
        runs: places where runs are recorded, beside the dataset itself.

    Raises:
        DamagedError: a tag, hold or run can't be read, so what it needs can't be known.
    """
    found = [witness for read in _READERS for witness in read(repo.store)]
    for place, own in ((RunStore.of(repo), repo), *((place, None) for place in runs)):
        for run in place.runs():
            found += _run(place, run, own=own)
    return found


def check_log(repo: Repository) -> None:
    """Returns unless something in the dataset names a version that its log doesn't have.

    What can't be read proves nothing, and keeps no writer out.

    Raises:
        DamagedError: entries are lost.
    """
    own = RunStore.of(repo)
    found: list[Witness] = []
    for read in _READERS:
        with contextlib.suppress(DatasetError):
            found += read(repo.store)
    with contextlib.suppress(DatasetError):
        for run in own.runs():
            with contextlib.suppress(DatasetError):
                found += _run(own, run, own=repo)
    latest = find_latest(repo.store)
    named = {witness.version for witness in found if witness.manifest is not None}
    manifests = {
        version: read_entry(repo.store, version)[0].manifest
        for version in sorted(named)
        if 1 <= version <= latest
    }
    check_witnesses(repo.store, found, latest=latest, manifests=manifests)


def check_witnesses(
    store: BlockingStore,
    witnesses: Sequence[Witness],
    *,
    latest: int,
    manifests: Mapping[int, str],
) -> None:
    """Returns if the log has every version that is named.

    Args:
        store: the dataset's.
        witnesses: read before the log.
        latest: the number that the log ends at.
        manifests: of the log's entries, at least of those that are named, by version.

    Raises:
        DamagedError: entries are lost.
    """
    for witness in witnesses:
        is_there = 1 <= witness.version <= latest
        if is_there and witness.manifest in (None, manifests.get(witness.version)):
            continue
        if witness.is_ours or _has_manifest(store, witness):
            raise _lost(store, witness, latest=latest)


def reasons_to_keep(
    witnesses: Sequence[Witness], entries: Sequence[LogEntry]
) -> dict[int, list[str]]:
    """Returns, for each version that must stay whatever its age, why."""
    reasons = {entries[-1].version: ["newest"]} if entries else {}
    versions = {entry.manifest: entry.version for entry in entries}  # wherever the dataset was
    for witness in witnesses:
        version = versions.get(witness.manifest or "")
        if witness.needs and version is not None:
            why = reasons.setdefault(version, [])
            if witness.who not in why:
                why.append(witness.who)
    return reasons


# -- who


def _hint(store: BlockingStore) -> Iterator[Witness]:
    with reading(store, LOG_PREFIX):
        number = read_hint(store)
    if number:
        yield Witness(who=HINT_PATH, version=number, manifest=None, needs=False)


def _tags(store: BlockingStore) -> Iterator[Witness]:
    for tag in list_tags(store):
        for number, move in enumerate(tag.moves, start=1):
            if move.version is not None:
                yield Witness(
                    who=f"tag {tag.name}",
                    version=move.version,
                    manifest=move.manifest,
                    needs=number == len(tag.moves),
                )


def _holds(store: BlockingStore) -> Iterator[Witness]:
    for hold in list_holds(store):
        yield Witness(who=f"hold: {hold.reason}", version=hold.version, manifest=hold.manifest)


def _retired(store: BlockingStore) -> Iterator[Witness]:
    for version, found in read_retired(store).items():
        yield Witness(
            who="_refs/retired.json", version=version, manifest=found.manifest, needs=False
        )


def _registered(store: BlockingStore) -> Iterator[Witness]:
    """Yields what objects named that are gone: a hold that somebody removed holds all the same."""
    register = read_register(store)
    there = registered_paths(store) if register else set()
    for path, found in (register or {}).items():
        if path not in there and found.version is not None:
            yield Witness(
                who=f"{path}, registered but missing,",
                version=found.version,
                manifest=found.manifest,
                needs=not path.startswith(SIGNATURES_PREFIX),
            )


_READERS = (_hint, _tags, _holds, _retired, _registered)


def _run(place: RunStore, run: str, *, own: Repository | None) -> Iterator[Witness]:
    """Yields the versions that a run read; `own`: its record lies in that dataset."""
    for segment in place.segments(run):
        for use in segment.datasets:
            is_alone = len(segment.datasets) == 1
            yield Witness(
                who=f"run {run}",
                version=use.version,
                manifest=use.manifest,
                is_ours=own is not None and (is_alone or use.url == own.url),
            )


# -- what it proves


def _has_manifest(store: BlockingStore, witness: Witness) -> bool:
    path = manifest_path(str(witness.manifest))
    with reading(store, path):
        try:
            store.head(path)
        except ObjectNotFoundError:
            return False
    return True


def _lost(store: BlockingStore, witness: Witness, *, latest: int) -> DamagedError:
    path = entry_path(witness.version)
    found = "is another version's" if witness.version <= latest else "is missing"
    return DamagedError(
        f"{path} in {store.url} {found}, though {witness.who} names version {witness.version} "
        f"and the log ends at {latest}: entries were lost; nothing was freed or written; restore "
        f"them from a copy of the dataset, or, if that version is given up for good, remove what "
        "names it"
    )
