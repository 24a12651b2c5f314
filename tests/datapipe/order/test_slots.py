from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datapipe.errors import OrderError
from datapipe.order import lane_major, rank_slots
from datapipe.order.slots import slot_of


def test_slots_go_by_lane_then_number() -> None:
    assert lane_major(np.arange(10, 18), lanes=4).tolist() == [12, 16, 13, 17, 10, 14, 11, 15]


def test_ranks_take_equal_runs_of_slots() -> None:
    slots = lane_major(np.arange(8), lanes=4)
    runs = [rank_slots(slots, dp_rank=r, dp_world_size=4).tolist() for r in range(4)]
    assert runs == [[0, 4], [1, 5], [2, 6], [3, 7]]


@pytest.mark.parametrize(
    ("rank", "world", "message"),
    [(0, 3, "8 samples can't be divided equally among 3"), (4, 4, "no data-parallel rank 4")],
)
def test_unequal_shares_are_refused(rank: int, world: int, message: str) -> None:
    with pytest.raises(OrderError, match=message):
        rank_slots(np.arange(8), dp_rank=rank, dp_world_size=world)


@given(st.integers(0, 200), st.integers(1, 40), st.integers(1, 20))
def test_slot_of_is_the_position_in_lane_major_order(first: int, size: int, lanes: int) -> None:
    numbers = first + np.arange(size)
    slots = slot_of(np.arange(size), first_lane=first % lanes, size=size, lanes=lanes)
    assert lane_major(numbers, lanes=lanes)[slots].tolist() == numbers.tolist()
