"""Committing a version: objects first, the log entry last, so nothing half-written is visible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from datapipe.dataset import layout
from datapipe.dataset.conservation import check_conservation
from datapipe.dataset.draft import TokenizerRecord, VersionDraft
from datapipe.dataset.hashing import sha256_hex
from datapipe.dataset.log import (
    LogEntry,
    find_latest,
    publish_entry,
    read_entry,
    require_ours,
    seal_entry,
)
from datapipe.dataset.manifest import Manifest, encode_manifest
from datapipe.dataset.objects import put_object, reading
from datapipe.dataset.plan import VersionPlan, group_shards, plan_version
from datapipe.dataset.repository import Repository, read_format
from datapipe.dataset.shards import ShardRecord, token_dtype
from datapipe.errors import CommitConflictError, DamagedError, TokenizerMismatchError

__all__ = ["Committed", "commit_version"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Committed:
    """What a commit came to; digests in hex."""

    version: int
    manifest: str
    logical: str
    content: str
    created: bool
    """False: the result equals the version it would follow, and that one is named."""


def commit_version(
    repo: Repository,
    draft: VersionDraft,
    *,
    author: str,
    reason: str,
    input_roots: list[dict[str, Any]],
    time_seconds: float,
    transaction: str,
) -> Committed:
    """Makes a draft the dataset's next version, or nothing at all.

    Args:
        repo: the dataset, created before.
        draft: what the version holds; its shards are written already.
        author: who commits.
        reason: why.
        input_roots: where the inputs were, JSON-able; stands in the log entry only.
        time_seconds: now, since the epoch.
        transaction: a name unique to this commit; a repeated one finds its own entry.

    Raises:
        ConservationError: the numbers don't add up.
        TokenizerMismatchError: an append encoded with another tokenizer.
        CommitConflictError: another writer's version follows the draft's parent already.
        DamagedError: a shard that the draft names isn't there.
        SpaceError: the disk is full.
    """
    identity = read_format(repo.store).id
    check_conservation(draft)
    _check_shards(draft)
    _check_tokenizer(draft)
    plan = plan_version(draft)
    data = encode_manifest(plan.manifest)
    manifest_sha256 = sha256_hex(data)
    if _already_committed(repo, draft, manifest=manifest_sha256, transaction=transaction):
        return _committed(_number(draft), manifest_sha256, plan.manifest, created=True)
    if draft.parent is not None and _adds_nothing(draft, plan):
        parent = draft.parent
        return _committed(parent.version, parent.manifest_sha256, parent.manifest, created=False)
    _write_objects(repo, draft, plan)
    put_object(repo.store, layout.manifest_path(manifest_sha256), data)
    entry = LogEntry(
        format=layout.FORMAT_VERSION,
        dataset=identity,
        version=_number(draft),
        previous_sha256=_previous_sha256(repo, draft),
        manifest=manifest_sha256,
        transaction=transaction,
        operation=draft.operation,
        author=author,
        reason=reason,
        time_seconds=float(time_seconds),
        input_roots=tuple(input_roots),
        entry_sha256="",
    )
    publish_entry(repo.store, seal_entry(entry))
    return _committed(_number(draft), manifest_sha256, plan.manifest, created=True)


def _number(draft: VersionDraft) -> int:
    return draft.parent.version + 1 if draft.parent else 1


def _committed(version: int, sha256: str, manifest: Manifest, *, created: bool) -> Committed:
    return Committed(
        version=version,
        manifest=sha256,
        logical=manifest.digests.logical,
        content=manifest.digests.content,
        created=created,
    )


# -- checks


def _check_shards(draft: VersionDraft) -> None:
    base = draft.parent if draft.operation == "append" else None
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


def _shown(numbers: list[int]) -> str:
    text = ", ".join(map(str, numbers[:8]))
    return f"{text}, ..." if len(numbers) > 8 else text


def _check_tokenizer(draft: VersionDraft) -> None:
    if draft.operation != "append" or draft.parent is None:
        return
    ours, theirs = draft.tokenizer, draft.parent.manifest.tokenizer
    for what, mine, its in (
        ("vocabulary", ours.vocabulary, theirs.vocabulary),
        ("canary", ours.canary, theirs.canary),
        ("end-of-document token", str(ours.eos_id), str(theirs.eos_id)),
    ):
        if mine != its:
            raise TokenizerMismatchError(
                f"the {what} of this tokenizer is {mine[:12]}, of {draft.parent.url} {its[:12]}: "
                "its ids would mean something else; nothing was committed; append with the "
                "dataset's own tokenizer, or build another dataset"
            )


def _already_committed(
    repo: Repository, draft: VersionDraft, *, manifest: str, transaction: str
) -> bool:
    """Returns whether this very commit was done before; anything else in its place is a conflict.

    Finding that before writing is only a courtesy: what decides is the exclusive create.
    """
    if find_latest(repo.store) < _number(draft):
        return False
    theirs, _ = read_entry(repo.store, _number(draft))
    require_ours(theirs, transaction=transaction, manifest=manifest, url=repo.url)
    return True


def _adds_nothing(draft: VersionDraft, plan: VersionPlan) -> bool:
    assert draft.parent is not None
    new, old = plan.manifest, draft.parent.manifest
    if (new.digests.logical, new.tokenizer) != (old.digests.logical, old.tokenizer):
        return False
    no_rows = draft.operation == "append" and not any(file.entry.rows for file in plan.files)
    return no_rows or new.recipe_sha256 == old.recipe_sha256


def _previous_sha256(repo: Repository, draft: VersionDraft) -> str | None:
    if draft.parent is None:
        return None
    entry, data = read_entry(repo.store, draft.parent.version)
    if entry.manifest != draft.parent.manifest_sha256:
        raise CommitConflictError(
            f"version {entry.version} of {repo.url} has manifest {entry.manifest}, the draft "
            f"follows {draft.parent.manifest_sha256}; nothing was committed; open the dataset "
            "again and run the same command"
        )
    return sha256_hex(data)


# -- writing


def _write_objects(repo: Repository, draft: VersionDraft, plan: VersionPlan) -> None:
    for file in plan.files:
        if file.entry.rows:
            put_object(repo.store, file.path, file.data)
    _write_tokenizer(repo, draft.tokenizer)
    for shard in draft.shards:
        _require_written(repo, shard)


def _write_tokenizer(repo: Repository, tokenizer: TokenizerRecord) -> None:
    for name, data in sorted(tokenizer.files.items()):
        put_object(repo.store, layout.tokenizer_path(tokenizer.sha256, name), data)


def _require_written(repo: Repository, shard: ShardRecord) -> None:
    """Looks once more at what was written before: another program may have removed it."""
    tokens = layout.tokens_path(shard.stored_sha256)
    docmap = layout.docmap_path(shard.docmap_sha256)
    with reading(repo.store, docmap):
        repo.store.head(docmap)
    with reading(repo.store, tokens):
        found = repo.store.head(tokens).size
    if found != shard.stored_bytes:
        raise DamagedError(
            f"{tokens} in {repo.url} has {found} bytes, {shard.stored_bytes} were written; nothing "
            "was committed; remove it and run the same command again"
        )
