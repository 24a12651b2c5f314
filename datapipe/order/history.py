"""The history of a run: its segments laid over each other, as the run really went.

A later segment takes the place of earlier ones from its first batch on, so each segment counts for
one stretch of batches. Where a run was resumed, every batch before was delivered: the state that
it resumed from says so, as does a state that was noted when it was saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from datapipe.order.segment import Batches, Last, Segment
from datapipe.order.skips import Delivered
from datapipe.order.spec import OrderSpec

__all__ = ["History", "Planned", "SegmentRecord", "Stretch"]


class SegmentRecord(Protocol):
    """What a run record says of a segment; whoever keeps records has a class like this."""

    @property
    def first_batch(self) -> int:
        """See `Segment`."""

    @property
    def first_step(self) -> int:
        """See `Segment`."""

    @property
    def first_sample(self) -> int:
        """See `Segment`."""

    @property
    def global_batch_size(self) -> int:
        """See `Segment`."""

    @property
    def dp_world_size(self) -> int:
        """See `Segment`."""

    @property
    def batches_per_step(self) -> int:
        """See `Segment`."""

    @property
    def end_sample(self) -> int | None:
        """See `Planned`."""

    @property
    def last(self) -> Last:
        """See `Batches`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """A segment as it was begun."""

    segment: Segment
    spec: OrderSpec
    end_sample: int | None = None
    "One after the last sample number of the stream; None: it has no end."
    last: Last = "drop"
    next_batch: int | None = None
    "One after the last batch delivered; None: not known, it runs still or was killed."
    saved_sample: int | None = None
    "next_sample of a state of the segment: what ends at or below it was delivered."

    @classmethod
    def of(
        cls,
        record: SegmentRecord,
        *,
        spec: OrderSpec,
        next_batch: int | None,
        saved_sample: int | None,
    ) -> Planned:
        """Returns what a run record says of a segment.

        Raises:
            OrderError: it can't be a segment.
        """
        segment = Segment(
            global_batch_size=record.global_batch_size,
            dp_world_size=record.dp_world_size,
            first_sample=record.first_sample,
            first_batch=record.first_batch,
            first_step=record.first_step,
            batches_per_step=record.batches_per_step,
        )
        return cls(
            segment=segment,
            spec=spec,
            end_sample=record.end_sample,
            last=record.last,
            next_batch=next_batch,
            saved_sample=saved_sample,
        )

    def batches(self) -> Batches:
        """Returns the segment's batches."""
        return Batches(self.segment, spec=self.spec, end_sample=self.end_sample, last=self.last)

    def batch_at(self, sample: int) -> tuple[int, bool]:
        """Returns the batch that has, or would have, a sample number, and whether it begins there.

        So every earlier batch of the segment ends at or below the number. Numbers are from
        first_sample on.
        """
        delivered = Delivered(self.spec.skips)
        count = int(delivered.before(sample) - delivered.before(self.segment.first_sample))
        index, rest = divmod(count, self.segment.global_batch_size)
        is_filled = rest > 0 and self.last == "repeat" and sample == self.end_sample
        return self.segment.first_batch + index + is_filled, rest == 0 or is_filled


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """The batches of a run that one segment counts for."""

    index: int
    "Of the segment, in the order they were begun."
    batches: Batches
    first: int
    "First batch."
    end: int | None
    "One after the last batch; None: the segment has no end and runs still, or was killed."
    certain: int
    "Batches below it were delivered; those from it up to the end may have been."

    def holds(self, batch: int) -> bool:
        """Returns whether a batch is in the stretch."""
        return self.first <= batch and (self.end is None or batch < self.end)


class History:
    """The stretches of a run."""

    def __init__(self, planned: Sequence[Planned]) -> None:
        """Takes all segments in the order they were begun."""
        self.planned = list(planned)
        self.stretches: list[Stretch] = []
        taken: int | None = None  # first batch of what was begun later
        for index in reversed(range(len(self.planned))):
            stretch = _stretch(self.planned[index], index=index, taken=taken)
            if stretch.end is None or stretch.first < stretch.end:
                self.stretches.insert(0, stretch)
            first = self.planned[index].segment.first_batch
            taken = first if taken is None else min(taken, first)

    def stretch_of(self, batch: int) -> Stretch | None:
        """Returns the stretch that holds a batch, None where there is none."""
        return next((stretch for stretch in self.stretches if stretch.holds(batch)), None)

    def batches_of_step(self, step: int) -> list[int]:
        """Returns the batches of an optimizer step, ascending; none where it has none.

        A step that was broken off and begun anew has the batches of both.
        """
        found: list[int] = []
        for stretch in self.stretches:
            if step >= stretch.batches.segment.first_step:
                planned = stretch.batches.segment.batches_of_step(step)
                found += [batch for batch in planned if stretch.holds(batch)]
        return found

    def place_of(self, next_sample: int) -> tuple[int, int] | None:
        """Returns batch and step with which a run goes on at a sample number.

        None where the number is no border of batches of this run. Inside a step, the step is
        begun anew.
        """
        for stretch in reversed(self.stretches):
            batch = _batch_at(stretch, self.planned[stretch.index], next_sample)
            if batch is not None:
                return batch, int(stretch.batches.segment.step_of(batch))
        return None


def _stretch(planned: Planned, *, index: int, taken: int | None) -> Stretch:
    batches, first = planned.batches(), planned.segment.first_batch
    num = batches.num_batches
    ends = [None if num is None else first + num, planned.next_batch, taken]
    known = [end for end in ends if end is not None]
    end = min(known) if known else None
    # A resume proves what was before it, as do the recorded end and a state that was saved.
    proofs = [planned.next_batch, taken, _saved_batch(planned)]
    certain = max([first, *(proof for proof in proofs if proof is not None)])
    return Stretch(
        index=index,
        batches=batches,
        first=first,
        end=end,
        certain=certain if end is None else min(certain, end),
    )


def _saved_batch(planned: Planned) -> int | None:
    sample = planned.saved_sample
    if sample is None or sample < planned.segment.first_sample:
        return None
    return planned.batch_at(sample)[0]


def _batch_at(stretch: Stretch, planned: Planned, next_sample: int) -> int | None:
    """Returns the batch that begins at a sample number, None where none does in the stretch."""
    if next_sample < planned.segment.first_sample:
        return None
    batch, begins = planned.batch_at(next_sample)
    return batch if begins and (stretch.end is None or batch <= stretch.end) else None
