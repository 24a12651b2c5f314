"""Committing a version: objects first, the log entry last, so nothing half-written is visible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from datapipe.dataset import layout
from datapipe.dataset.compatible import check_append
from datapipe.dataset.conservation import check_conservation
from datapipe.dataset.draft import VersionDraft
from datapipe.dataset.hashing import sha256_hex
from datapipe.dataset.index.plan import plan_indexes
from datapipe.dataset.log import LogEntry, publish_entry, read_entry, read_latest, seal_entry
from datapipe.dataset.manifest import encode_manifest
from datapipe.dataset.objects import MOST_JSON_BYTES, put_object
from datapipe.dataset.plan import VersionPlan, group_shards, plan_version
from datapipe.dataset.reader import Dataset
from datapipe.dataset.rebase import rebase_append
from datapipe.dataset.repository import Repository, read_format
from datapipe.dataset.restore import restore_version
from datapipe.dataset.secure import NewObject, secure_objects
from datapipe.dataset.shards import token_dtype
from datapipe.dataset.transaction import Transaction, check_alone
from datapipe.errors import CommitConflictError, DamagedError, UsageError
from datapipe.observe import NO_PROGRESS, Progress
from tiering.checksums import Buffer

__all__ = ["Committed", "commit_version", "remake_version"]

_REBASES = 1000
"""Every lost race means that another writer won it, so this many are no sign of a standstill."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Committed:
    """What a commit came to; digests in hex."""

    version: int
    manifest: str
    logical: str
    content: str
    created: bool
    """False: the result equals the version it would follow, and that one is named."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wording:
    """What the log says of a commit beside what it holds."""

    dataset: str
    author: str
    reason: str
    input_roots: tuple[dict[str, Any], ...]
    time_seconds: float


def commit_version(
    repo: Repository,
    draft: VersionDraft,
    *,
    author: str,
    reason: str,
    input_roots: list[dict[str, Any]],
    time_seconds: float,
    transaction: Transaction,
    progress: Progress = NO_PROGRESS,
) -> Committed:
    """Makes a draft the dataset's next version, or nothing at all.

    An append follows what other appends committed meanwhile (`rebase.py`).

    Args:
        repo: the dataset, created before.
        draft: what the version holds; its shards are written already.
        author: who commits.
        reason: why.
        input_roots: where the inputs were, JSON-able; stands in the log entry only.
        time_seconds: now, since the epoch.
        transaction: begun before the shards were written; one that committed already finds its
            own entry.
        progress: hears of tables that are indexed.

    Raises:
        ConservationError: the numbers don't add up.
        TokenizerMismatchError, UsageError: an append that can't be read as one with the rest.
        CommitConflictError: another writer's version is in the way, or a shard was removed.
        CommitUndecidedError: the store gave no answer: the version may or may not be there.
        TransactionExpiredError: the writer was silent for too long.
        DamagedError: a shard that the draft names isn't what was written.
        SpaceError: the disk is full.
    """
    wording = _Wording(
        dataset=read_format(repo.store).id,
        author=author,
        reason=reason,
        input_roots=tuple(input_roots),
        time_seconds=float(time_seconds),
    )
    check_conservation(draft)
    _check_parent(repo, draft)
    secured: set[str] = set()
    for _ in range(_REBASES):
        entries = _entries_behind(repo, draft.parent)
        ours = [entry for entry in entries if entry.transaction == transaction.id]
        if ours:
            return _committed(repo.open(ours[0].version), created=True)
        if entries:
            onto = repo.open(entries[-1].version)
            draft = rebase_append(draft, onto=onto, entries=entries)
        committed = _try_commit(repo, draft, wording, transaction, secured, progress)
        if committed is not None:
            return committed
    raise CommitConflictError(
        f"{_REBASES} versions of {repo.url} were committed by others while this one tried; "
        "nothing of it is visible; run the same command again when there are fewer writers"
    )


def _try_commit(
    repo: Repository,
    draft: VersionDraft,
    wording: _Wording,
    transaction: Transaction,
    secured: set[str],
    progress: Progress,
) -> Committed | None:
    """Commits the draft behind its parent, or returns None: another version stands there now.

    Paths in `secured` were looked at in an earlier attempt: the transaction has protected them
    since. New ones are added.
    """
    _check_shards(draft)
    check_append(draft)
    plan = plan_version(draft)
    if draft.parent is not None and _adds_nothing(draft, plan):
        if draft.operation == "build":
            plan = plan_indexes(plan, draft, store=repo.store, progress=progress)
            made = _new_objects(draft, plan)
            restore_version(draft.parent, made, since_seconds=transaction.started_seconds)
        return _committed(draft.parent, created=False)
    plan = plan_indexes(plan, draft, store=repo.store, progress=progress)
    manifest = encode_manifest(plan.manifest)
    _check_size(manifest)
    objects = [item for item in _new_objects(draft, plan) if item.path not in secured]
    since = transaction.started_seconds
    for item in objects:
        if item.data is not None:
            put_object(repo.store, item.path, item.data, since_seconds=since)
    secure_objects(repo.store, objects, since_seconds=since)
    secured.update(item.path for item in objects)
    transaction.check()
    if not transaction.is_exclusive:
        check_alone(repo, transaction)
    entry = _entry(repo, draft, manifest, wording, transaction)
    if not publish_entry(repo.store, entry):
        return None
    return Committed(
        version=entry.version,
        manifest=entry.manifest,
        logical=plan.manifest.digests.logical,
        content=plan.manifest.digests.content,
        created=True,
    )


def remake_version(
    repo: Repository, draft: VersionDraft, entry: LogEntry, *, transaction: Transaction
) -> Committed:
    """Writes the newest version whole again, whose manifest can't be read, if it is this draft.

    Args:
        repo: the dataset.
        draft: of a build; its parent is the version before.
        entry: of the version.
        transaction: begun before the shards were written.

    Raises:
        DamagedError: the draft is another version; nothing was committed.
    """
    check_conservation(draft)
    _check_shards(draft)
    plan = plan_version(draft)
    plan = plan_indexes(plan, draft, store=repo.store, progress=NO_PROGRESS)
    found = sha256_hex(encode_manifest(plan.manifest))
    path = layout.manifest_path(entry.manifest)
    if found != entry.manifest:
        raise DamagedError(
            f"{path} in {repo.url} is damaged or missing, and this build makes another manifest, "
            f"{found[:12]}: not the same inputs, recipe, or versions of libraries; nothing was "
            f"committed behind version {entry.version}; restore the object from a copy, or run the "
            "very build again that made it"
        )
    since = transaction.started_seconds
    put_object(repo.store, path, encode_manifest(plan.manifest), since_seconds=since)
    version = repo.open_entry(entry)
    restore_version(version, _new_objects(draft, plan), since_seconds=since)
    return _committed(version, created=False)


def _committed(dataset: Dataset, *, created: bool) -> Committed:
    digests = dataset.manifest.digests
    return Committed(
        version=dataset.version,
        manifest=dataset.manifest_sha256,
        logical=digests.logical,
        content=digests.content,
        created=created,
    )


def _entry(
    repo: Repository,
    draft: VersionDraft,
    manifest: bytes,
    wording: _Wording,
    transaction: Transaction,
) -> LogEntry:
    parent = draft.parent
    entry = LogEntry(
        format=layout.FORMAT_VERSION,
        dataset=wording.dataset,
        version=parent.version + 1 if parent else 1,
        previous_sha256=sha256_hex(read_entry(repo.store, parent.version)[1]) if parent else None,
        manifest=sha256_hex(manifest),
        transaction=transaction.id,
        operation=draft.operation,
        author=wording.author,
        reason=wording.reason,
        time_seconds=wording.time_seconds,
        input_roots=wording.input_roots,
        entry_sha256="",
    )
    return seal_entry(entry)


def _entries_behind(repo: Repository, parent: Dataset | None) -> list[LogEntry]:
    """Returns the entries of the versions behind the parent."""
    latest = read_latest(repo.store)
    first, last = parent.version + 1 if parent else 1, latest[0].version if latest else 0
    return [read_entry(repo.store, version)[0] for version in range(first, last + 1)]


# -- checks


def _check_parent(repo: Repository, draft: VersionDraft) -> None:
    if draft.parent is None:
        return
    entry, _ = read_entry(repo.store, draft.parent.version)
    if entry.manifest != draft.parent.manifest_sha256:
        raise CommitConflictError(
            f"version {entry.version} of {repo.url} has manifest {entry.manifest}, the draft "
            f"follows {draft.parent.manifest_sha256}; nothing was committed; open the dataset "
            "again and run the same command"
        )


def _check_shards(draft: VersionDraft) -> None:
    base = draft.base
    first = {source.name: source.num_shards for source in base.sources} if base else {}
    for source, shards in group_shards(draft.shards).items():
        numbers, start = [shard.number for shard in shards], first.get(source, 0)
        end = start + len(shards)
        if numbers != list(range(start, end)):
            raise ValueError(
                f"the shards of {source} have numbers {_shown(numbers)}, expected {start} to "
                f"{end - 1}; nothing was committed; number them on without gaps"
            )
    width = token_dtype(draft.tokenizer.max_id).itemsize
    for shard in draft.shards:
        if shard.stored_bytes != shard.num_tokens * width:
            raise ValueError(
                f"shard {shard.number} of {shard.source} has {shard.stored_bytes} bytes for "
                f"{shard.num_tokens} tokens, but ids up to {draft.tokenizer.max_id} take {width} "
                "bytes each; nothing was committed; write shards in the dataset's dtype"
            )


def _check_size(manifest: bytes) -> None:
    """Refuses what no reader would take."""
    if len(manifest) > MOST_JSON_BYTES:
        raise UsageError(
            f"the version's manifest would have {len(manifest):,} bytes, {MOST_JSON_BYTES:,} are "
            "allowed; nothing was committed; give the recipe folders and patterns in the place of "
            "single paths, or build anew what was appended very often"
        )


def _shown(numbers: list[int]) -> str:
    text = ", ".join(map(str, numbers[:8]))
    return f"{text}, ..." if len(numbers) > 8 else text


def _adds_nothing(draft: VersionDraft, plan: VersionPlan) -> bool:
    assert draft.parent is not None
    new, old = plan.manifest, draft.parent.manifest
    if (new.digests.logical, new.tokenizer) != (old.digests.logical, old.tokenizer):
        return False
    if not draft.index_kinds <= old.indexes.keys():
        return False
    no_rows = draft.operation != "build" and not any(file.entry.rows for file in plan.files)
    return no_rows or new.recipe_sha256 == old.recipe_sha256


# -- objects


def _new_objects(draft: VersionDraft, plan: VersionPlan) -> Iterator[NewObject]:
    """Yields everything that the version names and its parent doesn't."""
    for file in plan.files:
        if file.entry.rows:
            yield _at_hand(file.path, file.data)
    for index in plan.index_files:
        yield _at_hand(index.path, index.data)
    for name, data in sorted(draft.tokenizer.files.items()):
        yield _at_hand(layout.tokenizer_path(draft.tokenizer.sha256, name), data)
    manifest = encode_manifest(plan.manifest)
    yield _at_hand(layout.manifest_path(sha256_hex(manifest)), manifest)
    for shard in draft.shards:
        yield NewObject(
            path=layout.tokens_path(shard.stored_sha256),
            sha256=shard.stored_sha256,
            num_bytes=shard.stored_bytes,
            data=None,
        )
        yield NewObject(
            path=layout.docmap_path(shard.docmap_sha256),
            sha256=shard.docmap_sha256,
            num_bytes=None,
            data=None,
        )


def _at_hand(path: str, data: Buffer) -> NewObject:
    size = memoryview(data).nbytes
    return NewObject(path=path, sha256=sha256_hex(data), num_bytes=size, data=data)
