"""Run segments: which samples a batch holds, and which batch, step and rank a sample belongs to.

A segment is a stretch of a run with one batch size and world size. Batches and steps count from
0 over the whole run; batch b is the (b - first_batch)-th group of B delivered samples from
first_sample on. So a run of any length is described by a few numbers and needs no log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from datapipe.errors import OrderError
from datapipe.order.permutation import Int64s
from datapipe.order.skips import Delivered
from datapipe.order.slots import check_divisible, lane_major, rank_slots, slot_of
from datapipe.order.spec import OrderSpec

__all__ = ["LASTS", "Batches", "Last", "Segment"]

Last = Literal["drop", "repeat"]
LASTS: tuple[Last, ...] = ("drop", "repeat")


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """A stretch of a run with one batch size and one world size."""

    global_batch_size: int
    "B: samples of a batch over all ranks; divisible by R."

    dp_world_size: int = 1
    "R: data-parallel ranks."

    first_sample: int = 0
    "Sample number at which the segment starts: next_sample of the state resumed from."

    first_batch: int = 0
    "Number of the first batch in the run."

    first_step: int = 0
    "Number of the optimizer step of the first batch."

    batches_per_step: int = 1
    "Batches of one optimizer step (gradient accumulation)."

    def __post_init__(self) -> None:
        """Raises OrderError for a batch that ranks can't share equally, or a number below 0."""
        check_divisible(self.global_batch_size, self.dp_world_size)
        if min(self.first_sample, self.first_batch, self.first_step) < 0:
            raise OrderError(f"{self} starts before 0: samples, batches and steps count from 0")
        if self.batches_per_step < 1:
            raise OrderError(f"{self.batches_per_step} batches a step: a step has at least one")

    def to_json(self) -> dict[str, Any]:
        """Returns the segment as JSON values."""
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Segment:
        """Returns the segment of its JSON values.

        Raises:
            OrderError: an unknown or missing key.
        """
        known = {field.name for field in fields(Segment)}
        if set(value) != known:
            raise OrderError(
                f"a run segment has the keys {', '.join(sorted(value))} in place of "
                f"{', '.join(sorted(known))}: the run record can't be read; restore it"
            )
        return Segment(**value)

    def step_of(self, batch: npt.ArrayLike) -> Int64s:
        """Returns the optimizer step of batches."""
        number = np.asarray(batch, dtype=np.int64) - self.first_batch
        return np.asarray(self.first_step + number // self.batches_per_step)

    def batches_of_step(self, step: int) -> range:
        """Returns the batches of an optimizer step.

        Raises:
            OrderError: the step lies before the segment.
        """
        if step < self.first_step:
            raise OrderError(
                f"step {step} lies before the segment, which starts at step {self.first_step}"
            )
        first = self.first_batch + (step - self.first_step) * self.batches_per_step
        return range(first, first + self.batches_per_step)


class Batches:
    """The batches of one segment of an order."""

    def __init__(
        self,
        segment: Segment,
        *,
        spec: OrderSpec,
        end_sample: int | None = None,
        last: Last = "drop",
    ) -> None:
        """Lays a segment over the delivered samples of a spec.

        Args:
            segment: batch size, world size and where they start.
            spec: lanes and skips of the order.
            end_sample: one after the last sample number of the stream (`epochs` times the samples
                of an epoch, or `end_of`); None: the stream has no end.
            last: whether a last, partial batch is left out or filled from the stream's start.
        """
        self.segment, self.end_sample, self.last = segment, end_sample, last
        self._lanes = spec.lanes
        self._delivered = Delivered(spec.skips)
        self._first = int(self._delivered.before(segment.first_sample))
        self._end = None if end_sample is None else int(self._delivered.before(end_sample))

    @property
    def num_batches(self) -> int | None:
        """Batches of the segment up to the stream's end, the same on every rank; None: no end."""
        if self._end is None:
            return None
        left = max(self._end - self._first, 0)
        return left // self._size if self.last == "drop" else -(-left // self._size)

    def samples(self, batch: int) -> Int64s:
        """Returns the sample numbers of a batch by slot: int64 [B], lane-major.

        Raises:
            OrderError: the batch lies outside the segment or behind the stream's end.
        """
        counts = self._counts_from(batch) + np.arange(self._size, dtype=np.int64)
        if self._end is not None:
            counts = np.where(counts < self._end, counts, (counts - self._end) % self._end)
        return lane_major(self._delivered.nth(counts), lanes=self._lanes)

    def many_rank_samples(self, batches: range, *, dp_rank: int) -> tuple[Int64s, Int64s]:
        """Returns `rank_samples` and `sample_end` of many batches: [batches, B / R] and [batches].

        Raises:
            OrderError: a batch lies outside the segment.
        """
        if batches[-1] == self._filled_batch():
            rows = [self.rank_samples(batch, dp_rank=dp_rank) for batch in batches]
            return np.stack(rows), np.array([self.sample_end(batch) for batch in batches])
        firsts = np.array([self._counts_from(batch) for batch in batches], dtype=np.int64)
        samples = self._delivered.nth(firsts[:, None] + np.arange(self._size, dtype=np.int64))
        ends = samples[:, -1] + 1
        if self._lanes > 1:  # the numbers ascend, so a stable sort by lane is lane-major
            slots = np.argsort(samples % self._lanes, axis=1, kind="stable")
            samples = np.take_along_axis(samples, slots, axis=1)
        per_rank = self._size // self.segment.dp_world_size
        return samples[:, dp_rank * per_rank : (dp_rank + 1) * per_rank], ends

    def rank_samples(self, batch: int, *, dp_rank: int) -> Int64s:
        """Returns the sample numbers of one rank's rows of a batch: int64 [B / R].

        Raises:
            OrderError: the batch lies outside the segment, or there is no such rank.
        """
        size = self.segment.dp_world_size
        return rank_slots(self.samples(batch), dp_rank=dp_rank, dp_world_size=size)

    def sample_end(self, batch: int) -> int:
        """Returns next_sample after a batch: where a state saved behind it goes on.

        Raises:
            OrderError: the batch lies outside the segment.
        """
        last = self._counts_from(batch) + self._size - 1
        if self._end is not None and last >= self._end:
            assert self.end_sample is not None
            return self.end_sample
        return int(self._delivered.nth(last)) + 1

    def fill(self, batch: int) -> Int64s:
        """Returns the sample numbers that a last batch repeats from the start, ascending.

        Raises:
            OrderError: the batch lies outside the segment.
        """
        first = self._counts_from(batch)
        if self._end is None or first + self._size <= self._end:
            return np.empty(0, dtype=np.int64)
        counts = np.arange(first + self._size - self._end, dtype=np.int64) % self._end
        return np.sort(self._delivered.nth(counts))

    def batch_of(self, samples: npt.ArrayLike) -> Int64s:
        """Returns the batch of sample numbers; -1: skipped, left out, or outside the segment.

        Where a last batch is filled from the start (`fill`), this is the first delivery.
        """
        numbers = np.atleast_1d(np.asarray(samples, dtype=np.int64))
        group = (self._delivered.before(numbers) - self._first) // self._size
        valid = self._delivered.holds(numbers) & (numbers >= self.segment.first_sample)
        if self.end_sample is not None:
            valid &= (numbers < self.end_sample) & (group < (self.num_batches or 0))
        return np.where(valid, group + self.segment.first_batch, -1)

    def rank_of(self, samples: npt.ArrayLike) -> Int64s:
        """Returns the data-parallel rank that gets sample numbers; -1 where `batch_of` is -1."""
        numbers = np.atleast_1d(np.asarray(samples, dtype=np.int64))
        batch = self.batch_of(numbers)
        group, index = np.divmod(self._delivered.before(numbers) - self._first, self._size)
        first_lane = (self._first + group * self._size) % self._lanes
        slot = slot_of(index, first_lane=first_lane, size=self._size, lanes=self._lanes)
        filled = self._filled_batch()
        if filled is not None:
            slots = self.samples(filled)
            for i in np.flatnonzero(batch == filled):
                slot[i] = np.flatnonzero(slots == numbers[i])[0]
        per_rank = self._size // self.segment.dp_world_size
        return np.where(batch < 0, -1, slot // per_rank)

    @property
    def _size(self) -> int:
        return self.segment.global_batch_size

    def _filled_batch(self) -> int | None:
        num = self.num_batches
        if self._end is None or not num or (self._end - self._first) // self._size == num:
            return None
        return self.segment.first_batch + num - 1

    def _counts_from(self, batch: int) -> int:
        """Returns the count, among delivered samples, of a batch's first sample."""
        index, num = batch - self.segment.first_batch, self.num_batches
        if index < 0 or (num is not None and index >= num):
            end = "on" if num is None else f"up to {self.segment.first_batch + num - 1}"
            raise OrderError(
                f"batch {batch} is outside the segment, which has {num or 'the'} batches from "
                f"{self.segment.first_batch} {end}"
            )
        return self._first + index * self._size
