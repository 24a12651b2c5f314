"""Epochs and windows of one source: from the how-manieth sample to the shard, and back.

An epoch lays the samples of a source in the order of its shuffled shards, cuts them into one
range a lane and each range into windows of W shards, and permutes inside each window. Reading an
epoch so costs a lane at most W open shards at a time. The shuffled order and its cumulative
counts are the only tables: 12 bytes a shard for each epoch in use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from datapipe.errors import OrderError
from datapipe.order.permutation import (
    Int64s,
    UInt64s,
    mix,
    permute,
    scalar_key,
    shuffled,
    unpermute,
    vector_keys,
)
from datapipe.order.samples import Tail, num_samples

__all__ = ["Epoch", "SourceOrder", "Windows"]

_SHARD_ORDER_KEY = 1
_WINDOW_KEY = 3
_CACHE_BYTES = 32 << 20  # per source; two epochs are always kept: lanes cross a border together
_MIN_EPOCHS, _MAX_EPOCHS = 3, 4096
_EPOCH_BYTES = 512  # of the objects around the tables


class Windows(NamedTuple):
    """Windows of virtual lanes in places of their epoch: int64 arrays of one length."""

    number: Int64s
    "Number of the window in its range."
    start: Int64s
    "First place of the window."
    end: Int64s
    "One after the last place."


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch of a source. A place is a position in the shuffled order, 0 <= place < N."""

    shards: npt.NDArray[np.int32]
    "[shards] shard at each position, counted from the source's first."
    ends: Int64s
    "[shards + 1] first place of each position; the last is N."
    lanes: int
    window_shards: int
    key: int
    "Key of the windows, before lane and window."

    def range_of(self, lanes: Int64s) -> tuple[Int64s, Int64s]:
        """Returns first place and one after the last of virtual lanes."""
        size, longer = divmod(int(self.ends[-1]), self.lanes)
        start = lanes * size + np.minimum(lanes, longer)
        return start, start + size + (lanes < longer)

    def lane_of(self, places: Int64s) -> Int64s:
        """Returns the virtual lane whose range holds each place."""
        size, longer = divmod(int(self.ends[-1]), self.lanes)
        border = longer * (size + 1)
        behind = longer + (places - border) // max(size, 1)
        return np.where(places < border, places // (size + 1), behind)

    def position_of(self, places: Int64s) -> Int64s:
        """Returns the position of the shard that holds each place."""
        return np.searchsorted(self.ends, places, side="right") - 1

    def windows(self, lanes: Int64s, positions: Int64s) -> Windows:
        """Returns the windows of virtual lanes that hold the shards at positions."""
        start, end = self.range_of(lanes)
        first = self.position_of(start)
        turn = 1 + (mix(lanes.astype(np.uint64)) % np.uint64(self.window_shards)).astype(np.int64)
        passed = positions - first
        number = np.where(passed < turn, 0, 1 + (passed - turn) // self.window_shards)
        cut = first + turn + number * self.window_shards
        last = self.shards.size
        window_start = self.ends[np.clip(cut - self.window_shards, 0, last)]
        window_end = self.ends[np.minimum(cut, last)]
        window_start = np.where(number == 0, start, window_start)
        return Windows(number, window_start, np.minimum(window_end, end))

    def shuffle(self, lanes: Int64s, places: Int64s) -> Int64s:
        """Returns the place that is read when a virtual lane comes to each place."""
        number, start, end = self.windows(lanes, self.position_of(places))
        keys = self._keys(lanes, number)
        return start + permute(places - start, sizes=end - start, keys=keys)

    def unshuffle(self, lanes: Int64s, places: Int64s) -> Int64s:
        """Returns the inverse of `shuffle`."""
        number, start, end = self.windows(lanes, self.position_of(places))
        keys = self._keys(lanes, number)
        return start + unpermute(places - start, sizes=end - start, keys=keys)

    def _keys(self, lanes: Int64s, windows: Int64s) -> UInt64s:
        return vector_keys(self.key, lanes, windows, first=4)


class SourceOrder:
    """All epochs of one source; holds the tables of the epochs used last. Safe for threads."""

    def __init__(
        self,
        num_tokens: Int64s,
        *,
        name: str,
        index: int,
        seed: int,
        seq_len: int,
        tail: Tail,
        lanes: int,
        window_shards: int,
    ) -> None:
        """Counts the samples of each shard of `num_tokens` tokens.

        Raises:
            OrderError: no shard has a sample.
        """
        counts = num_samples(num_tokens, seq_len=seq_len, tail=tail)
        self.num_samples = int(counts.sum())
        if self.num_samples == 0:
            raise OrderError(
                f"source {name} has no sample of {seq_len} tokens in its {counts.size} shards "
                f"(largest: {int(num_tokens.max())} tokens, tail={tail!r}): nothing could be drawn "
                "from it; leave the source out or take a smaller seq_len"
            )
        small = int(counts.max()) < 1 << 31
        self.counts = counts.astype(np.int32) if small else counts
        self._index, self._seed = index, seed
        self._lanes, self._window_shards = lanes, window_shards
        epoch_bytes = 12 * counts.size + _EPOCH_BYTES
        kept = min(max(_CACHE_BYTES // epoch_bytes, _MIN_EPOCHS), _MAX_EPOCHS)
        self.epoch: Callable[[int], Epoch] = lru_cache(maxsize=kept)(self._epoch)

    @property
    def num_shards(self) -> int:
        """Number of shards, empty ones included."""
        return int(self.counts.size)

    def position_of(self, shards: Int64s, *, epoch: int) -> Int64s:
        """Returns the position of shards in the shuffled order of an epoch."""
        sizes = np.full(shards.shape, self.num_shards, dtype=np.int64)
        return unpermute(shards, sizes=sizes, keys=self._key(_SHARD_ORDER_KEY, epoch))

    def _key(self, use: int, epoch: int) -> int:
        return scalar_key(self._seed, use, self._index, epoch)

    def _epoch(self, epoch: int) -> Epoch:
        shards = shuffled(self.num_shards, key=self._key(_SHARD_ORDER_KEY, epoch))
        ends = np.zeros(shards.size + 1, dtype=np.int64)
        np.cumsum(self.counts[shards], out=ends[1:])
        return Epoch(
            shards=shards,
            ends=ends,
            lanes=self._lanes,
            window_shards=self._window_shards,
            key=self._key(_WINDOW_KEY, epoch),
        )
