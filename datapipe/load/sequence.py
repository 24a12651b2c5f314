"""The batches of a pass, planned many at a time: sample numbers and rows of this rank.

Planning a batch of 16 rows alone costs about as much as planning 64 of them at once, so plans
double in size up to a limit; the first is one batch, so that it comes at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from datapipe.load.gather import Rows, plan_rows
from datapipe.load.shard_index import ShardIndex
from datapipe.order import Batches, Order

__all__ = ["PlannedBatch", "plan_batches"]

_MOST_BATCHES = 64
_MOST_SAMPLES = 1 << 16


class PlannedBatch(NamedTuple):
    """One batch of one rank."""

    sample_end: int
    "next_sample after the global batch."
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
        end = number + size * step
        wanted = range(number, end if stop is None else min(end, stop), step)
        yield from _plan(batches, wanted, order=order, index=index, dp_rank=dp_rank)
        number, size = number + size * step, min(size * 2, most)


def _plan(
    batches: Batches, numbers: range, *, order: Order, index: ShardIndex, dp_rank: int
) -> Iterator[PlannedBatch]:
    samples, ends = batches.many_rank_samples(numbers, dp_rank=dp_rank)
    places = order.locate(samples.ravel())
    runs = order.token_runs(places)
    rows = plan_rows(
        index,
        shards=index.flat(places.source, places.shard).reshape(samples.shape),
        starts=runs.start.reshape(samples.shape),
        num_pairs=runs.num_pairs.reshape(samples.shape),
        seq_len=order.spec.seq_len,
    )
    return map(PlannedBatch, ends.tolist(), rows)
