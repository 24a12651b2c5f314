"""The batches of a pass, planned many at a time: sample numbers and rows of this rank.

Planning a batch of 16 rows alone costs about as much as planning 64 of them at once, so plans
double in size up to a limit; the first is one batch, so that it comes at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from datapipe.dataset.parts import Int64s
from datapipe.load.gather import Rows
from datapipe.load.shard_index import ShardIndex
from datapipe.order import Batches, Order

__all__ = ["PlannedBatch", "plan_batches"]

_MOST_BATCHES = 64
_MOST_SAMPLES = 1 << 16


class PlannedBatch(NamedTuple):
    """One batch of one rank."""

    number: int
    sample_end: int
    "next_sample after the global batch."
    samples: Int64s
    "Sample number of each row."
    rows: Rows


def plan_batches(
    batches: Batches,
    *,
    order: Order,
    index: ShardIndex,
    dp_rank: int,
    first: int = 0,
    step: int = 1,
) -> Iterator[PlannedBatch]:
    """Yields a rank's part of the batches first, first + step, ... of a segment, in that order.

    Args:
        batches: the segment's batches, up to its end.
        order: says where samples lie.
        index: gives shards their flat numbers.
        dp_rank: whose rows.
        first: first batch, counted from the segment's first.
        step: distance between batches: the number of workers.
    """
    start = batches.segment.first_batch
    stop = None if batches.num_batches is None else start + batches.num_batches
    most = max(min(_MOST_BATCHES, _MOST_SAMPLES // batches.segment.global_batch_size), 1)
    number, size = start + first, 1
    while stop is None or number < stop:
        wanted = range(number, number + size * step, step)
        if stop is not None:
            wanted = range(number, min(wanted.stop, stop), step)
        yield from _plan(batches, list(wanted), order=order, index=index, dp_rank=dp_rank)
        number, size = number + size * step, min(size * 2, most)


def _plan(
    batches: Batches, numbers: list[int], *, order: Order, index: ShardIndex, dp_rank: int
) -> Iterator[PlannedBatch]:
    samples = np.stack([batches.rank_samples(number, dp_rank=dp_rank) for number in numbers])
    places = order.locate(samples.ravel())
    runs = order.token_runs(places)
    flat = index.flat(places.source, places.shard)
    columns = (column.reshape(samples.shape) for column in (flat, runs.start, runs.num_pairs))
    for number, row, *rows in zip(numbers, samples, *columns, strict=True):
        yield PlannedBatch(number, batches.sample_end(number), row, Rows(*rows))
