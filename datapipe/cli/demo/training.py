"""The training part of the demo: a tiny model, a stop in the middle, another world size."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from datapipe.dataset import Dataset
from datapipe.load import TokenStream
from datapipe.load.tiny_model import TinyTraining

__all__ = ["check_resume", "train"]

_SEQ_LEN = 128
_BATCH_SIZE = 8
_NUM_BATCHES = 300
_STOP_AFTER = 140
_RESUMED_RANKS = 2
_CHECKED_BATCHES = 120


def train(dataset: Dataset, say: Callable[[str], None], *, run: str) -> dict[str, float]:
    """Trains on _NUM_BATCHES global batches, with a stop and another world size in the middle.

    Returns the first and the last losses, means of 20 batches.
    """
    training = TinyTraining(vocab_size=dataset.vocab_size, seed=0)
    losses: list[float] = []
    first = _stream(dataset, run=run)
    state: dict[str, Any] = {}
    for batch in islice(first, _STOP_AFTER):
        losses.append(training.step(batch))
        state = first.state_dict(after=batch)
        _report(losses, say)
    say(f"stopped after batch {_STOP_AFTER}; the whole state is {state}")
    rest = _ranks(dataset, state, run=run)
    for batches in islice(rest, _NUM_BATCHES - _STOP_AFTER):
        losses.append(training.step(*batches))
        _report(losses, say)
    return {"first_loss": _mean(losses[:20]), "last_loss": _mean(losses[-20:])}


def _report(losses: list[float], say: Callable[[str], None]) -> None:
    if len(losses) % 50 == 0:
        say(f"batch {len(losses):4d}  loss {_mean(losses[-20:]):.3f}")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def check_resume(dataset: Dataset) -> dict[str, int]:
    """Counts samples of an undisturbed pass against one that stops and goes on with two ranks.

    Samples are compared by the bytes that were delivered, not by what the order says.
    """
    whole = Counter(
        row for batch in islice(_stream(dataset), _CHECKED_BATCHES) for row in _rows(batch)
    )
    stream = _stream(dataset)
    parts: Counter[bytes] = Counter()
    state: dict[str, Any] = stream.state_dict()
    for batch in islice(stream, _CHECKED_BATCHES // 3):
        parts.update(_rows(batch))
        state = stream.state_dict(after=batch)
    for batches in islice(_ranks(dataset, state), _CHECKED_BATCHES - _CHECKED_BATCHES // 3):
        for batch in batches:
            parts.update(_rows(batch))
    return {
        "samples": whole.total(),
        "lost": (whole - parts).total(),
        "repeated": (parts - whole).total(),
    }


def _rows(batch: dict[str, Any]) -> Iterator[bytes]:
    for row in batch["input_ids"].numpy():
        yield hashlib.blake2b(row.tobytes(), digest_size=16).digest()


def _ranks(
    dataset: Dataset, state: dict[str, Any], run: str | None = None
) -> Iterator[tuple[dict[str, Any], ...]]:
    """Yields the batches of all ranks of the resumed job, step by step."""
    streams = [
        _stream(dataset, rank=rank, ranks=_RESUMED_RANKS, run=run) for rank in range(_RESUMED_RANKS)
    ]
    for stream in streams:
        stream.load_state_dict(state)
    return zip(*streams, strict=True)


def _stream(
    dataset: Dataset, *, rank: int = 0, ranks: int = 1, run: str | None = None
) -> TokenStream:
    return TokenStream(
        dataset,
        seq_len=_SEQ_LEN,
        batch_size=_BATCH_SIZE // ranks,
        seed=7,
        mixture={"stdlib": 0.5, "packages": 0.4, "texts": 0.1},
        max_samples=_NUM_BATCHES * _BATCH_SIZE,
        dp_rank=rank,
        dp_world_size=ranks,
        run=run,
    )
