"""Going on where a state was saved: what a batch says of it, and what a stream makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from datapipe.dataset.runs import RunStore
from datapipe.errors import StateError
from datapipe.load.plan import StreamPlan
from datapipe.load.recording import find_spec
from datapipe.load.spec import adopt_skips
from datapipe.order import Delivered, State, accept_state

__all__ = ["resume", "sample_after"]


def resume(
    plan: StreamPlan, state: Mapping[str, Any], *, places: Sequence[RunStore]
) -> tuple[StreamPlan, int]:
    """Returns the stream that continues a state, and the sample number at which it goes on.

    Args:
        plan: the stream as it was asked for.
        state: what `state_dict` returned.
        places: where the spec of an earlier order may be recorded.

    Raises:
        StateError: no state, one of an order that differs below its sample number, or one that
            lies behind the stream's end.
        OrderError: with the skips of the earlier order there is no order.
        DamagedError: the earlier spec was found and is damaged.
    """
    saved = State.from_json(state)
    spec, earlier = plan.spec, None
    if saved.spec_digest != spec.digest:
        earlier = find_spec(places, saved.spec_digest)
    if earlier is not None:
        asked = tuple(plan.options.skips)
        spec = adopt_skips(spec, earlier=earlier, before=saved.next_sample, asked=asked)
    searched = [place.place for place in places]
    sample = accept_state(saved, spec=spec, earlier=earlier, searched=searched)
    continued = plan if spec == plan.spec else plan.with_spec(spec)
    if continued.end is not None and sample > continued.end:
        raise StateError(
            f"the state is at sample {sample} and the stream ends at sample {continued.end}: "
            "nothing is left to deliver, and what was trained on isn't a part of this stream; "
            "give it as many epochs (max_samples, max_tokens) as the stream of the state had, or "
            "more"
        )
    return continued, sample


def sample_after(plan: StreamPlan, batch: Mapping[str, Any]) -> int:
    """Returns next_sample after a batch, or after single samples that a loader put together.

    Raises:
        StateError: it is no batch of a stream, or its samples don't follow each other.
    """
    ends = _sample_ends(batch)
    counts = Delivered(plan.spec.skips).before(ends)
    if (np.diff(counts) != plan.segment().global_batch_size).any():
        raise StateError(
            "the rows of this batch aren't consecutive samples, so no single number says what "
            "was trained on: DataLoader workers take turns by sample. Let the stream make the "
            "batches: TokenStream(batch_size=...) and DataLoader(stream, batch_size=None)"
        )
    return int(ends[-1])


def _sample_ends(batch: Mapping[str, Any]) -> npt.NDArray[np.int64]:
    try:
        ends = np.atleast_1d(np.asarray(batch["sample_end"]))
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise StateError(
            "state_dict(after=...) takes a batch of this stream, which has a `sample_end`; what "
            f"was given is {type(batch).__name__} without one"
        ) from error
    if ends.dtype.kind not in "iu" or ends.ndim != 1 or not ends.size or ends.min() < 0:
        raise StateError(
            "state_dict(after=...) takes a batch of this stream, whose `sample_end` is a sample "
            f"number; here it is {str(batch['sample_end'])[:80]!r}; pass the batch unchanged"
        )
    return ends.astype(np.int64)
