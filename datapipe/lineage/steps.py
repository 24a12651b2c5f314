"""From a document to the steps that saw it: by the inverse of the order, without any log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from datapipe.dataset import Dataset, open_dataset
from datapipe.dataset.parts import Int64s
from datapipe.lineage.answers import DocumentSteps, Seen
from datapipe.lineage.batches import shard_of
from datapipe.lineage.docmaps import Docmaps, DocumentPlace, ShardOf
from datapipe.lineage.lookup import DocumentAt, find_document, unknown_document
from datapipe.lineage.run import OpenRun, SegmentView, open_run
from datapipe.observe import NO_PROGRESS, Progress
from datapipe.order import Stretch

__all__ = ["steps_of_document"]


class _Held(NamedTuple):
    """Sample numbers that hold a document: int64 arrays of one length."""

    sample: Int64s
    epoch: Int64s
    tokens: Int64s


def steps_of_document(
    dataset: Dataset | str,
    document: str,
    *,
    run: str,
    runs: str | None = None,
    progress: Progress = NO_PROGRESS,
) -> DocumentSteps:
    """Returns when a run read a document: every row that has a token of it as input or label.

    Args:
        dataset: a dataset that the run read, at any version.
        document: a doc_id (32 hex digits), or the input's own record id.
        run: name of the run.
        runs: where run records are; None: in the dataset, or in ./datapipe-runs.
        progress: hears of documents that were looked through.

    Raises:
        UnknownReferenceError: no such dataset, run or document, or several of this record id.
        DamagedError: the record or a docmap can't be read.
        DatasetError: a dataset or the record can't be opened or read.
    """
    given = open_dataset(dataset) if isinstance(dataset, str) else dataset
    opened, docmaps = open_run(given, run=run, runs=runs), Docmaps()
    found = _find(opened, given, document, progress)
    if not found:
        raise unknown_document(given, document, progress=progress)
    seen: list[Seen] = []
    places: list[DocumentPlace] = []
    complete = True
    for stretch in opened.history.stretches:
        view = opened.segments[stretch.index]
        for held in _held_in(view, found):
            place = docmaps.place(shard_of(view, held.source, held.shard), held.row)
            places.append(place)
            seen += _seen(view, stretch, place, source=held.source, shard=held.shard)
            complete = complete and stretch.end is not None
    return DocumentSteps(
        run=run,
        document=places[0] if places else _place(docmaps, *next(iter(found.values()))),
        seen=tuple(sorted(seen, key=lambda item: (item.batch, item.rank, item.row))),
        complete=complete,
    )


_Found = dict[str, tuple[Dataset, DocumentAt]]
"""Where a document lies, by the manifest digest of the version."""


class _InOrder(NamedTuple):
    """Where a document lies in a segment's order."""

    source: int
    shard: int
    row: int


def _find(opened: OpenRun, given: Dataset, document: str, progress: Progress) -> _Found:
    """Returns where a document lies in the versions that the run read, else in the one given."""
    found: _Found = {}
    for version in opened.versions():
        at = _known(version, found) or find_document(version, document, progress=progress)
        if at is not None:
            found[version.manifest_sha256] = (version, at)
    if not found and given not in opened.versions():
        at = find_document(given, document, progress=progress)
        if at is not None:
            found[given.manifest_sha256] = (given, at)
    return found


def _known(version: Dataset, found: _Found) -> DocumentAt | None:
    """Returns the place where another version has the document, if this one has that shard too."""
    names = {source.name for source in version.sources}
    for other, at in found.values():
        if at.source in names:
            mine, theirs = (v.shards(at.source).docmap_sha256 for v in (version, other))
            if at.shard < len(mine) and mine[at.shard] == theirs[at.shard]:
                return at
    return None


def _held_in(view: SegmentView, found: _Found) -> Iterator[_InOrder]:
    """Yields where a segment's order has the document: in each of its parts of that version."""
    for index, source in enumerate(view.record.sources):
        for part, start in zip(source.parts, source.starts().tolist(), strict=False):
            _, at = found.get(view.datasets[part.dataset].manifest_sha256, (None, None))
            if at is not None and at.source == part.source and at.shard < part.num_shards:
                yield _InOrder(index, start + at.shard, at.row)


def _place(docmaps: Docmaps, dataset: Dataset, at: DocumentAt) -> DocumentPlace:
    shard = ShardOf(dataset=dataset, source=at.source, number=at.shard, label=at.source)
    return docmaps.place(shard, at.row)


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
