"""Slots: which rank takes which samples of a batch.

The samples of a batch are put in lane-major order (by g mod L, then g) and cut into one run a
rank, so neighbouring ranks, which share a node, share lanes and so shards.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from datapipe.errors import OrderError
from datapipe.order.permutation import Int64s

__all__ = ["check_divisible", "lane_major", "rank_slots", "slot_of"]


def lane_major(samples: npt.ArrayLike, *, lanes: int) -> Int64s:
    """Returns the sample numbers of a batch by slot: sorted by (g mod L, g)."""
    numbers = np.asarray(samples, dtype=np.int64)
    return numbers[np.lexsort((numbers, numbers % lanes))]


def rank_slots(slots: Int64s, *, dp_rank: int, dp_world_size: int) -> Int64s:
    """Returns the slots of one data-parallel rank: the dp_rank-th of dp_world_size equal runs.

    Raises:
        OrderError: the slots can't be divided equally, or there is no such rank.
    """
    check_divisible(slots.size, dp_world_size)
    if not 0 <= dp_rank < dp_world_size:
        raise OrderError(f"there is no data-parallel rank {dp_rank} among {dp_world_size}")
    size = slots.size // dp_world_size
    return slots[dp_rank * size : (dp_rank + 1) * size]


def slot_of(index: npt.ArrayLike, *, first_lane: int | Int64s, size: int, lanes: int) -> Int64s:
    """Returns the slot of the index-th sample of a batch of `size`, in O(1) each.

    Args:
        index: position of the sample among the batch's in ascending order.
        first_lane: lane of the batch's first sample; lanes follow each other from there.
        size: B.
        lanes: L.
    """
    position = np.asarray(index, dtype=np.int64)
    lane = (first_lane + position) % lanes
    whole, rest = divmod(size, lanes)
    end = first_lane + rest
    plain = np.minimum(lane, np.minimum(end, lanes)) - first_lane
    wrapped = np.minimum(lane, np.maximum(end - lanes, 0))
    return np.asarray(lane * whole + np.maximum(plain, 0) + wrapped + position // lanes)


def check_divisible(global_batch_size: int, dp_world_size: int) -> None:
    """Raises OrderError unless every rank gets the same number of samples, at least one."""
    if global_batch_size < 1 or dp_world_size < 1 or global_batch_size % dp_world_size:
        raise OrderError(
            f"a global batch of {global_batch_size} samples can't be divided equally among "
            f"{dp_world_size} data-parallel ranks: ranks would get out of step; take a multiple "
            f"of {dp_world_size}"
        )
