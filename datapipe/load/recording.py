"""Keeping the run record of a stream: a segment when a pass begins, how far it came, its end."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from datapipe.dataset.run_records import DatasetUse, RunSegment, SegmentEnd, SegmentProgress
from datapipe.dataset.runs import RunStore, SegmentFiles, check_run_name
from datapipe.errors import DatapipeError, StateError, UsageError
from datapipe.load.passes import RecordedSegment
from datapipe.load.plan import StreamPlan
from datapipe.load.sources import NamedDataset
from datapipe.order import History, OrderSpec, Planned, Segment

__all__ = ["OpenSegment", "Reason", "RunWriter", "find_spec"]

Reason = Literal["finished", "closed", "failed"]
"""Why a segment ended: the stream's end, the reader stopped, or an error."""

_PROGRESS_SHARE = 0.01
"""Most of the time that noting progress may take, however often a state is asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenSegment:
    """A segment that is being delivered."""

    store: RunStore
    run: str
    segment: Segment
    recorded: RecordedSegment

    def finish(self, *, num_batches: int, reason: Reason) -> None:
        """Stores that the segment ended after so many of its batches.

        Where that fails it warns, so as not to hide why the segment ended: the record stays open.
        """
        end = SegmentEnd(next_batch=self.segment.first_batch + num_batches, reason=reason)
        try:
            self.store.finish(self.run, self.recorded.number, end)
        except DatapipeError as error:
            warnings.warn(
                f"the end of run {self.run} at batch {end.next_batch} can't be recorded: {error}. "
                "Lineage will say of its last batches that their delivery isn't known",
                UserWarning,
                stacklevel=2,
            )


class RunWriter:
    """Writes the record of one run; on one process of the job."""

    def __init__(self, run: str, *, places: Sequence[RunStore]) -> None:
        """Takes the run's name and where its record may be: the first that can be written.

        Raises:
            UsageError: a name that can't be one.
        """
        self.run, self.places = check_run_name(run), tuple(places)
        self._noted: tuple[RecordedSegment, int] | None = None
        self._next_note_seconds = 0.0

    def begin(self, plan: StreamPlan, *, first_sample: int, may_follow: bool) -> OpenSegment:
        """Stores a segment behind those that the run has; first batch and step follow from them.

        Args:
            plan: the stream.
            first_sample: the sample number at which the segment begins.
            may_follow: whether the stream resumes this run; else the run must be new.

        Raises:
            UsageError: the run exists, and the stream doesn't resume it; or no place can be
                written.
            StateError: the run has no batch that begins at this sample number.
            DamagedError: the run's record can't be read.
            DatasetError: it can't be read or written.
            SpaceError: its disk is full.
        """
        spec = plan.spec.to_bytes()
        store, earlier = self._place(spec)
        if earlier and not may_follow:
            raise self._exists(store, len(earlier))
        placed = self._placed(plan.segment(first_sample), store, earlier)
        record = _record(plan, placed, spec=store.put_spec(spec))
        store.append(self.run, record, number=len(earlier))
        recorded = RecordedSegment(place=self.places.index(store), number=len(earlier))
        return OpenSegment(store=store, run=self.run, segment=placed, recorded=recorded)

    def note(self, segment: RecordedSegment, *, next_sample: int) -> None:
        """Stores that a segment was delivered up to a sample number, unless that costs too much.

        What was noted stays a lower bound. Where storing fails it warns: a state must be saved all
        the same.
        """
        begun = time.monotonic()
        known = self._noted[1] if self._noted and self._noted[0] == segment else 0
        if next_sample <= known or begun < self._next_note_seconds:
            return
        store, progress = self.places[segment.place], SegmentProgress(next_sample=next_sample)
        try:
            store.note(self.run, segment.number, progress)
        except DatapipeError as error:
            warnings.warn(
                f"that run {self.run} came to sample {next_sample} can't be recorded: {error}. If "
                "it is killed, lineage won't know that this was delivered",
                UserWarning,
                stacklevel=3,
            )
        self._noted = (segment, next_sample)
        now = time.monotonic()
        self._next_note_seconds = now + (now - begun) / _PROGRESS_SHARE

    def _place(self, spec: bytes) -> tuple[RunStore, list[SegmentFiles]]:
        for store in self.places:
            if earlier := store.read(self.run):
                return store, earlier
        for store in self.places:
            if store.is_writable(spec):
                if store is not self.places[0]:
                    warnings.warn(
                        f"{self.places[0].place} can't be written, so the record of run "
                        f"{self.run} is kept in {store.place}: lineage finds it only with "
                        "`runs=` (`--runs`) or from this folder",
                        UserWarning,
                        stacklevel=2,
                    )
                return store, []
        places = ", ".join(store.place for store in self.places)
        raise UsageError(
            f"the record of run {self.run} can't be written to {places}: lineage would have no "
            "answer; give `runs=` a place that this user may write, or leave `run` out"
        )

    def _placed(
        self, segment: Segment, store: RunStore, earlier: Sequence[SegmentFiles]
    ) -> Segment:
        if not earlier:
            return segment
        place = _history(store, self.run, earlier).place_of(segment.first_sample)
        if place is None:
            raise StateError(
                f"run {self.run} in {store.place} has no batch that begins at sample "
                f"{segment.first_sample}: the state was saved by another run, and what follows it "
                "can't be numbered; load a state of this run, or give `run=` a new name"
            )
        return Segment(
            global_batch_size=segment.global_batch_size,
            dp_world_size=segment.dp_world_size,
            first_sample=segment.first_sample,
            first_batch=place[0],
            first_step=place[1],
            batches_per_step=segment.batches_per_step,
        )

    def _exists(self, store: RunStore, num_segments: int) -> UsageError:
        return UsageError(
            f"run {self.run} is recorded in {store.place} already ({num_segments} segments): "
            "delivering it from the beginning would make its record say what didn't happen. To go "
            "on, load the state that was saved with the model; to begin anew under this name, call "
            "`stream.load_state_dict(stream.state_dict())` before the first batch; else give "
            "`run=` another name"
        )


def find_spec(places: Sequence[RunStore], digest: str) -> OrderSpec | None:
    """Returns the spec of a digest from the first place that has it, None where none has.

    Raises:
        DamagedError: it isn't what its digest says.
        DatasetError: a place can't be read.
    """
    for store in places:
        data = store.spec(digest)
        if data is not None:
            return OrderSpec.from_json(data)
    return None


def _history(store: RunStore, run: str, earlier: Sequence[SegmentFiles]) -> History:
    planned = []
    for files in earlier:
        spec = find_spec([store], files.record.spec)
        if spec is None:
            raise StateError(
                f"the spec {files.record.spec[:16]} of run {run} is missing in {store.place}: "
                "where the run was can't be known; restore it, or give `run=` a new name"
            )
        planned.append(
            Planned.of(
                files.record,
                spec=spec,
                next_batch=files.next_batch,
                saved_sample=files.saved_sample,
            )
        )
    return History(planned)


def _record(plan: StreamPlan, segment: Segment, *, spec: str) -> RunSegment:
    return RunSegment(
        spec=spec,
        sources=tuple(plan.index.parts),
        datasets=tuple(_use(item) for item in plan.named),
        split=plan.options.split,
        first_batch=segment.first_batch,
        first_step=segment.first_step,
        first_sample=segment.first_sample,
        global_batch_size=segment.global_batch_size,
        dp_world_size=segment.dp_world_size,
        batches_per_step=segment.batches_per_step,
        end_sample=plan.end,
        last=plan.options.last,
        started_seconds=time.time(),
    )


def _use(item: NamedDataset) -> DatasetUse:
    dataset = item.dataset
    return DatasetUse(
        name=item.name,
        url=dataset.url,
        version=dataset.version,
        manifest=dataset.manifest_sha256,
    )
