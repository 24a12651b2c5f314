"""The order against a slow twin: plain Python, one sample at a time, written from docs/order.md."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from datapipe.order import Order, OrderSource, OrderSpec, Phase, Tail

K = 65_536
M64 = (1 << 64) - 1

Place = tuple[int, int, int, int, int]  # source, shard, sample, epoch, count


def mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & M64
    return x ^ (x >> 31)


def key(seed: int, *parts: int) -> int:
    k = seed
    for i, a in enumerate(parts):
        k = mix(k ^ mix((a + 0x9E3779B97F4A7C15 * (i + 1)) & M64))
    return k


def permuted(x: int, m: int, k: int) -> int:
    bits = 0
    while 2**bits < m:
        bits += 2
    half = 2 ** (bits // 2)
    while True:
        a, b = x // half, x % half
        for i in range(8):
            a, b = b, a ^ (mix(b ^ mix((k + i) & M64)) % half)
        x = a * half + b
        if x < m:
            return x


@cache
def pattern(counts: tuple[int, ...]) -> list[int]:
    scale = math.lcm(*(2 * n for n in counts if n))
    pairs = [((2 * j + 1) * (scale // (2 * n)), s) for s, n in enumerate(counts) for j in range(n)]
    return [s for _, s in sorted(pairs)]


def largest_remainder(weights: tuple[int, ...]) -> tuple[int, ...]:
    total = sum(weights)
    counts = [w * K // total for w in weights]
    by_rest = sorted(range(len(weights)), key=lambda s: (-(weights[s] * K % total), s))
    for s in by_rest[: K - sum(counts)]:
        counts[s] += 1
    return tuple(counts)


@dataclass
class Twin:
    tokens: list[list[int]]
    seq_len: int
    seed: int
    lanes: int
    window_shards: int
    tail: Tail
    phases: list[tuple[int, tuple[int, ...]]]
    drawn: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def spec(self) -> OrderSpec:
        names = [f"s{i}" for i in range(len(self.tokens))]
        pairs = zip(names, self.tokens, strict=True)
        return OrderSpec(
            sources=tuple(
                OrderSource(name=name, order_digest="0" * 64, shards_to=len(tokens))
                for name, tokens in pairs
            ),
            seq_len=self.seq_len,
            seed=self.seed,
            lanes=self.lanes,
            window_shards=self.window_shards,
            tail=self.tail,
            phases=tuple(Phase(g, dict(zip(names, w, strict=True))) for g, w in self.phases),
        )

    def open(self) -> Order:
        return Order.open(self.spec(), {f"s{i}": t for i, t in enumerate(self.tokens)})

    def counts(self, source: int) -> list[int]:
        up = self.seq_len - 1 if self.tail == "pad" else 0
        return [(max(n - 1, 0) + up) // self.seq_len for n in self.tokens[source]]

    def draw(self, lane: int, time: int) -> tuple[int, int]:
        """All draws of the lane, one after the other from the start."""
        if len(self.tokens) == 1:
            return 0, time
        draws = self.drawn.setdefault(lane, [])
        seen = [sum(1 for s, _ in draws if s == source) for source in range(len(self.tokens))]
        while len(draws) <= time:
            source = self.source_at(lane, len(draws))
            draws.append((source, seen[source]))
            seen[source] += 1
        return draws[time]

    def source_at(self, lane: int, time: int) -> int:
        g = time * self.lanes + lane
        phase = max(p for p, (start, _) in enumerate(self.phases) if start <= g)
        begin = max(0, math.ceil((self.phases[phase][0] - lane) / self.lanes))
        b, r = (time - begin) // K, (time - begin) % K
        h = key(self.seed, 2, phase, lane, b) % K
        return pattern(largest_remainder(self.phases[phase][1]))[(h + r) % K]

    def locate(self, g: int) -> Place:
        lane, time = g % self.lanes, g // self.lanes
        source, count = self.draw(lane, time)
        drawn, total = count * self.lanes + lane, sum(self.counts(source))
        epoch, x = drawn // total, drawn % total
        shard, sample = self.epoch(source, epoch)[x % self.lanes][x // self.lanes]
        return source, shard, sample, epoch, count

    def epoch(self, source: int, epoch: int) -> list[list[tuple[int, int]]]:
        """The samples of an epoch by virtual lane, in the order they are read."""
        counts = self.counts(source)
        num = len(counts)
        shard_key = key(self.seed, 1, source, epoch)
        order = [permuted(p, num, shard_key) for p in range(num)]
        flat = [(p, shard, i) for p, shard in enumerate(order) for i in range(counts[shard])]
        lanes, begin = [], 0
        for v in range(self.lanes):
            size = len(flat) // self.lanes + (v < len(flat) % self.lanes)
            lanes.append(self.windows(source, epoch, v, flat[begin : begin + size]))
            begin += size
        return lanes

    def windows(
        self, source: int, epoch: int, v: int, lane: list[tuple[int, int, int]]
    ) -> list[tuple[int, int]]:
        windows: dict[int, list[tuple[int, int]]] = {}
        first_turn = 1 + mix(v) % self.window_shards
        for position, shard, i in lane:
            ends = position - lane[0][0]  # shard ends passed since the range began
            number = 0
            while ends >= first_turn + number * self.window_shards:
                number += 1
            windows.setdefault(number, []).append((shard, i))
        read = []
        for number, samples in windows.items():
            k = key(self.seed, 3, source, epoch, v, number)
            read += [samples[permuted(j, len(samples), k)] for j in range(len(samples))]
        return read


def located(order: Order, numbers: list[int]) -> list[Place]:
    places = order.locate(numbers)
    columns = (places.source, places.shard, places.sample, places.epoch, places.count)
    return list(zip(*(column.tolist() for column in columns), strict=True))


tokens = st.lists(st.integers(0, 40), min_size=1, max_size=9)


@st.composite
def twins(draw: st.DrawFn, max_sources: int = 3) -> Twin:
    num = draw(st.integers(1, max_sources))
    starts = sorted(draw(st.sets(st.integers(1, 250), max_size=3)))
    weights = st.tuples(*[st.integers(0, 5)] * num).filter(any)
    twin = Twin(
        tokens=draw(st.lists(tokens, min_size=num, max_size=num)),
        seq_len=draw(st.integers(1, 9)),
        seed=draw(st.integers(0, 2**53 - 1)),
        lanes=draw(st.integers(1, 8)),
        window_shards=draw(st.integers(1, 4)),
        tail=draw(st.sampled_from(["pad", "drop"])),
        phases=[(start, draw(weights)) for start in [0, *starts]],
    )
    assume(all(sum(twin.counts(source)) for source in range(num)))
    return twin


@settings(max_examples=60, deadline=None)
@given(twin=twins(), numbers=st.lists(st.integers(0, 500), min_size=1, max_size=12))
def test_locate_equals_the_twin(twin: Twin, numbers: list[int]) -> None:
    assert located(twin.open(), numbers) == [twin.locate(g) for g in numbers]


@settings(max_examples=60, deadline=None)
@given(twin=twins(1), numbers=st.lists(st.integers(0, 2**62 - 1), min_size=1, max_size=6))
def test_locate_equals_the_twin_in_far_epochs(twin: Twin, numbers: list[int]) -> None:
    order = twin.open()
    places = order.locate(numbers)
    assert located(order, numbers) == [twin.locate(g) for g in numbers]
    back = order.inverse(places.source, places.shard, places.sample, places.epoch)
    assert back.tolist() == numbers


def test_locate_equals_the_twin_over_rounds_and_phases() -> None:
    twin = Twin([[90, 17], [33]], 4, 5, 2, 1, "pad", [(0, (1, 2)), (140_001, (0, 1))])
    twin.phases.append((290_002, (3, 1)))
    numbers = [*range(131_060, 131_090), *range(139_990, 140_020), *range(289_990, 290_010)]
    assert located(twin.open(), numbers) == [twin.locate(g) for g in numbers]


@settings(max_examples=60, deadline=None)
@given(twin=twins())
def test_inverse_gives_back_every_number(twin: Twin) -> None:
    order, numbers = twin.open(), np.arange(300)
    places = order.locate(numbers)
    back = order.inverse(places.source, places.shard, places.sample, places.epoch)
    assert back.tolist() == numbers.tolist()


@settings(max_examples=60, deadline=None)
@given(twin=twins(1), epoch=st.integers(0, 2**40))
def test_every_epoch_visits_every_sample_once(twin: Twin, epoch: int) -> None:
    order = twin.open()
    total = order.num_samples["s0"]
    places = order.locate(np.arange(epoch * total, (epoch + 1) * total))
    expected = [(shard, i) for shard, n in enumerate(twin.counts(0)) for i in range(n)]
    pairs = zip(places.shard.tolist(), places.sample.tolist(), strict=True)
    assert sorted(pairs) == expected
    assert set(places.epoch.tolist()) == {epoch}


@settings(max_examples=40, deadline=None)
@given(twin=twins())
def test_in_every_lane_counts_of_a_source_are_consecutive(twin: Twin) -> None:
    order, numbers = twin.open(), np.arange(400)
    places = order.locate(numbers)
    for lane in range(twin.lanes):
        for source in range(len(twin.tokens)):
            counts = places.count[(numbers % twin.lanes == lane) & (places.source == source)]
            assert counts.tolist() == list(range(counts.size))


@settings(max_examples=40, deadline=None)
@given(twin=twins(), until=st.integers(0, 400))
def test_drawn_and_begun_epochs_are_those_of_the_samples_before(twin: Twin, until: int) -> None:
    order = twin.open()
    places = order.locate(np.arange(until))
    for source in range(len(twin.tokens)):
        drawn = places.epoch[places.source == source]
        assert order.drawn_before(until)[source] == drawn.size
        assert order.epochs_before(until)[source] == (drawn.max() + 1 if drawn.size else 0)


ONE = Twin([[100, 0, 57, 1, 230, 64, 9]], 8, 7, 4, 2, "pad", [(0, (1,))])
MIX = Twin(
    [[100, 57, 230], [64, 9, 2, 300]], 8, 2**53 - 1, 3, 2, "drop", [(0, (3, 1)), (50, (1, 1))]
)
# change only with a spec version
GOLDEN: list[tuple[Twin, int, Place]] = [
    (ONE, 0, (0, 4, 14, 0, 0)),
    (ONE, 1, (0, 4, 15, 0, 0)),
    (ONE, 2, (0, 2, 1, 0, 0)),
    (ONE, 3, (0, 0, 7, 0, 0)),
    (ONE, 17, (0, 4, 21, 0, 4)),
    (ONE, 59, (0, 0, 3, 1, 14)),
    (ONE, 60, (0, 4, 7, 1, 15)),
    (ONE, 61, (0, 4, 24, 1, 15)),
    (ONE, 200, (0, 4, 9, 3, 50)),
    (ONE, 1000007, (0, 0, 9, 17241, 250001)),
    (ONE, 1099511627781, (0, 4, 18, 18957097030, 274877906945)),
    (ONE, 4611686018427387903, (0, 4, 6, 79511827903920481, 1152921504606846975)),
    (MIX, 0, (0, 1, 5, 0, 0)),
    (MIX, 1, (1, 3, 21, 0, 0)),
    (MIX, 2, (0, 2, 25, 0, 0)),
    (MIX, 3, (1, 1, 0, 0, 0)),
    (MIX, 48, (0, 2, 8, 0, 12)),
    (MIX, 49, (1, 3, 20, 0, 4)),
    (MIX, 50, (0, 0, 2, 0, 12)),
    (MIX, 51, (1, 0, 6, 0, 4)),
    (MIX, 52, (1, 3, 8, 0, 5)),
    (MIX, 100, (1, 3, 10, 0, 13)),
    (MIX, 5000, (0, 2, 20, 53, 837)),
    (MIX, 200000, (1, 1, 0, 2221, 33329)),
]


@pytest.mark.parametrize(("twin", "number", "place"), GOLDEN)
def test_golden_places(twin: Twin, number: int, place: Place) -> None:
    assert located(twin.open(), [number]) == [place]
    assert twin.locate(number) == place
