"""How a stream delivers: what becomes of gathered rows, and where the stream ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from datapipe.errors import UsageError
from datapipe.load.gather import Gather
from datapipe.load.labels import LABELS, Labels, TensorMaker
from datapipe.load.sequence import PlannedBatch
from datapipe.order import Last

__all__ = ["Batch", "Delivery", "stream_limits"]

Batch = dict[str, Any]
"""`input_ids` and `labels` [batch_size, seq_len], `sample_end` int."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """How samples become what the stream yields."""

    rows: int | None
    "Rows of a batch on each rank; None: single samples."
    labels: Labels
    last: Last
    dtype: torch.dtype
    batches_per_step: int

    def __post_init__(self) -> None:
        if self.labels not in LABELS:
            raise UsageError(f"labels={self.labels!r}: it is one of {', '.join(LABELS)}")
        if self.last not in ("drop", "repeat"):
            raise UsageError(f"last={self.last!r}: it is drop or repeat")
        if self.rows is not None and self.rows < 1:
            raise UsageError(f"batch_size={self.rows}: it is at least 1, or None")
        if self.dtype not in (torch.int64, torch.int32):
            raise UsageError(f"dtype={self.dtype}: token ids are torch.int64 or torch.int32")

    def maker(self, gather: Gather) -> TensorMaker:
        """Returns what makes tensors of the tokens that were gathered."""
        return TensorMaker(gather.tokens, labels=self.labels, dtype=self.dtype)

    def tensors(self, gather: Gather, batch: PlannedBatch, maker: TensorMaker) -> Batch:
        """Returns a batch in tensors that nothing else writes."""
        rows = batch.rows
        gather.read(rows)
        inputs, labels = maker.make(rows.num_pairs, is_short=rows.is_short)
        if self.rows is None:
            inputs, labels = inputs[0], labels[0]
        return {"input_ids": inputs, "labels": labels, "sample_end": batch.sample_end}


def stream_limits(
    is_mixture: bool, epochs: int | None, max_samples: int | None, max_tokens: int | None
) -> dict[str, int | None]:
    """Returns the limits of `order.end_sample`: without a mixture, one epoch where none is given.

    Raises:
        UsageError: epochs with a mixture.
    """
    if is_mixture and epochs is not None:
        raise UsageError(
            f"epochs={epochs} with a mixture: each source has epochs of its own, so the stream has "
            "none; give max_samples or max_tokens"
        )
    if not is_mixture and epochs is None:
        epochs = 1
    return {"epochs": epochs, "max_samples": max_samples, "max_tokens": max_tokens}
