"""TokenStream: a dataset as batches of tokens, in an order that any rank can compute alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import IterableDataset, get_worker_info

from datapipe.dataset.runs import run_places
from datapipe.errors import StateError, UsageError
from datapipe.load.block_check import BlockCheck
from datapipe.load.delivery import Batch, Delivery, stream_limits
from datapipe.load.gather import Gather
from datapipe.load.labels import Labels
from datapipe.load.passes import PassStart
from datapipe.load.ranks import Ranks, resolve_ranks
from datapipe.load.recording import OpenSegment, Reason, RunWriter, find_spec
from datapipe.load.report import StreamReport, make_report
from datapipe.load.sequence import PlannedBatch, plan_batches
from datapipe.load.shard_files import ShardFiles
from datapipe.load.shard_index import ShardIndex
from datapipe.load.sources import Data, choose_sources, open_data
from datapipe.load.spec import adopt_skips, build_spec
from datapipe.order import (
    Batches,
    Delivered,
    Last,
    Order,
    OrderSpec,
    Phase,
    Segment,
    State,
    Tail,
    accept_state,
    end_sample,
)

__all__ = ["TokenStream"]


class TokenStream(IterableDataset[Batch]):
    """A dataset as an endless supply of batches for one data-parallel rank.

    Give it to `torch.utils.data.DataLoader(stream, batch_size=None)`, with or without workers, or
    iterate it. Each batch is `{"input_ids", "labels", "sample_end"}`: two tensors [batch_size,
    seq_len] of its own, never written again by the stream, and the sample number that follows the
    global batch. Batches come in the same order whatever the number of workers is.

    A pass begins at the beginning, or where a state was loaded; the pass after a finished one
    begins at the beginning and delivers the same (for several epochs in one pass, each shuffled
    anew, give `epochs=`). See `docs/loading.md`.

    Picklable, and safe to fork: every process opens its own files. One iterator is used by one
    thread at a time.
    """

    def __init__(
        self,
        data: Data,
        *,
        seq_len: int,
        batch_size: int | None,
        seed: int = 0,
        split: str = "train",
        mixture: Mapping[str, float] | Sequence[Phase] | None = None,
        labels: Labels = "next",
        tail: Tail = "pad",
        last: Last = "drop",
        epochs: int | None = None,
        max_samples: int | None = None,
        max_tokens: int | None = None,
        lanes: int | None = None,
        window_shards: int = 4,
        dtype: torch.dtype = torch.int64,
        skips: Sequence[tuple[int, int]] = (),
        dp_rank: int | None = None,
        dp_world_size: int | None = None,
        batches_per_step: int = 1,
        run: str | None = None,
        runs: str | None = None,
    ) -> None:
        """Opens the datasets and the order; no token is read yet.

        Args:
            data: a dataset or its URL, a list of them, or {name: dataset}. The sources of several
                datasets are named `name/source`.
            seq_len: T, tokens of a row.
            batch_size: rows per rank and batch; None yields single samples, tensors [seq_len].
            seed: of the order, 0 <= seed < 2^53.
            split: sources named `X@split` are in that split, all others in `train`.
            mixture: share of samples by source, or phases of them; None: the split's sources form
                one, so each counts by its size.
            labels: "next": labels[t] is the token after input_ids[t]; "same": a copy of input_ids,
                for models that shift inside. -100 where there is no label.
            tail: "pad": a shard's last, short sample is filled with EOS; "drop": it is left out.
            last: a last, partial batch is left out, or filled from the stream's start ("repeat").
            epochs: passes over the data, each in another order; None is 1; not with a mixture.
            max_samples: end after so many delivered samples, counted over all ranks from the
                beginning of the stream; with a mixture this or `max_tokens` gives it an end.
            max_tokens: the same in tokens, seq_len a sample.
            lanes: sub-streams of the order; None: by the number of shards, 1 to 64.
            window_shards: shards that a lane mixes at a time.
            dtype: of both tensors, torch.int64 or torch.int32.
            skips: ranges [g0, g1) of sample numbers never to be delivered, rounded outwards to
                multiples of lcm(global batch size, lanes).
            dp_rank: data-parallel rank; None: from torch.distributed, else the launcher.
            dp_world_size: number of data-parallel ranks; both or neither.
            batches_per_step: batches of one optimizer step (gradient accumulation).
            run: keep a record under this name, for lineage; written by one process.
            runs: where records are; None: in the dataset, or ./datapipe-runs where it can't be
                written.

        Raises:
            UsageError: an argument that can't be.
            OrderError: an order that can't be.
            UnknownReferenceError: a dataset that isn't there.
        """
        super().__init__()
        self._named = open_data(data)
        self._split = split
        self._ranks = _ranks(dp_rank, dp_world_size)
        self._given_ranks = (dp_rank, dp_world_size)
        self._delivery = Delivery(
            rows=batch_size,
            labels=labels,
            last=last,
            dtype=dtype,
            batches_per_step=batches_per_step,
        )
        self._segment = Segment(
            global_batch_size=(batch_size or 1) * self._ranks.dp_world_size,
            dp_world_size=self._ranks.dp_world_size,
            batches_per_step=batches_per_step,
        )
        self._asked_skips = tuple((int(first), int(end)) for first, end in skips)
        sources = choose_sources(self._named, split=split, mixture=mixture)
        self._index = ShardIndex(sources.parts, datasets=[item.dataset for item in self._named])
        self._limits = stream_limits(mixture is not None, epochs, max_samples, max_tokens)
        self._open_order(
            build_spec(
                sources,
                seq_len=seq_len,
                seed=seed,
                lanes=lanes,
                window_shards=window_shards,
                tail=tail,
                skips=self._asked_skips,
                global_batch_size=self._segment.global_batch_size,
            )
        )
        self._require_a_batch()
        self._places = tuple(
            run_places((item.dataset.repository for item in self._named), runs=runs)
        )
        self._writer = self._run_writer(run)
        self._resumed = False
        self._start = PassStart()
        self._position = 0
        self._check: BlockCheck | None = None

    # -- what it is

    @property
    def spec(self) -> OrderSpec:
        """The spec of the order."""
        return self._order.spec

    @property
    def num_samples(self) -> int | None:
        """Samples of the whole stream over all ranks, skipped ones left out; None: no end."""
        if self._end is None:
            return None
        return int(Delivered(self.spec.skips).before(self._end))

    @property
    def num_steps(self) -> int | None:
        """Optimizer steps of the whole stream; None: no end."""
        num = self._batches(self._segment).num_batches
        return None if num is None else -(-num // self._delivery.batches_per_step)

    def __len__(self) -> int:
        """Batches per rank of the whole stream, the same on every rank.

        Raises:
            TypeError: it has no end.
        """
        num = self._batches(self._segment).num_batches
        if num is None:
            raise TypeError(
                "the stream has no end, so it has no length; give max_samples or max_tokens"
            )
        return num

    def report(self) -> StreamReport:
        """Returns what the stream is and where it stands, as numbers to print or log."""
        return make_report(
            self._order,
            ranks=self._ranks,
            segment=self._segment,
            num_samples=self.num_samples,
            next_sample=self._position,
            blocks_checked=0 if self._check is None else self._check.num_checked,
        )

    # -- state

    def state_dict(self, after: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns where the stream stands: below 1 KB of JSON values, the same on every rank.

        Args:
            after: the last batch that was trained on. Exact whatever is fetched ahead. None: the
                last batch that was taken from the stream by this process.

        Raises:
            StateError: without `after` while worker processes take the batches.
        """
        sample = self._position if after is None else self._end_of(after)
        if after is None and (self._start.is_in_workers or get_worker_info() is not None):
            raise StateError(
                "batches come from worker processes, which fetch ahead: the stream can't know "
                "which was trained on last; call state_dict(after=batch) with that batch"
            )
        return State(spec_digest=self.spec.digest, next_sample=sample).to_json()

    def _end_of(self, batch: Mapping[str, Any]) -> int:
        """Returns next_sample after a batch, or after single samples that a loader put together."""
        ends = _sample_ends(batch)
        counts = Delivered(self.spec.skips).before(ends)
        if (np.diff(counts) != self._segment.global_batch_size).any():
            raise StateError(
                "the rows of this batch aren't consecutive samples, so no single number says what "
                "was trained on: DataLoader workers take turns by sample. Let the stream make the "
                "batches: TokenStream(batch_size=...) and DataLoader(stream, batch_size=None)"
            )
        return int(ends[-1])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next pass begin where a state was saved, at any batch and world size.

        Raises:
            StateError: the state belongs to an order that differs below its sample number.
        """
        saved = State.from_json(state)
        spec, earlier = self.spec, None
        if saved.spec_digest != spec.digest:
            earlier = find_spec(self._places, saved.spec_digest)
        if earlier is not None:
            spec = adopt_skips(
                spec, earlier=earlier, before=saved.next_sample, asked=self._asked_skips
            )
        searched = [place.place for place in self._places]
        sample = accept_state(saved, spec=spec, earlier=earlier, searched=searched)
        if spec != self.spec:
            self._open_order(spec)
        self._resumed = True
        self._position = sample
        self._start.set(sample)

    # -- delivery

    def __iter__(self) -> Iterator[Batch]:
        """Yields this rank's batches, in a worker its share of them.

        Raises:
            DamagedError: a shard is missing, cut or damaged.
            LoadError: a shard can't be read.
            UsageError: a run of this name exists and isn't resumed.
        """
        worker = get_worker_info()
        number, num_workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        if worker is None:
            self._require_same_ranks()
        start = self._start.begin(in_worker=worker is not None)
        self._position = start
        segment = _from_sample(self._segment, start)
        record = self._begin_record(segment) if number == 0 else None
        planned = plan_batches(
            self._batches(segment),
            order=self._order,
            index=self._index,
            dp_rank=self._ranks.dp_rank,
            first=number,
            step=num_workers,
        )
        # Workers fetch ahead of what is trained on, so only this process knows where it ended.
        yield from self._delivered(planned, record if worker is None else None)
        self._start.finish(worker=number, num_workers=num_workers)

    def _delivered(
        self, planned: Iterator[PlannedBatch], record: OpenSegment | None
    ) -> Iterator[Batch]:
        process, num = os.getpid(), 0
        reason: Reason = "failed"
        files = ShardFiles(self._index)
        try:
            gather = self._gather(files)
            maker = self._delivery.maker(gather)
            for batch in planned:
                tensors = self._delivery.tensors(gather, batch, maker)
                self._position = batch.sample_end
                num += 1
                yield tensors
                del tensors  # else its memory is held while the next batch is made
            reason = "finished"
        except GeneratorExit:
            reason = "closed"
            raise
        finally:
            files.close()
            if record is not None and os.getpid() == process:  # not in a process forked meanwhile
                record.finish(num_batches=num, reason=reason)

    def __getstate__(self) -> dict[str, Any]:
        """Returns what another process needs; which blocks were checked stays here."""
        return {**self.__dict__, "_check": None}

    def _gather(self, files: ShardFiles) -> Gather:
        if self._check is None:
            self._check = BlockCheck(self._index)
        return Gather(
            self._index,
            files=files,
            check=self._check,
            num_rows=self._delivery.rows or 1,
            seq_len=self.spec.seq_len,
            eos_id=self._named[0].dataset.eos_id,
        )

    def _open_order(self, spec: OrderSpec) -> None:
        self._order = Order.open(spec, self._index.tokens_by_source())
        self._end = end_sample(self._order, **self._limits)

    def _batches(self, segment: Segment) -> Batches:
        return Batches(segment, spec=self.spec, end_sample=self._end, last=self._delivery.last)

    def _require_a_batch(self) -> None:
        if self._batches(self._segment).num_batches == 0:
            raise UsageError(
                f"the stream has {self.num_samples} samples, fewer than one global batch of "
                f"{self._segment.global_batch_size}: no batch would be delivered; take a smaller "
                'batch_size or seq_len, more epochs, or last="repeat" to fill the batch'
            )

    def _require_same_ranks(self) -> None:
        now = _ranks(*self._given_ranks)
        if (now.dp_rank, now.dp_world_size) != (self._ranks.dp_rank, self._ranks.dp_world_size):
            raise UsageError(
                f"the stream was made as rank {self._ranks.dp_rank} of "
                f"{self._ranks.dp_world_size} ({self._ranks.found_in}), and now this process is "
                f"rank {now.dp_rank} of {now.dp_world_size} ({now.found_in}): ranks would read the "
                "same rows; make the stream after torch.distributed is initialised, or give "
                "dp_rank and dp_world_size"
            )

    def _run_writer(self, run: str | None) -> RunWriter | None:
        if run is None:
            return None
        writer = RunWriter(
            run=run, places=self._places, named=tuple(self._named), split=self._split
        )
        return writer if self._ranks.is_writer else None

    def _begin_record(self, segment: Segment) -> OpenSegment | None:
        if self._writer is None:
            return None
        if self._start.is_finished:
            raise UsageError(
                f"run {self._writer.run} delivered the stream to its end, and another pass would "
                "deliver the same samples in the same order again; give epochs= (or max_samples, "
                "max_tokens) for a longer run, or make the stream without `run` to evaluate on it"
            )
        opened = self._writer.begin(
            segment,
            spec=self.spec,
            parts=tuple(self._index.parts),
            end_sample=self._end,
            last=self._delivery.last,
            may_follow=self._resumed or self._start.is_recorded,
        )
        self._start.note_recorded()
        return opened


def _from_sample(segment: Segment, sample: int) -> Segment:
    return Segment(
        global_batch_size=segment.global_batch_size,
        dp_world_size=segment.dp_world_size,
        first_sample=sample,
        batches_per_step=segment.batches_per_step,
    )


def _ranks(dp_rank: int | None, dp_world_size: int | None) -> Ranks:
    distributed = torch.distributed
    group = None
    if distributed.is_available() and distributed.is_initialized():
        group = (distributed.get_rank(), distributed.get_world_size())
    return resolve_ranks(
        dp_rank=dp_rank,
        dp_world_size=dp_world_size,
        process_group=group,
        environment=os.environ,
    )


def _sample_ends(batch: Mapping[str, Any]) -> npt.NDArray[np.int64]:
    try:
        end = batch["sample_end"]
    except (KeyError, TypeError, IndexError) as error:
        raise StateError(
            "state_dict(after=...) takes a batch of this stream, which has a `sample_end`; what "
            f"was given is {type(batch).__name__} without one"
        ) from error
    return np.atleast_1d(np.asarray(end, dtype=np.int64))
