"""Where the passes over a stream begin, kept in memory that worker processes share.

A pass begins where a state was loaded, else at the stream's beginning; when it is finished, the
next one begins at the beginning. A pass that was broken off begins again where it began. That holds
whether batches come from this process or from workers, forked, spawned or persistent, and a kill
leaves no file: the memory has no name.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

__all__ = ["PassStart", "RecordedSegment"]

_WORKERS = 1024  # a worker marks every slot congruent to its number, whatever their number is
_START, _IN_WORKERS, _RECORDED, _PLACE, _SEGMENT, _FINISHED = range(6)
_NONE = -1


class RecordedSegment(NamedTuple):
    """Which segment of the run record the pass is."""

    place: int
    "Number of the place of the record, among those of the stream."
    number: int
    "Of the segment in the run."


class PassStart:
    """First sample number of the next pass; in another process it is the same memory."""

    def __init__(self) -> None:
        self._memory = torch.zeros(_FINISHED + _WORKERS, dtype=torch.int64)
        self._memory[_SEGMENT] = _NONE
        self._memory.share_memory_()  # type: ignore[no-untyped-call] # torch has no types for it

    @property
    def sample(self) -> int:
        """Where the next pass begins."""
        return 0 if self.is_finished else int(self._memory[_START])

    @property
    def is_finished(self) -> bool:
        """Whether a pass was finished, by all workers, since a state was loaded."""
        return bool(self._memory[_FINISHED:].all())

    @property
    def is_recorded(self) -> bool:
        """Whether this stream began its run record."""
        return bool(self._memory[_RECORDED])

    @property
    def is_in_workers(self) -> bool:
        """Whether the last pass to begin was begun by a worker process."""
        return bool(self._memory[_IN_WORKERS])

    @property
    def segment(self) -> RecordedSegment | None:
        """The segment that is being delivered; None: none was begun, or it has its end."""
        place, number = self._memory[_PLACE : _SEGMENT + 1].tolist()
        return None if number == _NONE else RecordedSegment(place, number)

    def begin(self, *, in_worker: bool) -> int:
        """Returns where a pass begins, and notes who reads it."""
        self._memory[_IN_WORKERS] = int(in_worker)
        return self.sample

    def finish(self, *, worker: int, num_workers: int) -> None:
        """Notes that a worker delivered its last batch of the pass."""
        self._memory[_FINISHED + worker :: num_workers] = 1

    def set(self, sample: int) -> None:
        """Makes the next pass begin at a sample number."""
        self._memory[_START] = sample
        self._memory[_SEGMENT] = _NONE
        self._memory[_FINISHED:] = 0

    def open_segment(self, segment: RecordedSegment) -> None:
        """Notes that the pass is this segment of the run record."""
        self._memory[_RECORDED] = 1
        self._memory[_PLACE], self._memory[_SEGMENT] = segment

    def close_segment(self, segment: RecordedSegment) -> None:
        """Notes that this segment has its end; nothing if the pass is another one already."""
        if self.segment == segment:
            self._memory[_SEGMENT] = _NONE
