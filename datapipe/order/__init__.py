"""The sample order: one pure, invertible function from sample numbers to places in a dataset.

    spec = OrderSpec(sources=(OrderSource(name=, order_digest=, shards_to=),), seq_len=, lanes=)
    spec.digest; spec.to_bytes(); OrderSpec.from_json(bytes | dict)         stored under its digest
    order = Order.open(spec, {name: num_tokens})      token counts by shard number, int64
    order.locate(g) -> Places(source, shard, sample, epoch, count)
    order.token_runs(places) -> TokenRuns(start, num_pairs)                 tokens inside the shard
    order.samples_holding(source, shard, token_start=, num_tokens=) -> (first, end)
    order.inverse(source, shard, sample, epoch) -> g, -1 where never drawn
    order.num_samples[name]; order.drawn_before(g); order.epochs_before(g)

    segment = Segment(global_batch_size=B, dp_world_size=R, first_sample=, first_batch=,
                      first_step=, batches_per_step=)
    batches = Batches(segment, spec=spec, end_sample=end_sample(order, epochs=1), last="drop")
    batches.num_batches; batches.samples(b) by slot; batches.rank_samples(b, dp_rank=)
    batches.sample_end(b); batches.batch_of(g); batches.rank_of(g); segment.step_of(b)

    next_sample = accept_state(State.from_json(json), spec=, earlier=, searched=)
    plan(order, segment=, ranks=, from_sample=)
        -> iterator of ShardUse(source, shard, first, last, next)

Owns the numbering of samples; the loader, the tier planner and lineage call it and nothing else
decides an order. It must not know datasets, files, ranks' processes, torch or pyarrow: it takes
token counts and is NumPy only, ready within milliseconds. `docs/order.md` has the whole of it.
"""

from __future__ import annotations

from datapipe.order.end import end_sample
from datapipe.order.history import History, Planned, Stretch
from datapipe.order.locate import Order, Places
from datapipe.order.mixture import MAX_SAMPLE, ROUND_DRAWS
from datapipe.order.planner import ShardUse, hot_set_bytes, lanes_of_ranks, nodes_per_lane, plan
from datapipe.order.samples import TAILS, Tail, TokenRuns, num_samples
from datapipe.order.segment import LASTS, Batches, Last, Segment
from datapipe.order.skips import Delivered, rounded_skips
from datapipe.order.slots import lane_major, rank_slots
from datapipe.order.spec import (
    MAX_JSON_INTEGER,
    MAX_LANES,
    SPEC_VERSION,
    OrderSource,
    OrderSpec,
    Phase,
    resolve_lanes,
)
from datapipe.order.state import STATE_VERSION, State, accept_state, first_difference

__all__ = [
    "LASTS",
    "MAX_JSON_INTEGER",
    "MAX_LANES",
    "MAX_SAMPLE",
    "ROUND_DRAWS",
    "SPEC_VERSION",
    "STATE_VERSION",
    "TAILS",
    "Batches",
    "Delivered",
    "History",
    "Last",
    "Order",
    "OrderSource",
    "OrderSpec",
    "Phase",
    "Places",
    "Planned",
    "Segment",
    "ShardUse",
    "State",
    "Stretch",
    "Tail",
    "TokenRuns",
    "accept_state",
    "end_sample",
    "first_difference",
    "hot_set_bytes",
    "lane_major",
    "lanes_of_ranks",
    "nodes_per_lane",
    "num_samples",
    "plan",
    "rank_slots",
    "resolve_lanes",
    "rounded_skips",
]
