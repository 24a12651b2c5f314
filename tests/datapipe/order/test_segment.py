from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.errors import OrderError
from datapipe.order import Batches, Last, OrderSource, OrderSpec, Segment

SOURCE = OrderSource(name="a", order_digest="0" * 64, shards_to=1)


@dataclass
class Run:
    """A segment and its order, and what it delivers by the plain rule."""

    segment: Segment
    spec: OrderSpec
    end: int
    last: Last

    def batches(self) -> Batches:
        return Batches(self.segment, spec=self.spec, end_sample=self.end, last=self.last)

    def plain(self) -> list[list[int]]:
        size, skips = self.segment.global_batch_size, self.spec.skips
        every = [g for g in range(self.end) if not any(a <= g < b for a, b in skips)]
        left = [g for g in every if g >= self.segment.first_sample]
        groups = [left[i : i + size] for i in range(0, len(left), size)]
        if groups and len(groups[-1]) < size:
            missing = size - len(groups[-1])
            fill = [every[i % len(every)] for i in range(missing)]
            groups = [*groups[:-1], groups[-1] + fill] if self.last == "repeat" else groups[:-1]
        lanes = self.spec.lanes
        return [sorted(group, key=lambda g: (g % lanes, g)) for group in groups]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    lanes, world = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    ends = sorted(draw(st.sets(st.integers(0, 30), max_size=6)))
    spec = OrderSpec(
        sources=(SOURCE,),
        seq_len=8,
        lanes=lanes,
        skips=tuple((a * lanes, b * lanes) for a, b in zip(ends[::2], ends[1::2], strict=False)),
    )
    segment = Segment(
        global_batch_size=world * draw(st.integers(1, 6)),
        dp_world_size=world,
        first_sample=draw(st.integers(0, 60)),
        first_batch=draw(st.integers(0, 9)),
    )
    last: Last = draw(st.sampled_from(("drop", "repeat")))
    return Run(segment, spec, draw(st.integers(1, 200)), last)


@settings(deadline=None)
@given(runs())
def test_batches_are_groups_of_delivered_samples(run: Run) -> None:
    batches, plain, first = run.batches(), run.plain(), run.segment.first_batch
    assert batches.num_batches == len(plain)
    numbers = range(first, first + len(plain))
    assert [batches.samples(b).tolist() for b in numbers] == plain
    size = run.segment.global_batch_size
    for b, samples in zip(numbers, plain, strict=True):
        parts = [batches.rank_samples(b, dp_rank=r) for r in range(run.segment.dp_world_size)]
        assert np.concatenate(parts).tolist() == samples
        own = len(samples) - batches.fill(b).size
        assert (batches.fill(b).size == 0) or (b == numbers[-1] and 0 < own < size)


@settings(deadline=None)
@given(runs())
def test_many_batches_at_once_are_the_same(run: Run) -> None:
    batches, first = run.batches(), run.segment.first_batch
    numbers = range(first, first + len(run.plain()))
    for rank in range(run.segment.dp_world_size if numbers else 0):
        rows, ends = batches.many_rank_samples(numbers, dp_rank=rank)
        alone = [batches.rank_samples(b, dp_rank=rank).tolist() for b in numbers]
        assert rows.tolist() == alone
        assert ends.tolist() == [batches.sample_end(b) for b in numbers]


@settings(deadline=None)
@given(runs())
def test_batch_and_rank_of_a_sample_are_where_it_is_delivered(run: Run) -> None:
    batches, first = run.batches(), run.segment.first_batch
    found, ranks = batches.batch_of(range(210)), batches.rank_of(range(210))
    per_rank = run.segment.global_batch_size // run.segment.dp_world_size
    plain = run.plain()
    for g in range(210):
        groups = [i for i, group in enumerate(plain) if g in group]
        if g < run.segment.first_sample or g >= run.end:
            groups = []
        assert found[g] == (groups[0] + first if groups else -1)
        slot = plain[groups[0]].index(g) if groups else -1
        assert ranks[g] == (slot // per_rank if groups else -1)


@settings(deadline=None)
@given(runs())
def test_resuming_behind_any_batch_continues_exactly(run: Run) -> None:
    batches, single = run.batches(), replace(run.segment, global_batch_size=1, dp_world_size=1)
    left = {g for group in replace(run, segment=single).plain() for g in group}
    for b in range(run.segment.first_batch, run.segment.first_batch + len(run.plain())):
        left -= set(batches.samples(b).tolist())
        rest = Segment(global_batch_size=1, first_sample=batches.sample_end(b))
        after = Batches(rest, spec=run.spec, end_sample=run.end)
        assert {int(after.samples(i)[0]) for i in range(after.num_batches or 0)} == left


def test_steps_count_batches_from_where_the_segment_starts() -> None:
    segment = Segment(global_batch_size=8, first_batch=10, first_step=5, batches_per_step=4)
    assert segment.step_of([10, 13, 14, 21]).tolist() == [5, 5, 6, 7]
    assert list(segment.batches_of_step(6)) == [14, 15, 16, 17]
    with pytest.raises(OrderError, match="step 4 lies before the segment"):
        segment.batches_of_step(4)


def test_a_stream_without_end_has_any_batch() -> None:
    batches = Batches(Segment(global_batch_size=4), spec=_spec(lanes=2))
    assert batches.num_batches is None
    assert batches.samples(10**12).tolist() == [4 * 10**12 + i for i in (0, 2, 1, 3)]
    assert batches.sample_end(10**12) == 4 * 10**12 + 4


def test_a_batch_larger_than_the_stream_repeats_it() -> None:
    batches = Batches(
        Segment(global_batch_size=8), spec=_spec(lanes=1), end_sample=3, last="repeat"
    )
    assert batches.num_batches == 1
    assert batches.samples(0).tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    assert batches.fill(0).tolist() == [0, 0, 1, 1, 2]
    assert batches.sample_end(0) == 3


def test_batches_outside_are_refused() -> None:
    segment = Segment(global_batch_size=4, first_batch=2)
    batches = Batches(segment, spec=_spec(lanes=2), end_sample=9)
    for batch in (1, 4):
        with pytest.raises(
            OrderError, match=f"batch {batch} is outside .* 2 batches from 2 up to 3"
        ):
            batches.samples(batch)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dp_world_size": 3}, "8 samples can't be divided equally among 3"),
        ({"dp_world_size": 0}, "among 0"),
        ({"first_sample": -1}, "starts before 0"),
        ({"batches_per_step": 0}, "0 batches a step"),
    ],
)
def test_a_segment_that_cannot_be_is_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(OrderError, match=message):
        Segment(**{"global_batch_size": 8, **changes})


def test_a_segment_comes_back_from_json() -> None:
    segment = Segment(global_batch_size=8, dp_world_size=2, first_sample=16, first_batch=2)
    assert segment.to_json() == {
        "global_batch_size": 8,
        "dp_world_size": 2,
        "first_sample": 16,
        "first_batch": 2,
        "first_step": 0,
        "batches_per_step": 1,
    }
    assert Segment.from_json(segment.to_json()) == segment
    with pytest.raises(OrderError, match="can't be read"):
        Segment.from_json({"global_batch_size": 8})


def _spec(lanes: int) -> OrderSpec:
    return OrderSpec(sources=(SOURCE,), seq_len=8, lanes=lanes)
