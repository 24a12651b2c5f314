"""Sorting more entries than fit in memory: sorted runs in temporary files, merged by blocks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np

from datapipe.dataset.index.entries import Entries, join

__all__ = ["RUN_ROWS", "Sorter", "merge"]

RUN_ROWS = 4 << 20
"""Entries sorted at once: 64 MiB, and as much again twice while they are sorted."""

_BLOCK_ROWS = 1 << 16
_ROW_BYTES = 8


class Sorter:
    """Takes entries in any order and gives them back sorted; closing it frees its files."""

    def __init__(self, *, run_rows: int = RUN_ROWS) -> None:
        self._run_rows = run_rows
        self._waiting: list[Entries] = []
        self._num_waiting = 0
        self._runs: list[tuple[IO[bytes], int]] = []

    def add(self, entries: Entries) -> None:
        """Takes entries."""
        self._waiting.append(entries)
        self._num_waiting += len(entries)
        if self._num_waiting >= self._run_rows:
            self._write_run()

    def sorted(self) -> Iterator[Entries]:
        """Yields all entries in blocks, ascending by hash and place."""
        rest = join(self._waiting)
        self._waiting = []
        return merge([*(_blocks(file, rows) for file, rows in self._runs), iter([rest])])

    def close(self) -> None:
        """Frees the space of its files."""
        for file, _ in self._runs:
            file.close()

    def _write_run(self) -> None:
        run = join(self._waiting)
        self._waiting, self._num_waiting = [], 0
        file = tempfile.TemporaryFile(prefix="datapipe-index-")  # noqa: SIM115 (lives with self)
        file.write(run.hash.data)
        file.write(run.place.data)
        self._runs.append((file, len(run)))


def _blocks(file: IO[bytes], rows: int) -> Iterator[Entries]:
    for start in range(0, rows, _BLOCK_ROWS):
        count = min(_BLOCK_ROWS, rows - start)
        columns = []
        for first in (start, rows + start):
            file.seek(first * _ROW_BYTES)
            columns.append(np.frombuffer(file.read(count * _ROW_BYTES), dtype=np.uint64))
        yield Entries(*columns)


def merge(streams: Iterable[Iterator[Entries]]) -> Iterator[Entries]:
    """Yields the entries of sorted streams in blocks, ascending by hash and place.

    Holds one block a stream. No two entries may be equal.
    """
    heads = [head for stream in streams if (head := _Head(stream)).fill()]
    while heads:
        limit = min(heads, key=lambda head: head.last).last
        yield join([head.take(limit) for head in heads])
        heads = [head for head in heads if head.fill()]


class _Head:
    """A stream's next block."""

    def __init__(self, stream: Iterator[Entries]) -> None:
        self._stream = stream
        self._block: Entries | None = None

    def fill(self) -> bool:
        """Makes sure of a block with rows; returns False at the stream's end."""
        while self._block is None or not len(self._block):
            self._block = next(self._stream, None)
            if self._block is None:
                return False
        return True

    @property
    def last(self) -> tuple[int, int]:
        """Hash and place of the block's last row."""
        assert self._block is not None
        return int(self._block.hash[-1]), int(self._block.place[-1])

    def take(self, limit: tuple[int, int]) -> Entries:
        """Removes and returns the rows up to `limit`."""
        assert self._block is not None
        hash_, place = (np.uint64(part) for part in limit)
        start = int(self._block.hash.searchsorted(hash_, "left"))
        stop = int(self._block.hash.searchsorted(hash_, "right"))
        stop = start + int(self._block.place[start:stop].searchsorted(place, "right"))
        taken = self._block.part(0, stop)
        self._block = self._block.part(stop, len(self._block))
        return taken
