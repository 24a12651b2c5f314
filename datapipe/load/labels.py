"""From raw tokens to what a model is trained on: input_ids and labels."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from datapipe.dataset.parts import Int64s
from datapipe.load.buffers import TensorPool

__all__ = ["IGNORED", "LABELS", "Labels", "TensorMaker"]

Labels = Literal["next", "same"]
LABELS: tuple[Labels, ...] = ("next", "same")

IGNORED = -100
"""Label of a position without loss, what torch's cross entropy leaves out by default."""


class TensorMaker:
    """Casts a buffer of raw tokens to input_ids and labels."""

    def __init__(self, tokens: npt.NDArray[Any], *, labels: Labels, dtype: torch.dtype) -> None:
        """Takes the buffer [rows, T + 1] that is filled before every call.

        Args:
            tokens: the buffer.
            labels: "next": the token after each input; "same": the input itself.
            dtype: of both tensors; signed.
        """
        rows, self._seq_len = tokens.shape[0], tokens.shape[1] - 1
        shape = (2, rows, self._seq_len)
        width, item = tokens.strides
        shift = item if labels == "next" else 0
        # One cast fills both: the same bytes seen twice, the second time one token further.
        self._seen = np.lib.stride_tricks.as_strided(
            tokens, shape=shape, strides=(shift, width, item), writeable=False
        )
        self._pool = TensorPool(shape, dtype=dtype)

    def make(self, num_pairs: Int64s, *, is_short: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns contiguous input_ids and labels [rows, T] that nothing else writes.

        Args:
            num_pairs: pairs of each row; labels from there on are -100.
            is_short: whether any row has fewer than T.
        """
        both, filled = self._pool.take()
        np.copyto(filled, self._seen, casting="unsafe")
        if is_short:
            filled[1][np.arange(self._seq_len) >= num_pairs[:, None]] = IGNORED
        return both[0], both[1]
