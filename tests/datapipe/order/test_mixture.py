from __future__ import annotations

import numpy as np
import pytest

from datapipe.errors import OrderError
from datapipe.order import ROUND_DRAWS, OrderSource, OrderSpec, Phase
from datapipe.order.mixture import Mixture, round_counts


def mixture_of(*phases: Phase, num_sources: int = 2, lanes: int = 4) -> Mixture:
    sources = tuple(
        OrderSource(name=f"s{i}", order_digest="0" * 64, shards_to=1) for i in range(num_sources)
    )
    return Mixture(OrderSpec(sources=sources, seq_len=8, lanes=lanes, phases=phases))


@pytest.mark.parametrize(
    ("weights", "counts"),
    [
        ([1], [65_536]),
        ([1, 1], [32_768, 32_768]),
        ([1, 1, 1], [21_846, 21_845, 21_845]),
        ([0.7, 0.3], [45_875, 19_661]),
        ([7, 3], [45_875, 19_661]),
        ([0, 5, 0], [0, 65_536, 0]),
        ([65_535, 1], [65_535, 1]),
        ([2, 1, 1e-5], [43_691, 21_845, 0]),
    ],
)
def test_draws_of_a_round_by_largest_remainder(weights: list[float], counts: list[int]) -> None:
    names = [f"s{i}" for i in range(len(weights))]
    phase = Phase(0, dict(zip(names, weights, strict=True)))
    if any(w > 0 and n == 0 for w, n in zip(weights, counts, strict=True)):
        with pytest.raises(OrderError, match=r"source s2 has .* give it at least 1\.53e-05"):
            round_counts(phase, names=names)
    else:
        assert list(round_counts(phase, names=names)) == counts


def test_a_round_of_a_lane_holds_exactly_the_shares() -> None:
    mixture = mixture_of(Phase(0, {"s0": 0.7, "s1": 0.3}))
    for first in (1, 4 * ROUND_DRAWS + 3):
        numbers = first + 4 * np.arange(ROUND_DRAWS)
        source, _ = mixture.draw(numbers)
        assert np.bincount(source).tolist() == [45_875, 19_661]


def test_short_stretches_hold_the_shares_too() -> None:
    source, _ = mixture_of(Phase(0, {"s0": 0.75, "s1": 0.25})).draw(4 * np.arange(1000))
    every_four = np.add.reduceat(source, np.arange(0, 1000, 4))
    assert set(every_four.tolist()) == {1}


def test_counts_and_numbers_are_inverse_over_rounds_and_phases() -> None:
    phases = (Phase(0, {"s0": 1, "s1": 2}), Phase(999, {"s0": 1}), Phase(400_001, {"s1": 3}))
    mixture = mixture_of(*phases, lanes=3)
    numbers = np.r_[0:3000, 390_000:420_000, 2**61 : 2**61 + 50]
    source, count = mixture.draw(numbers)
    for s in range(2):
        mine = source == s
        back = mixture.number(s, lanes=numbers[mine] % 3, counts=count[mine])
        assert back.tolist() == numbers[mine].tolist()


def test_a_source_that_is_no_longer_drawn_has_no_further_numbers() -> None:
    mixture = mixture_of(Phase(0, {"s0": 1}), Phase(40, {"s1": 1}))
    lane, counts = np.zeros(3, dtype=np.int64), np.array([9, 10, 2**60])
    assert mixture.number(0, lanes=lane, counts=counts).tolist() == [36, -1, -1]
    assert mixture.number(1, lanes=lane, counts=counts).tolist() == [76, 80, -1]
    assert [mixture.counts_of(s, lane[:1]).tolist() for s in range(2)] == [[10], [2**62]]
    assert mixture.drawn_sources() == [0, 1]
    assert mixture.drawn_sources(40) == [1]


def test_hundred_sources_and_phases_open() -> None:
    weights = [{f"s{i}": 1 + (i + p) % 7 for i in range(100)} for p in range(20)]
    phases = [Phase(p * 1000, w) for p, w in enumerate(weights)]
    mixture = mixture_of(*phases, num_sources=100, lanes=8)
    assert mixture.counts_before(20_000).sum() == 20_000
