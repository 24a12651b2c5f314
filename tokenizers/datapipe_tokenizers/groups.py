"""Columns of texts taken apart into groups for an encoder, and its results put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "Counts",
    "Encoder",
    "Ids",
    "encode_in_groups",
    "plan_groups",
    "replace_documents",
    "rows_with",
]

_SPARE = 1.05  # memory that isn't written to is never taken

Ids = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]


class Encoder(Protocol):
    """What turns texts into ids; threads may share one."""

    @property
    def name(self) -> str:
        """The library behind it."""

    def encode(self, texts: pa.LargeStringArray) -> tuple[Ids, Counts]:
        """Returns the ids of all texts, one after the other, and how many each has."""


def plan_groups(sizes: npt.NDArray[np.int64], *, limit: int) -> Iterator[tuple[int, int]]:
    """Yields [start, stop) of consecutive items whose sizes add up to `limit` at most.

    An item larger than `limit` is a group of its own.
    """
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + limit, side="right")), start + 1)
        yield start, stop
        start = stop


def encode_in_groups(
    texts: pa.LargeStringArray,
    encode: Callable[[pa.LargeStringArray], tuple[Ids, Counts]],
    *,
    limit: int,
    threads: int,
) -> tuple[Ids, Counts]:
    """Returns what `encode` makes of `texts`, given about `limit` bytes of them at once.

    Args:
        texts: what to encode.
        encode: texts -> ids and counts; releases the GIL where threads are to help.
        limit: bytes; a longer text is given alone.
        threads: groups that are encoded at the same time.
    """
    sizes = pc.binary_length(texts).to_numpy(zero_copy_only=False)
    groups = [texts.slice(start, stop - start) for start, stop in plan_groups(sizes, limit=limit)]
    if len(groups) == 1:
        return encode(groups[0])
    if threads == 1:
        return _joined(map(encode, groups), sizes)
    with ThreadPoolExecutor(min(threads, max(len(groups), 1))) as pool:
        return _joined(pool.map(encode, groups), sizes)


def _joined(
    parts: Iterable[tuple[Ids, Counts]], sizes: npt.NDArray[np.int64]
) -> tuple[Ids, Counts]:
    """Returns the parts as one, each copied as soon as it is there and then let go.

    That takes less memory than all parts at once, and the next one finds its memory in the cache.
    """
    ids, used, rows = np.empty(0, dtype=np.uint32), 0, 0
    all_counts = np.empty(len(sizes), dtype=np.int64)
    total = int(sizes.sum())
    for part, counts in parts:
        all_counts[rows : rows + len(counts)] = counts
        rows += len(counts)
        if used + len(part) > len(ids):
            done = int(sizes[:rows].sum())
            expected = (used + len(part)) * total / max(done, 1)
            ids = _longer(ids[:used], int(expected * _SPARE) + 1)
        ids[used : used + len(part)] = part
        used += len(part)
    return ids[:used], all_counts


def _longer(ids: Ids, length: int) -> Ids:
    longer = np.empty(length, dtype=ids.dtype)
    longer[: len(ids)] = ids
    return longer


def rows_with(places: npt.NDArray[np.int64], counts: Counts) -> npt.NDArray[np.int64]:
    """Returns the documents, ascending, in which the `places` of ids lie."""
    return np.unique(np.searchsorted(np.cumsum(counts), places, side="right"))


def replace_documents(
    ids: Ids, counts: Counts, rows: npt.NDArray[np.int64], replaced: list[Ids]
) -> tuple[Ids, Counts]:
    """Returns ids and counts with the documents `rows` having the ids `replaced`."""
    arrays = np.split(ids, np.cumsum(counts)[:-1])
    for row, new in zip(rows.tolist(), replaced, strict=True):
        arrays[row] = new
    return np.concatenate(arrays), np.array([len(array) for array in arrays], dtype=np.int64)
