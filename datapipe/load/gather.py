"""The gather: rows of tokens from open shards into one reused buffer, with no Python by the row.

`preadv` of all rows of a batch runs as one `map` in C, straight into the buffer's rows; what
follows is one vectorised cast (`labels.py`).
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from datapipe.dataset.parts import Int64s
from datapipe.errors import DamagedError, LoadError
from datapipe.load.block_check import BlockCheck
from datapipe.load.shard_files import ShardFiles
from datapipe.load.shard_index import ShardIndex
from tiering.checksums import BLOCK_BYTES
from tiering.errors import StoreError

__all__ = ["Gather", "Rows", "plan_rows"]


class Rows(NamedTuple):
    """Where the rows of a batch lie; arrays and lists of one length."""

    shard: Int64s
    "Flat shard numbers."
    num_pairs: Int64s
    "(input, label) pairs: a row reads one token more; fewer than T means padding."
    offset: list[int]
    "First byte in the shard."
    length: list[int]
    "Bytes to read."
    first_block: Int64s
    "The block of the first byte, among the blocks of all shards."
    last_block: Int64s
    "The block of the last byte."
    is_short: bool
    "Whether any row is padded."


def plan_rows(
    index: ShardIndex, *, shards: Int64s, starts: Int64s, num_pairs: Int64s, seq_len: int
) -> list[Rows]:
    """Returns the rows of batches; all arrays are [batches, rows], starts in tokens."""
    offset = starts * index.token_bytes
    length = (num_pairs + 1) * index.token_bytes
    base = index.first_block[shards]
    first, last = base + offset // BLOCK_BYTES, base + (offset + length - 1) // BLOCK_BYTES
    is_padded = np.min(num_pairs, axis=1) < seq_len
    offsets, lengths, is_short = offset.tolist(), length.tolist(), is_padded.tolist()
    return list(map(Rows, shards, num_pairs, offsets, lengths, first, last, is_short))


class Gather:
    """Reads rows of T + 1 tokens; a row's rest behind its own tokens is EOS."""

    def __init__(
        self,
        index: ShardIndex,
        *,
        files: ShardFiles,
        check: BlockCheck,
        num_rows: int,
        seq_len: int,
        eos_id: int,
    ) -> None:
        self._index, self._files, self._check = index, files, check
        self._seq_len, self._eos_id = seq_len, eos_id
        dtype = index.datasets[0].token_dtype
        self.tokens: npt.NDArray[Any] = np.empty((num_rows, seq_len + 1), dtype=dtype)
        "[rows, T + 1], overwritten by every `read`."
        bytes_of = self.tokens.data.cast("B")
        width = (seq_len + 1) * dtype.itemsize
        self._is_long = width > BLOCK_BYTES
        self._targets = [[bytes_of[i * width : (i + 1) * width]] for i in range(num_rows)]

    def read(self, rows: Rows) -> None:
        """Fills `tokens` with as many rows as it has.

        Raises:
            DamagedError: a shard is missing, cut or not what its checksums say.
            LoadError: it can't be read.
        """
        descriptors = self._files.descriptors(rows.shard)
        self._check.ensure(
            self._files,
            shards=rows.shard,
            first=rows.first_block,
            last=rows.last_block,
            is_long=self._is_long,
        )
        self._read_files(rows, descriptors)
        if rows.is_short:
            self._pad(rows)

    def _read_files(self, rows: Rows, descriptors: list[int]) -> None:
        # A short row is the end of its shard, so a whole row is asked for: the count says so.
        try:
            counts = list(map(os.preadv, descriptors, self._targets, rows.offset))
        except OSError as error:
            if min(descriptors) >= 0:
                raise self._failed(rows, error) from error
            counts = []
        if counts != rows.length:
            self._read_views(rows)  # not a local file, or one that gives less at once

    def _read_views(self, rows: Rows) -> None:
        for row, shard in enumerate(rows.shard.tolist()):
            length, offset = rows.length[row], rows.offset[row]
            try:
                view = self._files.view(shard)
                count = view.read_into(self._targets[row][0][:length], offset)
            except StoreError as error:
                raise self._failed(rows, error) from error
            if count != length:
                raise DamagedError(
                    f"{self._index.describe(shard)} is cut: {count} of {length} bytes read at byte "
                    f"{offset}; none of its tokens are delivered; {self._index.to_repair(shard)}"
                )

    def _pad(self, rows: Rows) -> None:
        short = np.flatnonzero(rows.num_pairs < self._seq_len)
        behind = np.arange(self._seq_len + 1) > rows.num_pairs[short, None]
        self.tokens[short] = np.where(behind, self._eos_id, self.tokens[short])

    def _failed(self, rows: Rows, error: OSError) -> LoadError:
        shards = ", ".join(self._index.describe(s) for s in np.unique(rows.shard)[:4].tolist())
        return LoadError(
            f"a batch couldn't be read: {error}; it needs {shards}; the stream stops at this "
            "batch; resume from its last state when the cause is gone"
        )
