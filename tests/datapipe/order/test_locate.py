from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from datapipe.errors import OrderError
from datapipe.order import MAX_SAMPLE, Order, OrderSource, OrderSpec, Phase, Places

TOKENS = np.random.default_rng(5).integers(0, 90, 40)


def order_of(num_tokens: Any = TOKENS, **changes: Any) -> Order:
    source = OrderSource(name="a", order_digest="0" * 64, shards_to=len(num_tokens))
    options = {"sources": (source,), "seq_len": 8, "lanes": 4, "seed": 3, **changes}
    return Order.open(OrderSpec(**options), {"a": num_tokens})


def same(one: Places, other: Places) -> bool:
    names = ("source", "shard", "sample", "epoch", "count")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize(
    ("num_tokens", "lanes", "window_shards", "seq_len"),
    [
        ([9], 1, 1, 8),
        ([9], 64, 4, 8),
        ([2], 7, 4, 100),
        ([80], 3, 2, 8),
        ([0, 1, 2, 1, 0], 2, 1, 8),
        ([0, 0, 0, 500], 5, 2, 8),
        ([20, 20, 20], 2, 50, 8),
        ([1, 30], 65_536, 4, 8),
        ([5] * 33, 4, 3, 1),
    ],
    ids=[
        "one sample",
        "one sample and many lanes",
        "a sample larger than all shards",
        "one shard",
        "one shard of many has a sample",
        "empty shards before",
        "a window larger than the source",
        "the most lanes",
        "samples of one token",
    ],
)
def test_edges_visit_every_sample_once_an_epoch(
    num_tokens: list[int], lanes: int, window_shards: int, seq_len: int
) -> None:
    order = order_of(num_tokens, lanes=lanes, window_shards=window_shards, seq_len=seq_len)
    total = order.num_samples["a"]
    for epoch in (0, 1, 5):
        numbers = np.arange(epoch * total, (epoch + 1) * total)
        places = order.locate(numbers)
        assert len(set(zip(places.shard, places.sample, strict=True))) == total
        back = order.inverse(places.source, places.shard, places.sample, places.epoch)
        assert back.tolist() == numbers.tolist()


def test_epochs_beyond_the_last_number_are_never_drawn() -> None:
    order = order_of([9, 9], seq_len=8)
    last = order.locate(MAX_SAMPLE - 1)
    assert order.inverse(0, last.shard, last.sample, last.epoch).tolist() == [MAX_SAMPLE - 1]
    epochs = [MAX_SAMPLE // 2 - 1, MAX_SAMPLE // 2, 2**62, 2**63 - 1]
    assert [n >= 0 for n in order.inverse(0, 0, 0, epochs).tolist()] == [True, False, False, False]


def test_any_shape_order_and_repetition_of_numbers() -> None:
    order = order_of()
    assert order.locate(7).shard.shape == (1,)
    assert len(order.locate([])) == 0
    assert order.inverse(0, [], 0, 0).shape == (0,)
    twice = order.locate([500, 3, 500])
    assert twice.shard[0] == twice.shard[2]
    assert twice.shard[1] == order.locate(3).shard[0]


def test_appending_shards_and_pickling_change_nothing() -> None:
    spec = order_of().spec
    longer = Order.open(spec, {"a": np.append(TOKENS, [70, 90])})
    copied = pickle.loads(pickle.dumps(longer))
    numbers = np.arange(0, 5000, 3)
    assert same(order_of().locate(numbers), longer.locate(numbers))
    assert same(order_of().locate(numbers), copied.locate(numbers))


def test_a_run_of_shards_is_a_source_of_its_own() -> None:
    source = OrderSource(name="a", order_digest="0" * 64, shards_from=30, shards_to=40)
    part = order_of(sources=(source,))
    alone = order_of(TOKENS[30:])
    places, shifted = part.locate(np.arange(300)), alone.locate(np.arange(300))
    assert places.shard.tolist() == (shifted.shard + 30).tolist()
    back = part.inverse(0, places.shard, places.sample, places.epoch)
    assert back.tolist() == list(range(300))
    assert (
        part.token_runs(places).num_pairs.tolist() == alone.token_runs(shifted).num_pairs.tolist()
    )


def test_many_epochs_in_any_order_give_the_same_as_one_at_a_time() -> None:
    numbers = np.random.default_rng(0).integers(0, 400_000, 300)
    together = order_of().locate(numbers)
    apart = order_of()
    alone = [int(apart.locate(n).shard[0]) for n in numbers]
    assert together.shard.tolist() == alone


def test_threads_share_an_order() -> None:
    order, numbers = order_of(), [np.arange(i * 500, (i + 1) * 500) for i in range(20)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(order.locate, numbers))
    assert all(
        same(places, order_of().locate(n)) for places, n in zip(together, numbers, strict=True)
    )


def test_neighbours_in_a_lane_read_at_most_a_window_of_shards() -> None:
    order = order_of([81] * 200, window_shards=3, lanes=4)
    lane = order.locate(np.arange(0, order.num_samples["a"], 4)).shard
    turns = [lane[np.flatnonzero(lane == shard)].size for shard in set(lane.tolist())]
    spans = [np.ptp(np.flatnonzero(lane == shard)) for shard in set(lane.tolist())]
    assert max(turns) == 10
    assert max(spans) < 3 * 10


def test_seeds_and_epochs_differ() -> None:
    order = order_of()
    total, other = order.num_samples["a"], order_of(seed=4)
    first = order.locate(np.arange(total)).shard
    assert not np.array_equal(first, order.locate(np.arange(total, 2 * total)).shard)
    assert not np.array_equal(first, other.locate(np.arange(total)).shard)


def test_tokens_of_samples() -> None:
    order = order_of([20, 1, 9])
    runs = order.token_runs(order.locate(np.arange(4)))
    pairs = sorted(zip(runs.start.tolist(), runs.num_pairs.tolist(), strict=True))
    assert pairs == [(0, 8), (0, 8), (8, 8), (16, 3)]
    first, end = order.samples_holding(0, [0, 2], token_start=[8, 0], num_tokens=[1, 9])
    assert (first.tolist(), end.tolist()) == ([0, 0], [2, 1])


def test_an_order_that_cannot_be_opened() -> None:
    spec = order_of().spec
    with pytest.raises(OrderError, match="no token counts for source a"):
        Order.open(spec, {"b": TOKENS})
    with pytest.raises(OrderError, match=r"counts for 39 shards and the spec takes .* up to 39"):
        Order.open(spec, {"a": TOKENS[:-1]})
    with pytest.raises(OrderError, match="negative"):
        Order.open(spec, {"a": TOKENS - 50})
    with pytest.raises(OrderError, match=r"no sample of 8 tokens in its 2 shards \(largest: 1"):
        order_of([1, 0])
    with pytest.raises(OrderError, match="largest: 8 tokens, tail='drop'"):
        order_of([8, 8], tail="drop")


@pytest.mark.parametrize("number", [-1, MAX_SAMPLE], ids=["below", "above"])
def test_numbers_outside_are_refused(number: int) -> None:
    with pytest.raises(OrderError, match=f"sample number {number} doesn't exist"):
        order_of().locate([0, number])


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((1, 0, 0, 0), "source index 1 doesn't exist"),
        ((0, 40, 0, 0), "shards 0 up to 39 in this order, and shard 40"),
        ((0, 0, 99, 0), "shard 0 of a has 8 samples of 8 tokens, and sample 99"),
        ((0, 0, -1, 0), "sample -1"),
        ((0, 0, 0, -1), "epoch -1 doesn't exist"),
    ],
)
def test_places_that_do_not_exist_are_refused(
    place: tuple[int, int, int, int], message: str
) -> None:
    with pytest.raises(OrderError, match=message):
        order_of([60] * 40).inverse(*place)


def test_a_weight_too_small_is_an_error_at_open() -> None:
    sources = tuple(
        OrderSource(name=name, order_digest="0" * 64, shards_to=40) for name in ("a", "b")
    )
    spec = OrderSpec(sources=sources, seq_len=8, lanes=4, phases=(Phase(0, {"a": 1, "b": 1e-6}),))
    with pytest.raises(OrderError, match="less than one draw in a round of 65536"):
        Order.open(spec, {"a": TOKENS, "b": TOKENS})


def test_importing_the_order_loads_nothing_heavy() -> None:
    code = (
        "import sys, datapipe.order; "
        "print([m for m in ('torch', 'pyarrow', 'numba', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=None
    )
    assert done.stdout.strip() == "[]"
