"""Completing the indexes of a version that is about to be committed.

What the parent's files hold stays as it is; a new file holds the rest. Where there would be more
than 8 files, the new one takes the newest of them in, so many that the next older one is at least
twice as large: so a row is written again as often as the logarithm of their number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from datapipe.dataset.ahead import read_ahead
from datapipe.dataset.index.covered import (
    Covered,
    TableName,
    covered_by,
    missing,
    renumbering,
    united,
)
from datapipe.dataset.index.entries import COLUMNS, Entries, entries_of, places
from datapipe.dataset.index.files import IndexReader, write_index
from datapipe.dataset.index.sorting import Sorter, merge
from datapipe.dataset.layout import index_path
from datapipe.dataset.manifest import IndexFile, Manifest
from datapipe.observe import NO_PROGRESS, Progress
from tiering.checksums import Buffer
from tiering.store import BlockingStore

__all__ = ["MOST_FILES", "NewIndexFile", "ReadTable", "complete_indexes"]

MOST_FILES = 8
"""Files of one index; each costs a lookup a read."""

ReadTable = Callable[[TableName, Sequence[str]], Iterable[pa.Table]]
"""Gives those of the columns that a table has, in parts; called from several threads."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewIndexFile:
    """A file that is to be written."""

    kind: str
    data: Buffer
    entry: IndexFile

    @property
    def path(self) -> str:
        """Where."""
        return index_path(self.kind, self.entry.sha256)


def complete_indexes(
    manifest: Manifest,
    *,
    old: Mapping[str, Sequence[IndexFile]],
    kinds: Collection[str],
    read: ReadTable,
    store: BlockingStore,
    progress: Progress = NO_PROGRESS,
) -> tuple[dict[str, tuple[IndexFile, ...]], list[NewIndexFile]]:
    """Returns the indexes of a version, and those of their files that are new.

    Holds some 200 MB an index at most; the rest lies in temporary files, 16 bytes a row and index.

    Args:
        manifest: of the version; its own `indexes` aren't looked at.
        old: files that are there, by kind, of an earlier version whose rows are all in this one.
        kinds: which indexes there are to be.
        read: gives the tables of the version.
        store: where old files are.
        progress: hears of tables.
    """
    indexes = {kind: tuple(old.get(kind, ())) for kind in sorted(kinds)}
    gaps = {kind: missing(manifest, files) for kind, files in indexes.items()}
    new: list[NewIndexFile] = []
    for gap in dict.fromkeys(gap for gap in gaps.values() if gap.num_tables):
        with ExitStack() as stack:
            wanted = [kind for kind, found in gaps.items() if found == gap]
            sorters = {kind: stack.enter_context(closing(Sorter())) for kind in wanted}
            _scan(gap, sorters, read, progress)
            for kind, sorter in sorters.items():
                kept, taken = _split(indexes[kind])
                file = _write(manifest, kind, gap, sorter, taken, store)
                indexes[kind] = (*kept, file.entry)
                new.append(file)
    return indexes, new


def _split(files: Sequence[IndexFile]) -> tuple[Sequence[IndexFile], Sequence[IndexFile]]:
    """Returns the files that stay and those that the new one takes in."""
    if len(files) < MOST_FILES:
        return files, ()
    first = len(files) - 1
    rows = files[first].rows
    while first and files[first - 1].rows < 2 * rows:
        first -= 1
        rows += files[first].rows
    return files[:first], files[first:]


def _scan(
    tables: Covered, sorters: Mapping[str, Sorter], read: ReadTable, progress: Progress
) -> None:
    columns = [COLUMNS[kind] for kind in sorters]
    progress.begin("index", tables.num_tables, "tables")
    found = read_ahead(tables.names(), lambda name: read(name, columns))
    for number, parts in enumerate(found):
        first = 0
        for part in parts:
            for kind, sorter in sorters.items():
                if COLUMNS[kind] in part.column_names:
                    sorter.add(entries_of(kind, part, number=number, first=first))
            first += part.num_rows
        progress.advance(1)
    progress.end()


def _write(
    manifest: Manifest,
    kind: str,
    gap: Covered,
    sorter: Sorter,
    taken: Sequence[IndexFile],
    store: BlockingStore,
) -> NewIndexFile:
    whole = united([*(covered_by(file) for file in taken), gap], manifest)
    with ExitStack() as stack:
        streams = [_renumbered(sorter.sorted(), gap, whole)]
        for file in taken:
            reader = IndexReader(store, index_path(kind, file.sha256))
            stack.enter_context(closing(reader))
            streams.append(_renumbered(reader.blocks(), covered_by(file), whole))
        data, sha256, rows = write_index(merge(streams) if taken else streams[0])
    entry = IndexFile(
        sha256=sha256,
        rows=rows,
        bytes=memoryview(data).nbytes,
        shards=whole.shards,
        dropped=whole.dropped,
    )
    return NewIndexFile(kind=kind, data=data, entry=entry)


def _renumbered(blocks: Iterator[Entries], old: Covered, new: Covered) -> Iterator[Entries]:
    """Yields entries with the numbers that their tables have in another list of tables."""
    if old == new:
        yield from blocks
        return
    numbers = renumbering(old, new)
    for block in blocks:
        rows = block.place & np.uint64(0xFFFFFFFF)
        yield Entries(block.hash, places(numbers[block.table], rows))
