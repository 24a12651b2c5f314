"""Where a stream ends: epochs of one source, or a number of samples or tokens."""

from __future__ import annotations

from datapipe.errors import OrderError
from datapipe.order.locate import Order
from datapipe.order.mixture import MAX_SAMPLE
from datapipe.order.skips import Delivered

__all__ = ["end_sample"]


def end_sample(
    order: Order,
    *,
    epochs: int | None = None,
    max_samples: int | None = None,
    max_tokens: int | None = None,
) -> int | None:
    """Returns one after the last sample number of a stream, None for one without end.

    Where several limits are given, the first that is reached counts.

    Args:
        order: the order of the stream.
        epochs: epochs of its only source; skipped samples are part of their epoch.
        max_samples: delivered samples from sample number 0 on.
        max_tokens: the same in tokens, T a sample, padding included; part of a sample is left out.

    Raises:
        OrderError: epochs with several sources, or a limit below 1 sample.
    """
    seq_len = order.spec.seq_len
    if max_tokens is not None:
        whole = max_tokens // seq_len
        max_samples = whole if max_samples is None else min(max_samples, whole)
    ends = [] if epochs is None else [_end_of_epochs(order, epochs)]
    if max_samples is not None:
        if max_samples < 1:
            raise OrderError(
                f"max_samples={max_samples}, max_tokens={max_tokens} is less than one sample of "
                f"{seq_len} tokens: the stream would be empty; raise the limit"
            )
        ends.append(int(Delivered(order.spec.skips).nth(max_samples - 1)) + 1)
    return min(ends) if ends else None


def _end_of_epochs(order: Order, epochs: int) -> int:
    if len(order.sources) > 1:
        raise OrderError(
            f"epochs={epochs} with {len(order.sources)} sources: a mixture has no epochs, each "
            "source has its own; limit the stream by max_samples or max_tokens"
        )
    end = epochs * order.sources[0].num_samples
    if not 0 < end < MAX_SAMPLE:
        raise OrderError(
            f"epochs={epochs} of {order.sources[0].num_samples} samples end at sample {end}: "
            f"epochs are at least 1 and samples below {MAX_SAMPLE}"
        )
    return end
