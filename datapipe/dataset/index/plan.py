"""The indexes of a draft: what its version needs, from its own tables and those it adds to."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from datapipe.dataset.draft import VersionDraft
from datapipe.dataset.index.complete import complete_indexes
from datapipe.dataset.index.covered import TableName
from datapipe.dataset.layout import TABLE_KINDS, docmap_path
from datapipe.dataset.objects import check_digest_of, read_object, reading
from datapipe.dataset.parquet import open_table, restore
from datapipe.dataset.plan import VersionPlan
from datapipe.dataset.tables import DOCMAP, DROPPED
from datapipe.observe import Progress
from tiering.store import BlockingStore, ViewFile

__all__ = ["plan_indexes"]


def plan_indexes(
    plan: VersionPlan, draft: VersionDraft, *, store: BlockingStore, progress: Progress
) -> VersionPlan:
    """Returns the plan with the indexes that the draft asks for; files of its base are kept.

    Args:
        plan: of the draft.
        draft: its shards are written already.
        store: where they are.
        progress: hears of tables.

    Raises:
        DamagedError: a docmap, a file of `dropped` or an index can't be read.
    """
    old = draft.base.manifest.indexes if draft.base is not None else {}
    kinds = draft.index_kinds
    if not kinds:
        return plan
    indexes, files = complete_indexes(
        plan.manifest,
        old=old,
        kinds=kinds,
        read=_Tables(plan, draft, store).read,
        store=store,
        progress=progress,
    )
    manifest = msgspec.structs.replace(plan.manifest, indexes=indexes)
    return dataclasses.replace(plan, manifest=manifest, index_files=tuple(files))


class _Tables:
    """The docmaps and dropped rows of a version that isn't committed."""

    def __init__(self, plan: VersionPlan, draft: VersionDraft, store: BlockingStore) -> None:
        self._store, self._base = store, draft.base
        self._docmaps = {(s.source, s.number): s.docmap_sha256 for s in draft.shards}
        self._dropped = plan.manifest.files("dropped")
        self._at_hand = {file.path: file.data for file in plan.files}

    def read(self, name: TableName, columns: Sequence[str]) -> Iterable[pa.Table]:
        """Returns those of the columns that the table has; a file of `dropped` in parts."""
        schema = DROPPED if name.source is None else DOCMAP
        there = [column for column in columns if column in schema.names]
        if not there:
            return []
        if name.source is None:
            return self._dropped_parts(name.number, there)
        sha256 = self._docmap(name.source, name.number)
        path = docmap_path(sha256)
        data = pa.BufferReader(read_object(self._store, path, sha256=sha256))
        return [restore(open_table(data, DOCMAP, path=path), DOCMAP, path=path, columns=there)]

    def _dropped_parts(self, number: int, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yields a file's row groups: it may have more rows than fit in memory."""
        sha256 = self._dropped[number].sha256
        path = TABLE_KINDS["dropped"].path(sha256)
        with self._open(path, sha256) as source:
            file = open_table(source, DROPPED, path=path)
            for group in range(file.num_row_groups):
                yield restore(file, DROPPED, path=path, groups=[group], columns=columns)

    def _open(self, path: str, sha256: str) -> Any:
        if path in self._at_hand:
            return pa.BufferReader(self._at_hand[path])
        with reading(self._store, path):
            view = self._store.open(path)
            check_digest_of(self._store, path, view, sha256=sha256)
        return ViewFile(view)

    def _docmap(self, source: str, number: int) -> str:
        if (source, number) in self._docmaps:
            return self._docmaps[source, number]
        assert self._base is not None
        return self._base.shards(source).docmap_sha256[number]
