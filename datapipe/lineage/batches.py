"""From a step or batch to its documents: by the order and a binary search in docmaps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from datapipe.dataset import Dataset
from datapipe.errors import UnknownReferenceError
from datapipe.lineage.answers import BatchDocuments, SampleDocuments
from datapipe.lineage.docmaps import Docmaps, ShardOf
from datapipe.lineage.run import OpenRun, SegmentView, open_run
from datapipe.order import Stretch

__all__ = ["documents_of_batch", "documents_of_step", "samples_of_batch", "shard_of"]


def documents_of_step(
    dataset: Dataset | str,
    *,
    run: str,
    step: int,
    rank: int | None = None,
    runs: str | None = None,
) -> BatchDocuments:
    """Returns the documents of an optimizer step.

    Args:
        dataset: a dataset that the run read, at any version.
        run: name of the run.
        step: number of the step, from 0. A step that was broken off and begun anew after a resume
            has the batches of both.
        rank: only this data-parallel rank's rows; None: all ranks.
        runs: where run records are; None: in the dataset, or in ./datapipe-runs.

    Raises:
        UnknownReferenceError: no such dataset, run, step or rank.
        DamagedError: the record or a docmap can't be read.
        DatasetError: a dataset or the record can't be opened or read.
    """
    opened = open_run(dataset, run=run, runs=runs)
    return _answer(opened, opened.batches_of_step(step), step=step, rank=rank)


def documents_of_batch(
    dataset: Dataset | str,
    *,
    run: str,
    batch: int,
    rank: int | None = None,
    runs: str | None = None,
) -> BatchDocuments:
    """Returns the documents of one batch of the stream; arguments as of `documents_of_step`.

    Raises:
        UnknownReferenceError: no such dataset, run, batch or rank.
        DamagedError: the record or a docmap can't be read.
        DatasetError: a dataset or the record can't be opened or read.
    """
    opened = open_run(dataset, run=run, runs=runs)
    step = int(opened.stretch_of(batch).batches.segment.step_of(batch))
    return _answer(opened, [batch], step=step, rank=rank)


def samples_of_batch(
    opened: OpenRun, batch: int, *, docmaps: Docmaps, rank: int | None = None
) -> Iterator[SampleDocuments]:
    """Yields the rows of a batch, by rank and row.

    Raises:
        UnknownReferenceError: no such batch or rank.
        DamagedError: a docmap isn't what its digest says.
    """
    stretch = opened.stretch_of(batch)
    view = opened.segments[stretch.index]
    _check_rank(opened, stretch, rank)
    samples = stretch.batches.samples(batch)
    segment = stretch.batches.segment
    ranks, rows = np.divmod(
        np.arange(samples.size), segment.global_batch_size // segment.dp_world_size
    )
    places = view.order.locate(samples)
    starts, num_pairs = view.order.token_runs(places)
    for slot in np.flatnonzero(ranks == rank) if rank is not None else range(samples.size):
        shard = shard_of(view, int(places.source[slot]), int(places.shard[slot]))
        start, num_tokens = int(starts[slot]), int(num_pairs[slot]) + 1
        yield SampleDocuments(
            sample=int(samples[slot]),
            batch=batch,
            rank=int(ranks[slot]),
            row=int(rows[slot]),
            source=shard.label,
            shard=shard.number,
            epoch=int(places.epoch[slot]),
            token_start=start,
            num_tokens=num_tokens,
            documents=tuple(docmaps.spans(shard, start=start, end=start + num_tokens)),
        )


def shard_of(view: SegmentView, source: int, shard: int) -> ShardOf:
    """Returns the shard of a dataset behind a shard of a segment's order."""
    part, number = view.part(source, shard)
    return ShardOf(
        dataset=view.datasets[part.dataset],
        source=part.source,
        number=number,
        label=view.source_name(part),
    )


def _answer(opened: OpenRun, batches: list[int], *, step: int, rank: int | None) -> BatchDocuments:
    docmaps = Docmaps()
    samples = [
        sample
        for batch in batches
        for sample in samples_of_batch(opened, batch, docmaps=docmaps, rank=rank)
    ]
    certain = all(batch < opened.stretch_of(batch).certain for batch in batches)
    return BatchDocuments(
        run=opened.name,
        step=step,
        batches=tuple(batches),
        delivered=True if certain else None,
        samples=tuple(samples),
    )


def _check_rank(opened: OpenRun, stretch: Stretch, rank: int | None) -> None:
    size = stretch.batches.segment.dp_world_size
    if rank is not None and not 0 <= rank < size:
        raise UnknownReferenceError(
            f"run {opened.name} had {size} data-parallel ranks there and no rank {rank}; ranks "
            f"count from 0 to {size - 1}"
        )
