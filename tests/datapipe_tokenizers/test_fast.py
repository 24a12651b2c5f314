"""Reserved ids are found among all others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datapipe_tokenizers.fast import _runs, _widest_gap

numbers = st.integers(0, 40)


@pytest.mark.parametrize(
    ("reserved", "gap"),
    [
        ([50256], (0, 50255)),
        ([*range(128000, 128256)], (0, 127999)),
        ([0, 1, 2], (3, 50256)),
        ([0, 1, 500, 501, 128000], (502, 127999)),
    ],
    ids=["last", "many last", "first", "three places"],
)
def test_the_widest_gap_between_reserved_ids(reserved: list[int], gap: tuple[int, int]) -> None:
    num_ids = max(*reserved, 50256) + 1
    assert _widest_gap(_runs(reserved), num_ids=num_ids) == gap


@given(st.sets(numbers, min_size=1), st.integers(1, 50))
def test_no_reserved_id_lies_in_the_gap(reserved: set[int], num_ids: int) -> None:
    low, high = _widest_gap(_runs(reserved), num_ids=num_ids)
    assert reserved.isdisjoint(range(low, high + 1))


@given(st.sets(numbers, min_size=1))
def test_runs_are_the_numbers(reserved: set[int]) -> None:
    ids = [number for first, last in _runs(reserved) for number in range(first, last + 1)]
    assert np.array_equal(ids, sorted(reserved))
