"""The spec of a stream's order, from the stream's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from datapipe.load.sources import StreamSources
from datapipe.order import OrderSpec, Tail, resolve_lanes, rounded_skips

__all__ = ["Skips", "adopt_skips", "build_spec"]

Skips = Iterable[tuple[int, int]]
"""Ranges [g0, g1) of sample numbers."""


def build_spec(
    sources: StreamSources,
    *,
    seq_len: int,
    seed: int,
    lanes: int | None,
    window_shards: int,
    tail: Tail,
    skips: Sequence[tuple[int, int]],
    global_batch_size: int,
) -> OrderSpec:
    """Returns the spec; skips are rounded outwards to whole batches and rounds of the lanes.

    Raises:
        OrderError: an argument that can't be.
    """
    if lanes is None:
        shards = [source.num_shards for source in sources.spec]
        lanes = resolve_lanes(shards, window_shards=max(window_shards, 1))
    return OrderSpec(
        sources=sources.spec,
        seq_len=seq_len,
        seed=seed,
        lanes=lanes,
        window_shards=window_shards,
        tail=tail,
        phases=sources.phases,
        skips=rounded_skips(skips, global_batch_size=global_batch_size, lanes=lanes),
    )


def adopt_skips(
    spec: OrderSpec, *, earlier: OrderSpec, before: int, asked: Sequence[tuple[int, int]]
) -> OrderSpec:
    """Returns the spec with the skips that an earlier one has below a sample number.

    The same ranges are rounded otherwise at another batch size, but what was skipped stays so.
    Where the ranges asked for aren't those that the earlier spec rounded, the spec is returned as
    it is.

    Raises:
        OrderError: skips that can't be.
    """
    below = [(first, min(end, before)) for first, end in asked if first < min(end, before)]
    was = [(first, min(end, before)) for first, end in earlier.skips if first < before]
    covered = all(any(a <= first and end <= b for a, b in was) for first, end in below)
    wanted = all(any(first < b and a < end for first, end in below) for a, b in was)
    if not (covered and wanted) or spec.lanes != earlier.lanes:
        return spec
    kept = [skip for skip in earlier.skips if skip[0] < before]
    later = [(max(first, before), end) for first, end in spec.skips if end > before]
    aligned = [(-(-first // spec.lanes) * spec.lanes, end) for first, end in later]
    skips = kept + [(first, end) for first, end in aligned if first < end]
    return OrderSpec(
        sources=spec.sources,
        seq_len=spec.seq_len,
        seed=spec.seed,
        lanes=spec.lanes,
        window_shards=spec.window_shards,
        tail=spec.tail,
        phases=spec.phases,
        skips=tuple(skips),
        masks=spec.masks,
    )
