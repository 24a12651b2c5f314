"""Skips: ranges of sample numbers that are never delivered; nothing is renumbered.

Ends are multiples of the number of lanes, so the delivered samples go round the lanes in step
whatever is skipped: the k-th delivered sample lies in lane k mod L.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from datapipe.errors import OrderError
from datapipe.order.permutation import Int64s

__all__ = ["Delivered", "rounded_skips"]


def rounded_skips(
    ranges: Iterable[tuple[int, int]], *, global_batch_size: int, lanes: int
) -> tuple[tuple[int, int], ...]:
    """Returns ranges [g0, g1) of sample numbers rounded outwards to multiples of lcm(B, L).

    So whole batches are skipped, as those who count in steps expect. Empty ranges are left out.

    Args:
        ranges: what must not be delivered.
        global_batch_size: B of the run at the time; the spec keeps the rounded range.
        lanes: L of the spec.

    Raises:
        OrderError: a range that ends before it starts, or starts below 0.
    """
    unit = math.lcm(global_batch_size, lanes)
    rounded: list[tuple[int, int]] = []
    for first, end in ranges:
        if not 0 <= first <= end:
            raise OrderError(f"[{first}, {end}) is no range of sample numbers: it can't be skipped")
        if first < end:
            rounded.append((first // unit * unit, -(-end // unit) * unit))
    return tuple(rounded)


class Delivered:
    """Delivered sample numbers, counted 0, 1, 2, ...: number <-> count, in O(log skips)."""

    def __init__(self, skips: Sequence[tuple[int, int]]) -> None:
        """Takes the skips of a spec: sorted, apart from each other."""
        table = np.array(skips, dtype=np.int64).reshape(-1, 2)
        self._first, self._end = table[:, 0].copy(), table[:, 1].copy()
        lengths = self._end - self._first
        self._skipped = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self._count_at_first = self._first - self._skipped[:-1]

    def before(self, samples: npt.ArrayLike) -> Int64s:
        """Returns how many delivered numbers lie below each sample number."""
        numbers = np.asarray(samples, dtype=np.int64)
        num = np.searchsorted(self._end, numbers, side="right")
        if not self._first.size:
            return numbers.copy()
        first = self._first[np.minimum(num, self._first.size - 1)]
        inside = np.where(num < self._first.size, np.maximum(numbers - first, 0), 0)
        return np.asarray(numbers - self._skipped[num] - inside)

    def nth(self, counts: npt.ArrayLike) -> Int64s:
        """Returns the count-th delivered sample number, from 0."""
        wanted = np.asarray(counts, dtype=np.int64)
        passed = np.searchsorted(self._count_at_first, wanted, side="right")
        return np.asarray(wanted + self._skipped[passed])

    def holds(self, samples: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Returns whether each sample number is delivered."""
        numbers = np.asarray(samples, dtype=np.int64)
        num = np.searchsorted(self._end, numbers, side="right")
        starts = np.append(self._first, np.iinfo(np.int64).max)
        return np.asarray(numbers < starts[num])
