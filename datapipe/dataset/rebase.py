"""Rebasing an append onto versions that other writers committed meanwhile.

An append over appends gives exactly what it would have given had it begun after them: its shards
are numbered on behind theirs, and nothing else of it depends on the parent. Where something does,
because both read the same file or both kept the same text, it is a conflict that is named; the
append run again finds what the others added. A version that only has indexes more is in nobody's
way, and follows whatever was appended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dataset.draft import TokenizerRecord, VersionDraft
from datapipe.dataset.log import LogEntry
from datapipe.dataset.reader import Dataset
from datapipe.errors import CommitConflictError

__all__ = ["index_draft", "rebase_append", "renumber"]


def rebase_append(
    draft: VersionDraft, *, onto: Dataset, entries: Sequence[LogEntry]
) -> VersionDraft:
    """Returns the draft as it follows `onto`.

    Args:
        draft: what was to follow an earlier version.
        onto: the newest version.
        entries: of the versions behind the draft's parent, up to `onto`.

    Raises:
        CommitConflictError: it can't follow without being made anew.
    """
    for entry in entries:
        if "build" in (draft.operation, entry.operation):
            raise _conflict(onto, entry, "")
    if draft.operation == "index":
        return index_draft(onto, draft.index_kinds)
    assert draft.parent is not None
    _check_inputs(draft, draft.parent, onto, entries[-1])
    _check_keys(draft, draft.parent, onto, entries[-1])
    return renumber(draft, onto=onto)


def index_draft(dataset: Dataset, kinds: frozenset[str]) -> VersionDraft:
    """Returns a draft of the same content, with indexes of these kinds too."""
    manifest = dataset.manifest
    info = manifest.tokenizer
    return VersionDraft(
        operation="index",
        parent=dataset,
        recipe=manifest.recipe,
        shards=[],
        counts=[],
        tokenizer=TokenizerRecord(
            files=dataset.tokenizer_files(),
            vocabulary=info.vocabulary,
            canary=info.canary,
            vocab_size=info.vocab_size,
            max_id=info.max_id,
            eos_id=info.eos_id,
            backend=info.backend,
        ),
        environment=manifest.environment,
        licences=manifest.licences,
        indexes=kinds | manifest.indexes.keys(),
    )


def renumber(draft: VersionDraft, *, onto: Dataset) -> VersionDraft:
    """Returns an append with `onto` as its parent, its shards numbered on from there."""
    assert draft.parent is not None
    old = {source.name: source.num_shards for source in draft.parent.sources}
    new = {source.name: source.num_shards for source in onto.sources}
    shards = [
        dataclasses.replace(
            shard, number=shard.number - old.get(shard.source, 0) + new.get(shard.source, 0)
        )
        for shard in draft.shards
    ]
    return dataclasses.replace(draft, parent=onto, shards=shards)


def _check_inputs(draft: VersionDraft, parent: Dataset, onto: Dataset, entry: LogEntry) -> None:
    """A file of the same name or bytes in a source would have been skipped, or looked into."""
    if draft.inputs is None:
        return
    theirs = onto.rows_since("inputs", parent)
    both = set[tuple[str, str]]()
    for column in ("file", "sha256"):
        known = set(_pairs(theirs, column))
        pairs = zip(_pairs(draft.inputs, "file"), _pairs(draft.inputs, column), strict=True)
        both |= {named for named, pair in pairs if pair in known}
    if both:
        source, file = min(both)
        raise _conflict(
            onto, entry, f"; {len(both)} input files are in both, the first is {file} of {source}"
        )


def _check_keys(draft: VersionDraft, parent: Dataset, onto: Dataset, entry: LogEntry) -> None:
    """A text that both kept would have been dropped as a duplicate by the second."""
    if draft.signatures is None or "signatures" not in onto.manifest.tables:
        return
    ours, theirs = draft.signatures, onto.rows_since("signatures", parent)
    same = pc.is_in(_keys(ours), value_set=_keys(theirs))
    count = pc.sum(same).as_py() or 0
    if count:
        first = ours.filter(same)["doc_id"][0].as_py().hex()
        raise _conflict(onto, entry, f"; {count} texts were kept by both, the first is {first}")


def _pairs(inputs: pa.Table, column: str) -> list[tuple[str, Any]]:
    return list(zip(inputs["source"].to_pylist(), inputs[column].to_pylist(), strict=True))


def _keys(table: pa.Table) -> pa.Array:
    return table["key"].combine_chunks().cast(pa.binary(16))


def _conflict(onto: Dataset, entry: LogEntry, what: str) -> CommitConflictError:
    return CommitConflictError(
        f"version {entry.version} of {onto.url} was committed meanwhile by "
        f"{entry.author or 'another writer'} ({entry.operation}: {entry.reason}){what}; this one "
        "isn't visible, its shards are kept; run the same command again to follow it"
    )
