"""Ranges and windows: where in an epoch a lane reads, and how far it mixes.

An epoch's samples lie in the order of its shuffled shards. They are cut into one range a virtual
lane, each range at shard ends into windows of W shards, and each window is permuted in itself. All
functions take samples of different sources and epochs at once: `totals` is N for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from datapipe.order.epoch import Epoch
from datapipe.order.permutation import Int64s, UInt64s, mix, permute, unpermute, vector_keys

__all__ = [
    "ALL",
    "EpochRows",
    "Rows",
    "Windows",
    "first_turns",
    "groups_of",
    "lane_of_places",
    "lane_ranges",
    "rows_within",
    "windows_of",
]

Rows = npt.NDArray[np.intp] | slice
ALL = slice(None)
"""All rows, without a copy."""


class EpochRows(NamedTuple):
    """The rows of arrays that lie in one epoch of one source."""

    source: int
    epoch: Epoch
    rows: Rows


class Windows(NamedTuple):
    """Windows in places of their epoch: arrays of one length."""

    start: Int64s
    "First place."
    size: Int64s
    "Number of places."
    keys: UInt64s
    "Key of the permutation inside."

    def shuffle(self, places: Int64s) -> Int64s:
        """Returns the place that is read when a lane comes to each place."""
        return self.start + permute(places - self.start, sizes=self.size, keys=self.keys)

    def unshuffle(self, places: Int64s) -> Int64s:
        """Returns the inverse of `shuffle`."""
        return self.start + unpermute(places - self.start, sizes=self.size, keys=self.keys)


def lane_ranges(virtual: Int64s, *, totals: Int64s | int, lanes: int) -> tuple[Int64s, Int64s]:
    """Returns the first place and one after the last of virtual lanes."""
    size = totals // lanes
    longer = totals - size * lanes
    start = virtual * size + np.minimum(virtual, longer)
    return start, start + size + (virtual < longer)


def lane_of_places(places: Int64s, *, totals: Int64s, lanes: int) -> Int64s:
    """Returns the virtual lane whose range holds each place."""
    size = totals // lanes
    longer = totals - size * lanes
    border = longer * (size + 1)
    behind = longer + (places - border) // np.maximum(size, 1)
    return np.where(places < border, places // (size + 1), behind)


def first_turns(virtual: Int64s, *, window_shards: int) -> Int64s:
    """Returns after how many shard ends virtual lanes begin their second window, 1..W."""
    mixed = mix(virtual.astype(np.uint64)) % np.uint64(window_shards)
    return 1 + mixed.astype(np.int64)


def windows_of(
    groups: Sequence[EpochRows],
    places: Int64s,
    *,
    virtual: Int64s,
    totals: Int64s,
    lanes: int,
    window_shards: int,
) -> Windows:
    """Returns the windows that hold places of the ranges of virtual lanes."""
    start, end = lane_ranges(virtual, totals=totals, lanes=lanes)
    turn = first_turns(virtual, window_shards=window_shards)
    number = np.empty_like(places)
    keys = np.empty(places.shape, dtype=np.uint64)
    for _, epoch, rows in groups:
        number[rows], start[rows], end[rows] = epoch.window_bounds(
            epoch.position_of(places[rows]), start=start[rows], end=end[rows], turn=turn[rows]
        )
        keys[rows] = epoch.window_key
    return Windows(start, end - start, vector_keys(keys, virtual, number, first=4))


def groups_of(values: Int64s) -> Iterator[tuple[int, Rows]]:
    """Yields each different value, ascending, with its rows (ALL if there is only one)."""
    if values.size == 0:
        return
    if values.min() == values.max():
        yield int(values[0]), ALL
        return
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    for start, end in zip(starts, [*starts[1:], values.size], strict=True):
        yield int(ordered[start]), order[start:end]


def rows_within(rows: Rows, inner: Rows) -> Rows:
    """Returns which rows of all `inner` ones of `rows` are."""
    return inner if isinstance(rows, slice) else rows[inner]
