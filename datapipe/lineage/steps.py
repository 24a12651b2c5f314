"""From a document to the steps that saw it: by the inverse of the order, without any log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from datapipe.dataset import Dataset, open_dataset
from datapipe.dataset.parts import Int64s
from datapipe.lineage.answers import DocumentSteps, Seen
from datapipe.lineage.batches import shard_of
from datapipe.lineage.docmaps import (
    Docmaps,
    DocumentPlace,
    ShardOf,
    find_document,
    unknown_document,
)
from datapipe.lineage.run import OpenRun, SegmentView, open_run
from datapipe.order import Stretch

__all__ = ["shards_of_dataset", "steps_of_document"]


class _Held(NamedTuple):
    """Sample numbers that hold a document: int64 arrays of one length."""

    sample: Int64s
    epoch: Int64s
    tokens: Int64s


def steps_of_document(
    dataset: Dataset | str, document: str, *, run: str, runs: str | None = None
) -> DocumentSteps:
    """Returns when a run read a document: every row that has a token of it as input or label.

    Args:
        dataset: a dataset that the run read, at any version.
        document: a doc_id (32 hex digits), or the input's own record id.
        run: name of the run.
        runs: where run records are; None: in the dataset, or in ./datapipe-runs.

    Raises:
        UnknownReferenceError: no such run, no such document, or several of this record id.
        DamagedError: the record or a docmap can't be read.
    """
    given = open_dataset(dataset) if isinstance(dataset, str) else dataset
    opened, docmaps = open_run(given, run=run, runs=runs), Docmaps()
    read = [shard for view in opened.segments for shard, _, _ in _shards(view)]
    found = find_document(docmaps, read, document)
    if not found:
        return _never_read(given, docmaps, opened, document)
    seen: list[Seen] = []
    complete = True
    for stretch in opened.history.stretches:
        view = opened.segments[stretch.index]
        for shard, source, number in _shards(view):
            for place in found.get(shard.docmap_sha256, ()):
                seen += _seen(view, stretch, place, source=source, shard=number)
                complete = complete and stretch.end is not None
    return DocumentSteps(
        run=run,
        document=next(iter(found.values()))[0],
        seen=tuple(sorted(seen, key=lambda item: (item.batch, item.rank, item.row))),
        complete=complete,
    )


def shards_of_dataset(dataset: Dataset, *, source: str | None = None) -> Iterator[ShardOf]:
    """Yields all shards of a dataset version, or of one of its sources."""
    for summary in dataset.sources:
        if source in (None, summary.name):
            for number in range(summary.num_shards):
                yield ShardOf(
                    dataset=dataset, source=summary.name, number=number, label=summary.name
                )


def _never_read(
    dataset: Dataset, docmaps: Docmaps, opened: OpenRun, document: str
) -> DocumentSteps:
    """Returns the answer for a document outside what the run reads: another split, added later."""
    found = find_document(docmaps, shards_of_dataset(dataset), document)
    if not found:
        raise unknown_document(docmaps, dataset, shards_of_dataset(dataset), document)
    place = next(iter(found.values()))[0]
    return DocumentSteps(run=opened.name, document=place, seen=(), complete=True)


def _shards(view: SegmentView) -> Iterator[tuple[ShardOf, int, int]]:
    """Yields the shards of a segment with source and number in its order."""
    for index, source in enumerate(view.record.sources):
        for shard in range(source.num_shards):
            yield shard_of(view, index, shard), index, shard


def _seen(
    view: SegmentView, stretch: Stretch, place: DocumentPlace, *, source: int, shard: int
) -> Iterator[Seen]:
    held = _held(view, stretch, place, source=source, shard=shard)
    batches, segment = stretch.batches, stretch.batches.segment
    per_rank = segment.global_batch_size // segment.dp_world_size
    for batch in _batches_with(stretch, held.sample):
        slots = batches.samples(batch)
        for slot in np.flatnonzero(np.isin(slots, held.sample)).tolist():
            at = int(np.flatnonzero(held.sample == slots[slot])[0])
            yield Seen(
                step=int(segment.step_of(batch)),
                batch=batch,
                rank=slot // per_rank,
                row=slot % per_rank,
                sample=int(slots[slot]),
                epoch=int(held.epoch[at]),
                tokens=int(held.tokens[at]),
                delivered=True if batch < stretch.certain else None,
            )


def _batches_with(stretch: Stretch, samples: Int64s) -> list[int]:
    """Returns the batches of a stretch that have any of the samples, ascending."""
    found = stretch.batches.batch_of(samples)
    wanted = set(found[found >= 0].tolist())
    num = stretch.batches.num_batches
    if num:
        last = stretch.batches.segment.first_batch + num - 1
        if np.isin(stretch.batches.fill(last), samples).any():
            wanted.add(last)
    return sorted(batch for batch in wanted if stretch.holds(batch))


def _held(
    view: SegmentView, stretch: Stretch, place: DocumentPlace, *, source: int, shard: int
) -> _Held:
    """Returns the sample numbers that hold a document, in all epochs up to the stretch's end."""
    order = view.order
    first, end = order.samples_holding(
        source, shard, token_start=place.token_start, num_tokens=place.num_tokens
    )
    index = np.arange(int(first), int(end), dtype=np.int64)
    epochs = np.arange(_num_epochs(view, stretch, source), dtype=np.int64)
    numbers = order.inverse(source, shard, index[None, :], epochs[:, None])
    epoch = np.repeat(epochs, index.size)
    start = index * order.spec.seq_len
    stop = np.minimum(start + order.spec.seq_len + 1, place.token_start + place.num_tokens)
    tokens = np.tile(stop - np.maximum(start, place.token_start), epochs.size)
    drawn = numbers.ravel() >= 0
    return _Held(numbers.ravel()[drawn], epoch[drawn], tokens[drawn])


def _num_epochs(view: SegmentView, stretch: Stretch, source: int) -> int:
    """Returns how many epochs of a source to look at.

    Of a stretch without end: one more than those that certainly began.
    """
    last = stretch.end if stretch.end is not None else stretch.certain
    if last <= stretch.first:
        begun = view.order.epochs_before(stretch.batches.segment.first_sample)
    else:
        begun = view.order.epochs_before(stretch.batches.sample_end(last - 1))
    return int(begun[source]) + (1 if stretch.end is None else 0)
