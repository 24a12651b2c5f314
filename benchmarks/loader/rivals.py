"""What most training code does: one memmap a file, one row at a time, collated by a DataLoader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset


class MemmapRows(Dataset[dict[str, torch.Tensor]]):
    """Rows of `seq_len` tokens and their labels, cut file by file; the last, short one left out."""

    def __init__(self, files: Sequence[Path], *, dtype: str, seq_len: int) -> None:
        self._maps = [np.memmap(file, dtype=dtype, mode="r") for file in files]
        self._seq_len = seq_len
        counts = [(len(tokens) - 1) // seq_len for tokens in self._maps]
        self._ends = np.cumsum(counts)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        if index >= len(self):
            raise IndexError(index)
        file = int(np.searchsorted(self._ends, index, side="right"))
        start = (index - (int(self._ends[file - 1]) if file else 0)) * self._seq_len
        tokens = self._maps[file][start : start + self._seq_len + 1].astype(np.int64)
        return {
            "input_ids": torch.from_numpy(tokens[:-1]),
            "labels": torch.from_numpy(tokens[1:]),
        }
