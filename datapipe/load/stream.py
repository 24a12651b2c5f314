"""TokenStream: a dataset as batches of tokens, in an order that any rank can compute alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from datapipe.dataset.runs import run_places
from datapipe.errors import StateError, UsageError
from datapipe.load.block_check import BlockCheck
from datapipe.load.delivery import Batch, Delivery
from datapipe.load.labels import Labels
from datapipe.load.options import StreamOptions
from datapipe.load.passes import PassStart
from datapipe.load.plan import plan_stream
from datapipe.load.ranks import Ranks, find_ranks
from datapipe.load.recording import OpenSegment, Reason, RunWriter
from datapipe.load.report import StreamReport, make_report
from datapipe.load.resume import resume, sample_after
from datapipe.load.sequence import PlannedBatch, plan_batches
from datapipe.load.sources import Data
from datapipe.order import Last, OrderSpec, Phase, State, Tail

__all__ = ["TokenStream"]


class TokenStream(IterableDataset[Batch]):
    """A dataset as batches for one data-parallel rank: one pass over it, unless told otherwise.

    Give it to `torch.utils.data.DataLoader(stream, batch_size=None)`, with or without workers, or
    iterate it. A `DataLoader` that has a batch size puts whole batches together once more, to
    [its batch size, batch_size, seq_len].

    Each batch is `{"input_ids", "labels", "sample_end"}`: two tensors [batch_size, seq_len] of its
    own, never written again by the stream, and the sample number that follows the global batch.
    Batches come in the same order whatever the number of workers is.

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
            data: a dataset or its URL or path, a list of them, or {name: dataset}. The sources of
                several datasets are named `name/source`.
            seq_len: T, tokens of a row.
            batch_size: rows per rank and batch; None yields single samples, tensors [seq_len].
            seed: of the order, 0 <= seed < 2^53.
            split: "train", where all sources are: this version builds no other splits.
            mixture: share of samples by source, or phases of them; None: all sources form one, so
                each counts by its size.
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
            UsageError: an argument that can't be, or arguments that give no order or no batch.
            UnknownReferenceError: a dataset that isn't there.
            TokenizerMismatchError: datasets whose token ids don't mean the same.
            DatasetError: a dataset that can't be opened.
        """
        super().__init__()
        options = StreamOptions(
            seq_len=seq_len,
            batch_size=batch_size,
            seed=seed,
            split=split,
            mixture=mixture,
            labels=labels,
            tail=tail,
            last=last,
            epochs=epochs,
            max_samples=max_samples,
            max_tokens=max_tokens,
            lanes=lanes,
            window_shards=window_shards,
            dtype=dtype,
            skips=skips,
            dp_rank=dp_rank,
            dp_world_size=dp_world_size,
            batches_per_step=batches_per_step,
            run=run,
            runs=runs,
        )
        self._plan = plan_stream(data, options=options, ranks=_ranks(options))
        repositories = (item.dataset.repository for item in self._plan.named)
        self._places = tuple(run_places(repositories, runs=options.runs))
        self._writer = self._run_writer()
        self._resumed = False
        self._start = PassStart()
        self._position = 0
        self._check: BlockCheck | None = None

    # -- what it is

    @property
    def spec(self) -> OrderSpec:
        """The spec of the order."""
        return self._plan.spec

    @property
    def num_samples(self) -> int | None:
        """Samples of the whole stream over all ranks, skipped ones left out; None: no end."""
        return self._plan.num_samples

    @property
    def num_steps(self) -> int | None:
        """Optimizer steps of the whole stream; None: no end."""
        num = self._plan.batches().num_batches
        return None if num is None else -(-num // self._plan.options.batches_per_step)

    def __len__(self) -> int:
        """Batches per rank of the whole stream, the same on every rank.

        Raises:
            TypeError: it has no end.
        """
        num = self._plan.batches().num_batches
        if num is None:
            raise TypeError(
                "the stream has no end, so it has no length; give max_samples or max_tokens"
            )
        return num

    def report(self) -> StreamReport:
        """Returns what the stream is and where it stands, as numbers to print or log."""
        checked = 0 if self._check is None else self._check.num_checked
        return make_report(self._plan, next_sample=self._position, blocks_checked=checked)

    # -- state

    def state_dict(self, after: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns where the stream stands: below 1 KB of JSON values, the same on every rank.

        Where a run is recorded, its record notes that all before was delivered.

        Args:
            after: the last batch that was trained on. Exact whatever is fetched ahead. None: the
                last batch that was taken from the stream by this process.

        Raises:
            StateError: without `after` while worker processes take the batches, or `after` isn't
                a batch of a stream.
        """
        in_worker = get_worker_info() is not None
        if after is None and (self._start.is_in_workers or in_worker):
            raise StateError(
                "batches come from worker processes, which fetch ahead: the stream can't know "
                "which was trained on last; call state_dict(after=batch) with that batch"
            )
        sample = self._position if after is None else sample_after(self._plan, after)
        segment = self._start.segment
        if self._writer is not None and segment is not None and not in_worker:
            self._writer.note(segment, next_sample=sample)
        return State(spec_digest=self.spec.digest, next_sample=sample).to_json()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next pass begin where a state was saved, at any batch and world size.

        Raises:
            StateError: it is no state, it belongs to an order that differs below its sample
                number, or it lies behind the stream's end. The stream stays as it was.
            DamagedError: the order that it belongs to is recorded, and the record is damaged.
        """
        self._plan, sample = resume(self._plan, state, places=self._places)
        self._resumed = True
        self._position = sample
        self._start.set(sample)

    # -- delivery

    def __iter__(self) -> Iterator[Batch]:
        """Yields this rank's batches, in a worker its share of them.

        Raises:
            DamagedError: a shard is missing, cut or damaged; or the run's record is damaged.
            LoadError: a shard can't be read.
            UsageError: a run of this name exists and isn't resumed, or this process has another
                rank than the stream was made for.
            StateError: the run has no batch that begins where the stream stands.
            DatasetError, SpaceError: the run's record can't be written.
        """
        worker = get_worker_info()
        number, num_workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        if worker is None:
            self._require_same_ranks()
        start = self._start.begin(in_worker=worker is not None)
        self._position = start
        record = self._begin_record(start) if number == 0 else None
        planned = plan_batches(
            self._plan.batches(start),
            order=self._plan.order,
            index=self._plan.index,
            dp_rank=self._plan.ranks.dp_rank,
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
        delivery = Delivery(self._plan, check=self._block_check())
        try:
            for batch in planned:
                tensors = delivery.tensors(batch)
                self._position = batch.sample_end
                num += 1
                yield tensors
                del tensors  # else its memory is held while the next batch is made
            reason = "finished"
        except GeneratorExit:
            reason = "closed"
            raise
        finally:
            delivery.close()
            if record is not None and os.getpid() == process:  # not in a process forked meanwhile
                record.finish(num_batches=num, reason=reason)
                self._start.close_segment(record.recorded)

    def __getstate__(self) -> dict[str, Any]:
        """Returns what another process needs; which blocks were checked stays here."""
        return {**self.__dict__, "_check": None}

    def _block_check(self) -> BlockCheck:
        if self._check is None:
            self._check = BlockCheck(self._plan.index)
        return self._check

    def _require_same_ranks(self) -> None:
        was, now = self._plan.ranks, _ranks(self._plan.options)
        if (now.dp_rank, now.dp_world_size) != (was.dp_rank, was.dp_world_size):
            raise UsageError(
                f"the stream was made as rank {was.dp_rank} of {was.dp_world_size} "
                f"({was.found_in}), and now this process is rank {now.dp_rank} of "
                f"{now.dp_world_size} ({now.found_in}): ranks would read the same rows; make the "
                "stream after torch.distributed is initialised, or give dp_rank and dp_world_size"
            )

    def _run_writer(self) -> RunWriter | None:
        run = self._plan.options.run
        if run is None or not self._plan.ranks.is_writer:
            return None
        return RunWriter(run, places=self._places)

    def _begin_record(self, first_sample: int) -> OpenSegment | None:
        if self._writer is None:
            return None
        if self._start.is_finished:
            raise UsageError(
                f"run {self._writer.run} delivered the stream to its end, and another pass would "
                "deliver the same samples in the same order again; give epochs= (or max_samples, "
                "max_tokens) for a longer run, or make the stream without `run` to evaluate on it"
            )
        opened = self._writer.begin(
            self._plan,
            first_sample=first_sample,
            may_follow=self._resumed or self._start.is_recorded,
        )
        self._start.open_segment(opened.recorded)
        return opened


def _ranks(options: StreamOptions) -> Ranks:
    return find_ranks(dp_rank=options.dp_rank, dp_world_size=options.dp_world_size)
