"""Files of an index: Parquet sorted by hash, in row groups so small that one read finds a row.

A lookup looks at the footer's statistics, which are read once (13 bytes a thousand entries), and
then at one row group: 16,384 entries, 160 kB. 9.7 bytes an entry at 110 million
(benchmarks/results/index_2core_202611.md).
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import tempfile
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datapipe.dataset.index.entries import Entries, concatenate, places
from datapipe.dataset.objects import reading, to_repair
from datapipe.errors import DamagedError
from tiering.checksums import Buffer
from tiering.store import BlockingStore, ViewFile

__all__ = ["GROUP_ROWS", "INDEX", "IndexReader", "write_index"]

INDEX = pa.schema(
    [
        pa.field("hash", pa.uint64(), nullable=False),
        pa.field("table", pa.int32(), nullable=False),
        pa.field("row", pa.int32(), nullable=False),
    ]
)
"""Ascending by (hash, table, row)."""

GROUP_ROWS = 1 << 14


def write_index(blocks: Iterator[Entries]) -> tuple[Buffer, str, int]:
    """Returns sorted entries as Parquet bytes, their SHA-256 and the number of entries.

    The bytes lie in a temporary file that is gone when nobody holds them any more.
    """
    rows = 0
    with tempfile.TemporaryFile(prefix="datapipe-index-") as file:
        with _writer(file) as writer:
            for group in _groups(blocks):
                writer.write_table(_table(group), row_group_size=GROUP_ROWS)
                rows += len(group)
        file.flush()
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return data, hashlib.sha256(data).hexdigest(), rows


def _writer(file: Any) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        file,
        INDEX,
        version="2.6",
        data_page_version="1.0",
        compression="none",  # what is left is random: zstd finds nothing
        use_dictionary=False,
        column_encoding={name: "DELTA_BINARY_PACKED" for name in INDEX.names},
        write_statistics=["hash"],
        store_schema=False,
    )


def _groups(blocks: Iterator[Entries]) -> Iterator[Entries]:
    """Yields the same entries, a whole number of row groups at a time until the last."""
    waiting: list[Entries] = []
    count = 0
    for block in blocks:
        waiting.append(block)
        count += len(block)
        whole = count - count % GROUP_ROWS
        if whole:
            joined = concatenate(waiting)
            yield joined.part(0, whole)
            waiting, count = [joined.part(whole, count)], count - whole
    if count:
        yield concatenate(waiting)


def _table(entries: Entries) -> pa.Table:
    return pa.table([entries.hash, entries.table, entries.row], schema=INDEX)


class _Footers:
    """Footers read last: a program that opens a dataset anew for each question reads them once.

    That of 100 million entries takes 10 ms to read and some 10 MB. Safe to share between threads.
    """

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: OrderedDict[_Key, pq.FileMetaData] = OrderedDict()

    def get(self, key: _Key) -> pq.FileMetaData | None:
        """Returns a footer that was put."""
        with self._lock:
            return self._known.get(key)

    def put(self, key: _Key, footer: pq.FileMetaData) -> None:
        """Keeps a footer, and lets go of the one that was put longest ago."""
        with self._lock:
            self._known[key] = footer
            self._known.move_to_end(key)
            if len(self._known) > self._most:
                self._known.popitem(last=False)


_Key = tuple[str, str, int]
"""URL of the store, path, which is named by what is in it, and size in bytes."""

_footers = _Footers(most=16)


class IndexReader:
    """An open file of an index; safe to share between threads.

    Args:
        store: where it is.
        path: its path.

    Raises:
        DamagedError: it is missing or no index.
    """

    def __init__(self, store: BlockingStore, path: str) -> None:
        self._path, self._store = path, store
        self._lock = threading.Lock()
        with self._meaning():
            view = store.open(path)
            known = _footers.get((store.url, path, view.size))
            self._file = pq.ParquetFile(ViewFile(view), metadata=known, pre_buffer=True)
            found = self._file.schema_arrow
        if found.names != INDEX.names or found.types != INDEX.types:
            raise self._damaged(f"its columns are {', '.join(map(str, found))}")
        self._metadata = self._file.metadata
        _footers.put((store.url, path, view.size), self._metadata)

    def find(self, first: int, last: int) -> Iterator[Entries]:
        """Yields the entries whose hash is in [first, last], in order; nothing where none is."""
        group = bisect_left(range(self._metadata.num_row_groups), first, key=self._largest)
        for number in range(group, self._metadata.num_row_groups):
            entries = self._group(number)
            start = int(entries.hash.searchsorted(np.uint64(first), "left"))
            stop = int(entries.hash.searchsorted(np.uint64(last), "right"))
            if stop > start:
                yield entries.part(start, stop)
            if stop < len(entries):
                return

    def blocks(self) -> Iterator[Entries]:
        """Yields all entries in order."""
        for number in range(self._metadata.num_row_groups):
            yield self._group(number)

    def close(self) -> None:
        """Gives the file back."""
        self._file.close(force=True)

    def _largest(self, group: int) -> int:
        statistics = self._metadata.row_group(group).column(0).statistics
        if statistics is None or not statistics.has_min_max:
            raise self._damaged(f"row group {group} has no statistics of the hash")
        return int(statistics.max)

    def _group(self, number: int) -> Entries:
        with self._lock, self._meaning():
            table = self._file.read_row_group(number, use_threads=False)
        hashes, tables, rows = (table.column(name).to_numpy() for name in INDEX.names)
        return Entries(hashes, places(tables.astype(np.uint32), rows.astype(np.uint64)))

    @contextlib.contextmanager
    def _meaning(self) -> Iterator[None]:
        try:
            with reading(self._store, self._path):
                yield
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, why: str) -> DamagedError:
        return DamagedError(
            f"{self._path} in {self._store.url} can't be read as an index: {why}; nothing can be "
            f"looked up by it; {to_repair(self._store.url)}"
        )
