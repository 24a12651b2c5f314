"""From raw tokens to what a model is trained on: input_ids and labels."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from datapipe.dataset.parts import Int64s

__all__ = ["IGNORED", "LABELS", "Labels", "make_tensors"]

Labels = Literal["next", "same"]
LABELS: tuple[Labels, ...] = ("next", "same")

IGNORED = -100
"""Label of a position without loss, what torch's cross entropy leaves out by default."""


def make_tensors(
    tokens: npt.NDArray[Any], *, num_pairs: Int64s, labels: Labels, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns new, contiguous input_ids and labels [rows, T] of raw tokens [rows, T + 1].

    Args:
        tokens: what `Gather.read` returned; copied, so the buffer may be used again.
        num_pairs: pairs of each row; labels from there on are -100.
        labels: "next": the token after each input; "same": the input itself.
        dtype: of both tensors; signed.
    """
    rows, seq_len = tokens.shape[0], tokens.shape[1] - 1
    both = torch.empty((2, rows, seq_len), dtype=dtype)
    item, width = tokens.strides[1], tokens.strides[0]
    shift = item if labels == "next" else 0
    # One cast fills both: the same bytes seen twice, the second time one token further.
    seen = np.lib.stride_tricks.as_strided(
        tokens, shape=(2, rows, seq_len), strides=(shift, width, item), writeable=False
    )
    np.copyto(both.numpy(), seen, casting="unsafe")
    if num_pairs.min() < seq_len:
        behind = np.arange(seq_len) >= num_pairs[:, None]
        both[1].numpy()[behind] = IGNORED
    return both[0], both[1]
