"""Epochs of one source: its shards shuffled, and where their samples begin.

An epoch lays the samples of a source in the order of its shuffled shards, cuts them into one
range a lane and each range into windows of W shards, and permutes inside each window. Reading an
epoch so costs a lane at most W open shards at a time. The shuffled order and its cumulative
counts are the only tables: 12 bytes a shard for each epoch in use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from datapipe.errors import OrderError
from datapipe.order.permutation import Int64s, scalar_key, shuffled
from datapipe.order.samples import Tail, num_samples

__all__ = ["Epoch", "SourceOrder"]

_SHARD_ORDER_KEY = 1
_WINDOW_KEY = 3
_CACHE_BYTES = 32 << 20  # per source; two epochs are always kept: lanes cross a border together
_MIN_EPOCHS, _MAX_EPOCHS = 3, 4096
_EPOCH_BYTES = 512  # of the objects around the tables


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch of a source. A place is a position in the shuffled order, 0 <= place < N."""

    shards: npt.NDArray[np.int32]
    "[shards] shard at each position, counted from the source's first."
    ends: Int64s
    "[shards + 1] first place of each position; the last is N."
    window_shards: int
    shard_key: int
    "Key of the order of the shards."
    window_key: int
    "Key of the windows, before lane and window."

    def position_of(self, places: Int64s) -> Int64s:
        """Returns the position of the shard that holds each place."""
        return np.searchsorted(self.ends, places, side="right") - 1

    def window_bounds(
        self, positions: Int64s, *, start: Int64s, end: Int64s, turn: Int64s
    ) -> tuple[Int64s, Int64s, Int64s]:
        """Returns number, first place and one after the last of windows that hold positions.

        Args:
            positions: of shards in the ranges.
            start: first place of each range.
            end: one after its last place.
            turn: shard ends after which its second window begins.
        """
        first, width, last = self.position_of(start), self.window_shards, self.shards.size
        passed = positions - first - turn
        number = np.where(passed < 0, 0, 1 + passed // width)
        cut = first + turn + number * width
        begin = np.where(number == 0, start, self.ends[np.clip(cut - width, 0, last)])
        return number, begin, np.minimum(self.ends[np.minimum(cut, last)], end)


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
        self._window_shards = window_shards
        epoch_bytes = 12 * counts.size + _EPOCH_BYTES
        kept = min(max(_CACHE_BYTES // epoch_bytes, _MIN_EPOCHS), _MAX_EPOCHS)
        self.epoch: Callable[[int], Epoch] = lru_cache(maxsize=kept)(self._epoch)

    @property
    def num_shards(self) -> int:
        """Number of shards, empty ones included."""
        return int(self.counts.size)

    def _epoch(self, epoch: int) -> Epoch:
        shard_key = scalar_key(self._seed, _SHARD_ORDER_KEY, self._index, epoch)
        shards = shuffled(self.num_shards, key=shard_key)
        ends = np.zeros(shards.size + 1, dtype=np.int64)
        np.cumsum(self.counts[shards], out=ends[1:])
        return Epoch(
            shards=shards,
            ends=ends,
            window_shards=self._window_shards,
            shard_key=shard_key,
            window_key=scalar_key(self._seed, _WINDOW_KEY, self._index, epoch),
        )
