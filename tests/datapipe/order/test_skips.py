from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datapipe.errors import OrderError
from datapipe.order import Delivered, rounded_skips


@pytest.mark.parametrize(
    ("ranges", "rounded"),
    [
        ([(0, 1)], ((0, 24),)),
        ([(24, 48)], ((24, 48),)),
        ([(23, 25)], ((0, 48),)),
        ([(30, 30)], ()),
        ([], ()),
    ],
)
def test_skips_are_rounded_outwards_to_batches_and_lanes(
    ranges: list[tuple[int, int]], rounded: tuple[tuple[int, int], ...]
) -> None:
    assert rounded_skips(ranges, global_batch_size=6, lanes=8) == rounded


def test_a_range_backwards_is_refused() -> None:
    with pytest.raises(OrderError, match=r"\[5, 4\) is no range"):
        rounded_skips([(5, 4)], global_batch_size=1, lanes=1)


@given(st.lists(st.integers(0, 60), unique=True, max_size=8).map(sorted))
def test_delivered_numbers_are_counted_around_skips(ends: list[int]) -> None:
    skips = list(zip(ends[::2], ends[1::2], strict=False))
    numbers = [g for g in range(100) if not any(first <= g < end for first, end in skips)]
    delivered = Delivered(skips)
    assert delivered.nth(range(len(numbers))).tolist() == numbers
    assert delivered.holds(range(100)).tolist() == [g in numbers for g in range(100)]
    below = [sum(n < g for n in numbers) for g in range(100)]
    assert delivered.before(range(100)).tolist() == below
