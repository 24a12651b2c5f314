"""Which tables a file of an index holds, and what they are called in it: pure.

Tables are numbered through: docmaps by source in manifest order and by shard number, then files of
the table `dropped`. Sources and shards of a version keep their order in those that follow it, so a
file of an index stays right whatever is appended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from datapipe.dataset.manifest import IndexFile, Manifest, ShardRange

__all__ = ["Covered", "TableName", "covered_by", "missing", "renumbering", "united"]


class TableName(NamedTuple):
    """A table with rows of documents."""

    source: str | None
    """None: a file of the table `dropped`."""
    number: int
    """Of the shard, or of the file in the manifest's list."""


class Covered(NamedTuple):
    """Tables: docmaps of ranges of shards, and then files [first, end) of `dropped`."""

    shards: tuple[ShardRange, ...]
    dropped: tuple[int, int]

    @property
    def num_tables(self) -> int:
        """How many there are."""
        shards = sum(stretch.end - stretch.first for stretch in self.shards)
        return shards + self.dropped[1] - self.dropped[0]

    def names(self) -> Iterator[TableName]:
        """Yields them in order."""
        for stretch in self.shards:
            for number in range(stretch.first, stretch.end):
                yield TableName(stretch.source, number)
        for number in range(*self.dropped):
            yield TableName(None, number)

    def name(self, table: int) -> TableName:
        """Returns the one with a number. Raises: IndexError: there is none."""
        rest = table
        for stretch in self.shards:
            if 0 <= rest < stretch.end - stretch.first:
                return TableName(stretch.source, stretch.first + rest)
            rest -= stretch.end - stretch.first
        if not 0 <= rest < self.dropped[1] - self.dropped[0]:
            raise IndexError(f"table {table} of {self.num_tables}")
        return TableName(None, self.dropped[0] + rest)


def covered_by(file: IndexFile) -> Covered:
    """Returns the tables that a file holds."""
    return Covered(file.shards, file.dropped)


def missing(manifest: Manifest, files: Sequence[IndexFile]) -> Covered:
    """Returns the tables of a version that the files of an index don't hold."""
    ends = {stretch.source: stretch.end for file in files for stretch in file.shards}
    ranges = (
        ShardRange(source=source.name, first=ends.get(source.name, 0), end=source.num_shards)
        for source in manifest.sources
    )
    first = max([file.dropped[1] for file in files], default=0)
    shards = tuple(stretch for stretch in ranges if stretch.first < stretch.end)
    return Covered(shards, (first, len(manifest.files("dropped"))))


def united(parts: Sequence[Covered], manifest: Manifest) -> Covered:
    """Returns the tables of parts that follow each other in an index."""
    firsts: dict[str, int] = {}
    ends: dict[str, int] = {}
    for part in parts:
        for stretch in part.shards:
            firsts.setdefault(stretch.source, stretch.first)
            ends[stretch.source] = stretch.end
    names = [source.name for source in manifest.sources if source.name in ends]
    shards = tuple(ShardRange(source=n, first=firsts[n], end=ends[n]) for n in names)
    return Covered(shards, (parts[0].dropped[0], parts[-1].dropped[1]))


def renumbering(old: Covered, new: Covered) -> npt.NDArray[np.uint64]:
    """Returns the number in `new` of each table of `old`, ascending: the order is the same."""
    starts: dict[str | None, int] = {}
    start = 0
    for stretch in new.shards:
        starts[stretch.source] = start - stretch.first
        start += stretch.end - stretch.first
    starts[None] = start - new.dropped[0]
    ranges = [(s.source, s.first, s.end) for s in old.shards]
    numbers = [
        np.arange(first, end, dtype=np.int64) + starts[source]
        for source, first, end in [*ranges, (None, *old.dropped)]
    ]
    return np.concatenate(numbers).astype(np.uint64)
