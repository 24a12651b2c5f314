from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.errors import OrderError
from datapipe.order import (
    Batches,
    Order,
    OrderSource,
    OrderSpec,
    Phase,
    Segment,
    ShardUse,
    hot_set_bytes,
    lanes_of_ranks,
    nodes_per_lane,
    plan,
)


def order_of(
    tokens: list[list[int]],
    *,
    lanes: int = 4,
    window_shards: int = 2,
    phases: tuple[Phase, ...] = (),
    skips: tuple[tuple[int, int], ...] = (),
) -> Order:
    names = [f"s{i}" for i in range(len(tokens))]
    sources = tuple(
        OrderSource(name=name, order_digest="0" * 64, shards_to=len(t))
        for name, t in zip(names, tokens, strict=True)
    )
    spec = OrderSpec(
        sources=sources,
        seq_len=8,
        lanes=lanes,
        window_shards=window_shards,
        phases=phases or (Phase(0, {name: i + 1 for i, name in enumerate(names)}),),
        skips=skips,
    )
    return Order.open(spec, dict(zip(names, tokens, strict=True)))


def read_by(order: Order, segment: Segment, ranks: list[int], until: int) -> Iterator[np.ndarray]:
    batches = Batches(segment, spec=order.spec, end_sample=until)
    for batch in range(batches.num_batches or 0):
        for rank in ranks:
            yield batches.rank_samples(batch, dp_rank=rank)


TOKENS = st.lists(st.integers(0, 60), min_size=1, max_size=12).filter(lambda t: max(t) > 1)


@settings(max_examples=30, deadline=None)
@given(
    tokens=st.lists(TOKENS, min_size=1, max_size=3),
    lanes=st.sampled_from([1, 2, 4, 6]),
    window_shards=st.integers(1, 3),
    world=st.sampled_from([1, 2, 4]),
    rank=st.integers(0, 3),
    start=st.integers(0, 90),
)
def test_every_read_lies_in_a_planned_use(
    tokens: list[list[int]], lanes: int, window_shards: int, world: int, rank: int, start: int
) -> None:
    order = order_of(tokens, lanes=lanes, window_shards=window_shards, skips=((12, 24),))
    segment = Segment(global_batch_size=4 * world, dp_world_size=world, first_sample=start)
    ranks, until = [rank % world], 180
    uses = list(plan(order, segment=segment, ranks=ranks, until_sample=until))
    planned: dict[tuple[int, int], list[ShardUse]] = {}
    for use in uses:
        planned.setdefault((use.source, use.shard), []).append(use)
    for numbers in read_by(order, segment, ranks, until):
        places = order.locate(numbers)
        for g, s, shard in zip(numbers, places.source, places.shard, strict=True):
            assert any(use.first <= g <= use.last for use in planned[int(s), int(shard)])


@settings(max_examples=40, deadline=None)
@given(tokens=st.lists(TOKENS, min_size=1, max_size=2), start=st.integers(0, 300))
def test_uses_come_by_first_need_and_name_the_next(tokens: list[list[int]], start: int) -> None:
    order = order_of(tokens)
    segment = Segment(global_batch_size=4)
    uses = list(islice(plan(order, segment=segment, ranks=[0], from_sample=start), 80))
    assert [use.first for use in uses] == sorted(use.first for use in uses)
    later: dict[tuple[int, int], int] = {}
    for use in reversed(uses):
        following = later.get((use.source, use.shard))
        assert start <= use.first <= use.last
        assert use.next is None or use.next > use.first
        if following is not None and use.next is not None:
            assert use.next == following
        later[use.source, use.shard] = use.first


def test_windows_bound_the_uses_of_equal_shards() -> None:
    order = order_of([[81] * 40], lanes=2, window_shards=2)
    uses = list(plan(order, segment=Segment(global_batch_size=2), ranks=[0], until_sample=400))
    assert len(uses) == 40
    assert all(use.last - use.first < 2 * 2 * 10 for use in uses)
    assert all(use.next is None for use in uses)
    again = plan(order, segment=Segment(global_batch_size=2), ranks=[0])
    assert all(400 <= (use.next or 0) < 800 for use in islice(again, 40))


def test_a_plan_ends_with_the_last_source_drawn_and_leaves_skips_out() -> None:
    phases = (Phase(0, {"s0": 1}), Phase(40, {"s1": 1}))
    order = order_of([[30, 30], [90] * 9], phases=phases, skips=((40, 400),))
    uses = list(plan(order, segment=Segment(global_batch_size=4), ranks=[0], until_sample=800))
    assert {use.source for use in uses if use.first < 40} == {0}
    assert all(use.last < 40 or use.last >= 400 for use in uses)


def test_ranks_read_their_share_of_lanes() -> None:
    spec = order_of([[30]], lanes=8).spec
    segment = Segment(global_batch_size=16, dp_world_size=4)
    lanes = [lanes_of_ranks(segment, [rank], spec=spec).tolist() for rank in range(4)]
    assert lanes == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert lanes_of_ranks(segment, [0, 1], spec=spec).tolist() == [0, 1, 2, 3]
    assert nodes_per_lane(segment, spec=spec, ranks_per_node=2) == 1.0


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(1, 4), st.integers(1, 6), st.integers(0, 20), st.booleans())
def test_lanes_of_ranks_are_those_they_read(
    lanes: int, world: int, per_rank: int, first: int, skip: bool
) -> None:
    order = order_of([[30]], lanes=lanes, skips=((lanes, 3 * lanes),) if skip else ())
    segment = Segment(global_batch_size=world * per_rank, dp_world_size=world, first_sample=first)
    for rank in range(world):
        read = np.concatenate([*read_by(order, segment, [rank], 600)])
        found = lanes_of_ranks(segment, [rank], spec=order.spec)
        assert found.tolist() == sorted(set((read % lanes).tolist()))


def test_batches_that_are_no_multiple_of_the_lanes_cost_a_factor() -> None:
    spec = order_of([[30]], lanes=8).spec
    segment = Segment(global_batch_size=12, dp_world_size=4)
    assert nodes_per_lane(segment, spec=spec, ranks_per_node=2) > 1.0


@pytest.mark.parametrize("ranks", [[], [4], [-1, 0]])
def test_ranks_that_do_not_exist_are_refused(ranks: list[int]) -> None:
    segment = Segment(global_batch_size=4, dp_world_size=4)
    with pytest.raises(OrderError, match="no ranks of 4"):
        lanes_of_ranks(segment, ranks, spec=order_of([[30]]).spec)


def test_the_hot_set_is_two_windows_of_each_lane_and_source() -> None:
    many = order_of([[30] * 600, [30] * 5], window_shards=4, lanes=64)
    sizes = {"s0": 64 << 20, "s1": 1 << 20}
    assert hot_set_bytes(many, num_lanes=64, shard_bytes=sizes) == (32 << 30) + (5 << 20)
    phases = (Phase(0, {"s1": 1}), Phase(64, {"s0": 1}))
    later = order_of([[30] * 600, [30] * 5], window_shards=4, lanes=64, phases=phases)
    only = hot_set_bytes(later, num_lanes=64, shard_bytes=sizes, from_sample=64)
    assert only == 32 << 30
