"""The options of a stream, checked one by one before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from datapipe.dataset.runs import check_run_name
from datapipe.errors import UsageError
from datapipe.load.arguments import (
    check_choice,
    check_integer,
    check_mixture,
    check_place,
    check_ranges,
    check_text,
)
from datapipe.load.labels import LABELS, Labels
from datapipe.order import LASTS, MAX_JSON_INTEGER, MAX_LANES, TAILS, Last, Phase, Tail

__all__ = ["StreamOptions"]

_MAX_BATCH_TOKENS = 1 << 30  # 16 GiB of two int64 tensors
_MAX_GLOBAL_BATCH = 1 << 24  # planned as arrays of so many numbers

_LEAST = {
    **dict.fromkeys(("seq_len", "batch_size", "epochs", "max_samples", "max_tokens"), 1),
    **dict.fromkeys(("lanes", "window_shards", "batches_per_step", "dp_world_size"), 1),
    **dict.fromkeys(("seed", "dp_rank"), 0),
}
_MOST = {"lanes": MAX_LANES, "seq_len": _MAX_BATCH_TOKENS, "dp_world_size": _MAX_GLOBAL_BATCH}
_OPTIONAL = {"batch_size", "epochs", "max_samples", "max_tokens", "lanes"} | {
    *("dp_rank", "dp_world_size")
}


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamOptions:
    """What `TokenStream` takes beside the data, in the types that it works with."""

    seq_len: int
    batch_size: int | None
    seed: int
    split: str
    mixture: Mapping[str, float] | Sequence[Phase] | None
    labels: Labels
    tail: Tail
    last: Last
    epochs: int | None
    max_samples: int | None
    max_tokens: int | None
    lanes: int | None
    window_shards: int
    dtype: torch.dtype
    skips: Sequence[tuple[int, int]]
    dp_rank: int | None
    dp_world_size: int | None
    batches_per_step: int
    run: str | None
    runs: str | None

    def __post_init__(self) -> None:
        """Raises UsageError for the first option that can't be."""
        for name, least in _LEAST.items():
            self._check_integer(name, least)
        self._set("labels", check_choice("labels", self.labels, allowed=LABELS))
        self._set("tail", check_choice("tail", self.tail, allowed=TAILS))
        self._set("last", check_choice("last", self.last, allowed=LASTS))
        self._set("skips", check_ranges("skips", self.skips))
        self._set("split", check_text("split", self.split))
        self._set("mixture", check_mixture(self.mixture))
        if self.run is not None:
            self._set("run", str(check_run_name(self.run)))
        if self.runs is not None:
            self._set("runs", check_place("runs", self.runs))
        self._check_dtype()
        self._check_epochs()
        self._check_batch()

    @property
    def rows(self) -> int:
        """Rows of a batch on each rank; single samples are batches of one."""
        return self.batch_size or 1

    @property
    def phases(self) -> tuple[Phase, ...] | None:
        """The phases of the mixture, None where there is none."""
        return check_mixture(self.mixture)

    def limits(self) -> dict[str, int | None]:
        """Returns the limits of `order.end_sample`: one epoch where none is given."""
        epochs = 1 if self.epochs is None and self.mixture is None else self.epochs
        return {"epochs": epochs, "max_samples": self.max_samples, "max_tokens": self.max_tokens}

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_integer(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if value is None and name in _OPTIONAL:
            return
        most = _MOST.get(name, MAX_JSON_INTEGER)
        self._set(name, check_integer(name, value, least=least, most=most))

    def _check_dtype(self) -> None:
        if not isinstance(self.dtype, torch.dtype) or self.dtype not in (torch.int64, torch.int32):
            raise UsageError(f"dtype={self.dtype!r}: it is torch.int64 or torch.int32")

    def _check_epochs(self) -> None:
        if self.mixture is not None and self.epochs is not None:
            raise UsageError(
                f"epochs={self.epochs} with a mixture: each source has epochs of its own, so the "
                "stream has none; give max_samples or max_tokens"
            )

    def _check_batch(self) -> None:
        tokens = self.rows * self.seq_len
        if tokens > _MAX_BATCH_TOKENS:
            raise UsageError(
                f"batch_size={self.batch_size} rows of seq_len={self.seq_len} tokens are {tokens} "
                f"tokens a batch: at most {_MAX_BATCH_TOKENS} fit; take smaller ones"
            )
        size = self.rows * (self.dp_world_size or 1)
        if size > _MAX_GLOBAL_BATCH:
            raise UsageError(
                f"batch_size={self.batch_size} on dp_world_size={self.dp_world_size} ranks are "
                f"{size} rows a global batch: at most {_MAX_GLOBAL_BATCH} can be; take smaller ones"
            )
