"""What a node is about to read: its shards in order of first need, for the tier that fetches them.

A shard is in use while a window that holds it is read, so its first and last use are those of the
window: no use is outside them, and no sample has to be looked at.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from datapipe.errors import OrderError
from datapipe.order.locate import Order
from datapipe.order.mixture import MAX_SAMPLE
from datapipe.order.permutation import Int64s
from datapipe.order.segment import Segment
from datapipe.order.skips import Delivered
from datapipe.order.slots import lane_major
from datapipe.order.spec import OrderSpec
from datapipe.order.windows import first_turns, lane_ranges

__all__ = ["ShardUse", "hot_set_bytes", "lanes_of_ranks", "nodes_per_lane", "plan"]


class ShardUse(NamedTuple):
    """A stretch of sample numbers in which a node may read a shard."""

    source: int
    "Index of the source in the spec."
    shard: int
    "Number of the shard in its source."
    first: int
    "No sample of the stretch is below it."
    last: int
    "No sample of the stretch is above it."
    next: int | None
    "`first` of the shard's next use by the node; None: not in this epoch or the next."


def plan(
    order: Order,
    *,
    segment: Segment,
    ranks: Iterable[int],
    from_sample: int | None = None,
    until_sample: int | None = None,
) -> Iterator[ShardUse]:
    """Yields the shards that a node needs, in order of first need.

    Computed an epoch of a source at a time and without end, unless `until_sample` is given or no
    source is drawn any more. Uses of a shard that overlap are one.

    Args:
        order: the order that is read.
        segment: batch size and world size, which say what lanes the ranks read.
        ranks: data-parallel ranks of the node.
        from_sample: uses before it are over; None: the segment's first sample.
        until_sample: uses from it on are left out (the stream's end).

    Raises:
        OrderError: no ranks, or ranks that the segment hasn't.
    """
    start = segment.first_sample if from_sample is None else from_sample
    until = MAX_SAMPLE if until_sample is None else until_sample
    lanes = lanes_of_ranks(segment, ranks, spec=order.spec)
    sources = order.mixture.drawn_sources(start)
    streams = [_source_uses(order, s, lanes=lanes, start=start, until=until) for s in sources]
    return heapq.merge(*streams, key=lambda use: (use.first, use.source, use.shard))


def lanes_of_ranks(segment: Segment, ranks: Iterable[int], *, spec: OrderSpec) -> Int64s:
    """Returns the lanes that ranks read in the course of a segment, ascending.

    Raises:
        OrderError: no ranks, or ranks that the segment hasn't.
    """
    size, per_rank = segment.global_batch_size, segment.global_batch_size // segment.dp_world_size
    wanted = np.array(sorted(set(ranks)), dtype=np.int64)
    if wanted.size == 0 or wanted[0] < 0 or wanted[-1] >= segment.dp_world_size:
        raise OrderError(
            f"the ranks {wanted.tolist()} are no ranks of {segment.dp_world_size}: "
            "name those of one node, counted from 0"
        )
    rows = (wanted[:, None] * per_rank + np.arange(per_rank)[None, :]).ravel()
    read = np.zeros(spec.lanes, dtype=np.bool_)
    stride = math.gcd(size, spec.lanes)  # how far apart the lanes are at which batches start
    start = int(Delivered(spec.skips).before(segment.first_sample)) % stride
    for first_lane in range(start, spec.lanes, stride):
        slots = lane_major(first_lane + np.arange(size, dtype=np.int64), lanes=spec.lanes)
        read[slots[rows] % spec.lanes] = True
    return np.flatnonzero(read)


def nodes_per_lane(segment: Segment, *, spec: OrderSpec, ranks_per_node: int) -> float:
    """Returns how many nodes read a lane on average: the factor on bytes fetched from the origin.

    1.0 where lanes >= nodes, the batch is a multiple of the lanes and nodes divide them.
    """
    world = segment.dp_world_size
    nodes = [range(r, min(r + ranks_per_node, world)) for r in range(0, world, ranks_per_node)]
    return sum(lanes_of_ranks(segment, node, spec=spec).size for node in nodes) / spec.lanes


def hot_set_bytes(
    order: Order, *, num_lanes: int, shard_bytes: Mapping[str, int], from_sample: int = 0
) -> int:
    """Returns the bytes that a node has in use at a time, looking as far ahead again.

    num_lanes x 2 W x the sum of the shard sizes of the sources drawn from `from_sample` on, each
    source counting at most whole. A cache below it is served by ranges.

    Args:
        order: the order that is read.
        num_lanes: lanes of the node, see `lanes_of_ranks`.
        shard_bytes: mean bytes of a shard by source name.
        from_sample: sources no longer drawn at it are left out.
    """
    shards = num_lanes * 2 * order.spec.window_shards
    total = 0
    for index in order.mixture.drawn_sources(from_sample):
        source = order.spec.sources[index]
        total += min(shards, source.num_shards) * shard_bytes[source.name]
    return total


class _Uses(NamedTuple):
    """Uses of shards of one source: int64 arrays of one length."""

    shard: Int64s
    first: Int64s
    last: Int64s


def _source_uses(
    order: Order, source: int, *, lanes: Int64s, start: int, until: int
) -> Iterator[ShardUse]:
    epoch = _first_epoch(order, source, lanes=lanes, start=start)
    pending = _joined(_epoch_uses(order, source, epoch, lanes=lanes, start=start))
    while True:
        epoch += 1
        pending = _joined(pending, _epoch_uses(order, source, epoch, lanes=lanes, start=start))
        following = _following(pending)
        bound = _epoch_start(order, source, epoch, lanes=lanes)
        known = _epoch_start(order, source, epoch + 1, lanes=lanes)
        # lanes differ by some draws: where epochs are that short, a use of the epoch not yet
        # looked at may come before the one found
        unsure = pending.first[following > known]
        ready = pending.first < min(bound, until, int(unsure.min(initial=until)))
        yield from _shown(order, source, pending, following=following, ready=ready, until=until)
        if bound >= until and not np.any(unsure < until):
            return
        pending = _Uses(*(column[~ready] for column in pending))


def _shown(
    order: Order,
    source: int,
    uses: _Uses,
    *,
    following: Int64s,
    ready: npt.NDArray[np.bool_],
    until: int,
) -> Iterator[ShardUse]:
    shards = uses.shard + order.spec.sources[source].shards_from
    rows = np.flatnonzero(ready)
    for i in rows[np.argsort(uses.first[rows], kind="stable")].tolist():
        after = int(following[i])
        yield ShardUse(
            source,
            int(shards[i]),
            int(uses.first[i]),
            min(int(uses.last[i]), until - 1),
            after if 0 <= after < until else None,
        )


def _first_epoch(order: Order, source: int, *, lanes: Int64s, start: int) -> int:
    counts = order.mixture.counts_before(start)[lanes, source]
    drawn = counts * order.spec.lanes + lanes
    return int(drawn.min()) // order.sources[source].num_samples


def _epoch_start(order: Order, source: int, epoch: int, *, lanes: Int64s) -> int:
    """Returns the first sample number at which one of the lanes is in an epoch or a later one."""
    begin = epoch * order.sources[source].num_samples
    if begin >= MAX_SAMPLE:
        return MAX_SAMPLE
    counts = np.maximum(-((lanes - begin) // order.spec.lanes), 0)
    numbers = order.mixture.number(source, lanes=lanes, counts=counts)
    return int(np.where(numbers < 0, MAX_SAMPLE, numbers).min())


def _epoch_uses(order: Order, source: int, epoch: int, *, lanes: Int64s, start: int) -> _Uses:
    """Returns the windows of lanes in an epoch, a row for every shard of every window."""
    begin = epoch * order.sources[source].num_samples
    if begin >= MAX_SAMPLE:
        return _Uses(*np.empty((3, 0), dtype=np.int64))
    shard, counts, lanes = _windows_read(order, source, epoch, lanes=lanes)
    left = order.mixture.counts_of(source, lanes)
    live = np.flatnonzero(counts[0] < left)
    shard, lanes = shard[live], lanes[live]
    first, last = (
        order.mixture.number(source, lanes=lanes, counts=np.minimum(count, left - 1)[live])
        for count in counts
    )
    last = np.where(last < 0, MAX_SAMPLE - 1, last)
    delivered, from_start = Delivered(order.spec.skips), np.maximum(first, start)
    keep = (first >= 0) & (last >= from_start)
    keep &= delivered.before(last + 1) > delivered.before(from_start)
    return _Uses(shard[keep], from_start[keep], last[keep])


def _windows_read(
    order: Order, source: int, epoch: int, *, lanes: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """Returns shard, first and last count [2, rows] of its window, and lane."""
    table, total = order.sources[source].epoch(epoch), order.sources[source].num_samples
    virtual = (lanes - epoch * total) % order.spec.lanes
    start, end = lane_ranges(virtual, totals=total, lanes=order.spec.lanes)
    borders = table.position_of(start)
    num = np.where(start < end, table.position_of(end - 1) - borders + 1, 0)
    rows = np.repeat(np.arange(lanes.size), num)
    positions = np.arange(rows.size) - np.repeat(np.cumsum(num) - num - borders, num)
    held = np.flatnonzero(table.ends[positions + 1] > table.ends[positions])
    rows, positions = rows[held], positions[held]
    turn = first_turns(virtual, window_shards=order.spec.window_shards)
    _, opens, closes = table.window_bounds(
        positions, start=start[rows], end=end[rows], turn=turn[rows]
    )
    steps = np.stack([opens, closes - 1]) - start[rows]
    drawn = epoch * total + steps * order.spec.lanes + virtual[rows]
    return table.shards[positions].astype(np.int64), drawn // order.spec.lanes, lanes[rows]


def _joined(*parts: _Uses) -> _Uses:
    """Returns uses by (shard, first), those of a shard that overlap made one."""
    shard, first, last = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((first, shard))
    shard, first, last = shard[order], first[order], last[order]
    if shard.size == 0:
        return _Uses(shard, first, last)
    other = np.r_[True, shard[1:] != shard[:-1]]
    if not np.any((first[1:] <= last[:-1]) & ~other[1:]):
        return _Uses(shard, first, last)
    latest = _running_max(last, other)
    opens = other | np.r_[True, first[1:] > latest[:-1]]
    closes = np.r_[opens[1:], True]
    return _Uses(shard[opens], first[opens], latest[closes])


def _running_max(values: Int64s, opens: npt.NDArray[np.bool_]) -> Int64s:
    """Returns the running maximum of values, begun anew where `opens`."""
    by_value = np.argsort(values, kind="stable")
    rank = np.empty_like(by_value)
    rank[by_value] = np.arange(values.size)
    group = np.cumsum(opens) * values.size
    latest = np.maximum.accumulate(group + rank) % values.size
    return np.asarray(values[by_value[latest]])


def _following(uses: _Uses) -> Int64s:
    """Returns the first use of the same shard after each use, -1 where there is none."""
    result = np.full(uses.shard.shape, -1, dtype=np.int64)
    same = np.flatnonzero(uses.shard[1:] == uses.shard[:-1])
    result[same] = uses.first[same + 1]
    return result
