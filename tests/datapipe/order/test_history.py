from __future__ import annotations

import numpy as np
import pytest

from datapipe.order import Batches, History, OrderSource, OrderSpec, Planned, Segment


def spec(*skips: tuple[int, int], lanes: int = 4) -> OrderSpec:
    source = OrderSource(name="web", order_digest="a" * 64, shards_to=4)
    return OrderSpec(sources=(source,), seq_len=8, lanes=lanes, skips=skips)


def planned(
    batch: int,
    sample: int,
    *,
    step: int | None = None,
    size: int = 8,
    per_step: int = 1,
    end: int | None = 800,
    next_batch: int | None = None,
    saved: int | None = None,
    skips: tuple[tuple[int, int], ...] = (),
    last: str = "drop",
) -> Planned:
    segment = Segment(
        global_batch_size=size,
        first_batch=batch,
        first_sample=sample,
        first_step=batch if step is None else step,
        batches_per_step=per_step,
    )
    return Planned(
        segment=segment,
        spec=spec(*skips),
        end_sample=end,
        next_batch=next_batch,
        saved_sample=saved,
        last=last,  # type: ignore[arg-type]
    )


Span = tuple[int, int, int | None, int]


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        pytest.param([planned(0, 0)], [(0, 0, 100, 0)], id="runs still, or was killed"),
        pytest.param([planned(0, 0, next_batch=7)], [(0, 0, 7, 7)], id="stopped"),
        pytest.param([planned(0, 0, end=None)], [(0, 0, None, 0)], id="no end"),
        pytest.param([planned(0, 0, saved=24)], [(0, 0, 100, 3)], id="killed after a state"),
        pytest.param([planned(2, 16, saved=31)], [(0, 2, 100, 3)], id="inside a batch"),
        pytest.param([planned(2, 16, saved=8)], [(0, 2, 100, 2)], id="a state of before"),
        pytest.param([planned(0, 0, saved=24, end=None)], [(0, 0, None, 3)], id="saved, no end"),
        pytest.param([planned(0, 0, saved=24, next_batch=7)], [(0, 0, 7, 7)], id="saved, stopped"),
        pytest.param([planned(0, 0, saved=800)], [(0, 0, 100, 100)], id="saved at the end"),
        pytest.param(
            [planned(0, 0, end=12, last="repeat", saved=12)], [(0, 0, 2, 2)], id="saved, filled"
        ),
        pytest.param(
            [planned(0, 0, saved=32, skips=((8, 24),))], [(0, 0, 98, 2)], id="saved behind a skip"
        ),
        pytest.param(
            [planned(0, 0, saved=80), planned(5, 40)],
            [(0, 0, 5, 5), (1, 5, 100, 5)],
            id="saved, then resumed from before",
        ),
        pytest.param([planned(0, 0), planned(5, 40)], [(0, 0, 5, 5), (1, 5, 100, 5)], id="resumed"),
        pytest.param(
            [planned(0, 0, next_batch=20), planned(5, 40, next_batch=9), planned(9, 72, end=None)],
            [(0, 0, 5, 5), (1, 5, 9, 9), (2, 9, None, 9)],
            id="resumed from before the end, then from the end",
        ),
        pytest.param(
            [planned(0, 0), planned(9, 72), planned(4, 32)],
            [(0, 0, 4, 4), (2, 4, 100, 4)],
            id="an older state takes the place of all behind it",
        ),
        pytest.param([planned(0, 0), planned(0, 0)], [(1, 0, 100, 0)], id="begun again"),
    ],
)
def test_each_segment_counts_for_one_stretch(segments: list[Planned], expected: list[Span]) -> None:
    stretches = History(segments).stretches
    assert [(s.index, s.first, s.end, s.certain) for s in stretches] == expected


@pytest.mark.parametrize(
    ("segments", "sample", "expected"),
    [
        pytest.param([planned(0, 0)], 0, (0, 0), id="beginning"),
        pytest.param([planned(0, 0)], 40, (5, 5), id="border"),
        pytest.param([planned(0, 0)], 41, None, id="inside a batch"),
        pytest.param([planned(0, 0)], 800, (100, 100), id="end"),
        pytest.param([planned(0, 0)], 808, None, id="behind the end"),
        pytest.param([planned(0, 0, per_step=4)], 48, (6, 1), id="inside a step"),
        pytest.param([planned(0, 0), planned(5, 40, size=2)], 44, (7, 7), id="later segment"),
        pytest.param([planned(0, 0), planned(5, 40, size=2)], 24, (3, 3), id="earlier segment"),
        pytest.param([planned(0, 0, skips=((8, 24),))], 32, (2, 2), id="over a skip"),
        pytest.param([planned(0, 0, end=12, last="repeat")], 12, (2, 2), id="filled last batch"),
        pytest.param([planned(0, 0, end=12)], 12, None, id="last batch left out"),
    ],
)
def test_a_run_goes_on_where_a_sample_number_is_a_border(
    segments: list[Planned], sample: int, expected: tuple[int, int] | None
) -> None:
    assert History(segments).place_of(sample) == expected


def test_a_step_begun_anew_has_the_batches_of_both() -> None:
    history = History([planned(0, 0, per_step=4), planned(6, 48, step=1, per_step=4)])
    assert history.batches_of_step(1) == [4, 5, 6, 7, 8, 9]
    assert history.batches_of_step(2) == [10, 11, 12, 13]
    assert history.batches_of_step(500) == []


@pytest.mark.parametrize("lanes", [1, 4, 16])
@pytest.mark.parametrize("last", ["drop", "repeat"])
@pytest.mark.parametrize("skips", [(), ((16, 48),)], ids=["whole", "skips"])
def test_many_batches_at_once_are_the_same(
    lanes: int, last: str, skips: tuple[tuple[int, int], ...]
) -> None:
    segment = Segment(global_batch_size=6, dp_world_size=3, first_sample=3, first_batch=10)
    batches = Batches(
        segment,
        spec=spec(*skips, lanes=lanes),
        end_sample=101,
        last=last,  # type: ignore[arg-type]
    )
    assert batches.num_batches is not None
    numbers = range(10, 10 + batches.num_batches)
    for wanted in (numbers, numbers[::3], numbers[:1]):
        samples, ends = batches.many_rank_samples(wanted, dp_rank=1)
        one = np.stack([batches.rank_samples(number, dp_rank=1) for number in wanted])
        assert samples.tolist() == one.tolist()
        assert ends.tolist() == [batches.sample_end(number) for number in wanted]
