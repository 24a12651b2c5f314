"""Memory for delivered batches, used again once nobody holds a tensor of it.

A new tensor for every batch costs more in page faults than filling it does (measured at [2, 16,
2048] int64: 24 us of CPU with new memory, 11 us without). A delivered tensor keeps its memory
referenced, also through views, NumPy arrays and DLPack, so the count of references says whether
it may be written again: what a user still holds never changes.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["TensorPool"]

_KEPT = 4


class TensorPool:
    """Tensors of one shape and dtype. Not for use by several threads at once."""

    def __init__(self, shape: tuple[int, ...], *, dtype: torch.dtype) -> None:
        self._shape = shape
        self._dtype = torch.empty(0, dtype=dtype).numpy().dtype
        self._arrays: list[npt.NDArray[Any]] = []

    def take(self) -> tuple[torch.Tensor, npt.NDArray[Any]]:
        """Returns a tensor that nobody else holds, and the array of the same memory to fill it.

        The contents are undefined. The array must be let go before the tensor is handed on.
        """
        array = self._idle()
        return torch.from_numpy(array), array

    def _idle(self) -> npt.NDArray[Any]:
        arrays = self._arrays
        for index in range(len(arrays)):
            if sys.getrefcount(arrays[index]) == _FREE:
                return arrays[index]
        array = np.empty(self._shape, dtype=self._dtype)
        if len(arrays) < _KEPT:
            arrays.append(array)
        return array


def _references_of_idle() -> int:
    """Returns what `getrefcount` says of an array that only a list holds, on this interpreter."""
    arrays = [np.empty(0)]
    return sys.getrefcount(arrays[0])


_FREE = _references_of_idle()
