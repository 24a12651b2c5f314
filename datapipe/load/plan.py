"""What a stream is, worked out from its data, options and ranks; nothing here reads a token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from datapipe.errors import OrderError, UsageError
from datapipe.load.options import StreamOptions
from datapipe.load.ranks import Ranks
from datapipe.load.shard_index import ShardIndex
from datapipe.load.sources import Data, NamedDataset, choose_sources, open_data
from datapipe.load.spec import build_spec
from datapipe.order import (
    MAX_JSON_INTEGER,
    Batches,
    Delivered,
    Order,
    OrderSpec,
    Segment,
    end_sample,
)

__all__ = ["StreamPlan", "plan_stream"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamPlan:
    """A stream: its datasets, its order and where that ends, and this rank's part of it."""

    options: StreamOptions
    ranks: Ranks
    named: tuple[NamedDataset, ...]
    index: ShardIndex
    order: Order
    end: int | None
    "One after the last sample number; None: the stream has no end."

    @property
    def spec(self) -> OrderSpec:
        """The spec of the order."""
        return self.order.spec

    @property
    def num_samples(self) -> int | None:
        """Samples over all ranks, skipped ones left out; None: no end."""
        return None if self.end is None else int(Delivered(self.spec.skips).before(self.end))

    def segment(self, first_sample: int = 0) -> Segment:
        """Returns the stretch from a sample number on, its batches and steps counted from 0."""
        size = self.ranks.dp_world_size
        return Segment(
            global_batch_size=self.options.rows * size,
            dp_world_size=size,
            first_sample=first_sample,
            batches_per_step=self.options.batches_per_step,
        )

    def batches(self, first_sample: int = 0) -> Batches:
        """Returns the batches from a sample number on."""
        return Batches(
            self.segment(first_sample),
            spec=self.spec,
            end_sample=self.end,
            last=self.options.last,
        )

    def with_spec(self, spec: OrderSpec) -> StreamPlan:
        """Returns the stream with another order of the same sources.

        Raises:
            OrderError: an order that can't be.
        """
        order, end = _open_order(spec, index=self.index, options=self.options)
        return replace(self, order=order, end=end)


def plan_stream(data: Data, *, options: StreamOptions, ranks: Ranks) -> StreamPlan:
    """Opens the datasets and works out the stream.

    Raises:
        UsageError: data, options and ranks that give no order, or not one batch.
        UnknownReferenceError: a dataset that isn't there.
        TokenizerMismatchError: datasets whose token ids don't mean the same.
        DatasetError: a dataset that can't be opened.
    """
    named = tuple(open_data(data))
    try:
        plan = _planned(named, options, ranks)
        _require_a_batch(plan)
    except OrderError as error:
        raise UsageError(str(error)) from error
    return plan


def _planned(named: Sequence[NamedDataset], options: StreamOptions, ranks: Ranks) -> StreamPlan:
    sources = choose_sources(named, split=options.split, phases=options.phases)
    index = ShardIndex(sources.parts, datasets=[item.dataset for item in named])
    spec = build_spec(
        sources,
        seq_len=options.seq_len,
        seed=options.seed,
        lanes=options.lanes,
        window_shards=options.window_shards,
        tail=options.tail,
        skips=options.skips,
        global_batch_size=options.rows * ranks.dp_world_size,
    )
    order, end = _open_order(spec, index=index, options=options)
    return StreamPlan(
        options=options, ranks=ranks, named=tuple(named), index=index, order=order, end=end
    )


def _open_order(
    spec: OrderSpec, *, index: ShardIndex, options: StreamOptions
) -> tuple[Order, int | None]:
    order = Order.open(spec, index.tokens_by_source())
    end = end_sample(order, **options.limits())
    if end is not None and end > MAX_JSON_INTEGER:
        raise OrderError(
            f"the stream would end at sample {end}: sample numbers are at most {MAX_JSON_INTEGER}; "
            "take fewer epochs or samples"
        )
    return order, end


def _require_a_batch(plan: StreamPlan) -> None:
    if plan.batches().num_batches == 0:
        raise UsageError(
            f"the stream has {plan.num_samples} samples, fewer than one global batch of "
            f"{plan.segment().global_batch_size}: no batch would be delivered; take a smaller "
            'batch_size or seq_len, more epochs, or last="repeat" to fill the batch'
        )
