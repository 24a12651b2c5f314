"""What a stream is and where it stands, as numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from datapipe.load.plan import StreamPlan

__all__ = ["SourceReport", "StreamReport", "make_report"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceReport:
    """One source of a stream; samples are counted over all ranks."""

    name: str
    num_shards: int
    num_samples: int
    "Samples of one epoch."
    num_drawn: int
    "Samples drawn up to where the stream stands, those skipped among them."
    num_epochs: float
    "The same as a share of its samples: above 1 it was repeated."


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamReport:
    """A stream; `to_json` for logs."""

    spec_digest: str
    seq_len: int
    seed: int
    lanes: int
    window_shards: int
    global_batch_size: int
    dp_rank: int
    dp_world_size: int
    ranks_from: str
    num_samples: int | None
    next_sample: int
    blocks_checked: int
    "1 MiB blocks whose checksum this process compared."
    sources: tuple[SourceReport, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON values."""
        return {**asdict(self), "sources": [asdict(source) for source in self.sources]}


def make_report(plan: StreamPlan, *, next_sample: int, blocks_checked: int) -> StreamReport:
    """Returns the report of a stream that stands at `next_sample`."""
    order, spec, ranks = plan.order, plan.spec, plan.ranks
    drawn = order.drawn_before(next_sample) if next_sample else np.zeros(len(spec.sources), int)
    sources = tuple(
        SourceReport(
            name=source.name,
            num_shards=source.num_shards,
            num_samples=order.num_samples[source.name],
            num_drawn=int(num),
            num_epochs=int(num) / order.num_samples[source.name],
        )
        for source, num in zip(spec.sources, drawn, strict=True)
    )
    return StreamReport(
        spec_digest=spec.digest,
        seq_len=spec.seq_len,
        seed=spec.seed,
        lanes=spec.lanes,
        window_shards=spec.window_shards,
        global_batch_size=plan.segment().global_batch_size,
        dp_rank=ranks.dp_rank,
        dp_world_size=ranks.dp_world_size,
        ranks_from=ranks.found_in,
        num_samples=plan.num_samples,
        next_sample=next_sample,
        blocks_checked=blocks_checked,
        sources=sources,
    )
