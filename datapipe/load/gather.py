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
from tiering.errors import StoreError

__all__ = ["Gather", "Rows"]


class Rows(NamedTuple):
    """Where the rows of a batch lie: int64 arrays of one length."""

    shard: Int64s
    "Flat shard number."
    start: Int64s
    "First token in the shard."
    num_pairs: Int64s
    "(input, label) pairs: the row reads one token more; fewer than T means padding."


class Gather:
    """Reads rows of T + 1 tokens; a row's rest behind its own tokens is EOS.

    The buffer is reused: what `read` returns is overwritten by the next call.
    """

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
        self._tokens: npt.NDArray[Any] = np.empty((num_rows, seq_len + 1), dtype=dtype)
        bytes_of = self._tokens.data.cast("B")
        width = (seq_len + 1) * dtype.itemsize
        self._targets = [[bytes_of[i * width : (i + 1) * width]] for i in range(num_rows)]

    def read(self, rows: Rows) -> npt.NDArray[Any]:
        """Returns the tokens of rows: [rows, T + 1], valid until the next call.

        Raises:
            DamagedError: a shard is missing, cut or not what its checksums say.
            LoadError: it can't be read.
        """
        item = self._index.token_bytes
        descriptors = self._files.descriptors(rows.shard)
        offset, length = rows.start * item, (rows.num_pairs + 1) * item
        self._check.ensure(self._files, shards=rows.shard, start=offset, end=offset + length)
        if descriptors.min() < 0:
            self._read_views(rows, offset, length)
        else:
            self._read_files(rows, descriptors, offset, length)
        num = rows.shard.size
        if rows.num_pairs.min() < self._seq_len:
            self._pad(rows)
        return self._tokens[:num]

    def _read_files(
        self, rows: Rows, descriptors: npt.NDArray[np.int32], offset: Int64s, length: Int64s
    ) -> None:
        # A short row is the end of its shard, so a whole row is asked for: the count says so.
        targets = self._targets[: rows.shard.size]
        try:
            counts = list(map(os.preadv, descriptors.tolist(), targets, offset.tolist()))
        except OSError as error:
            raise self._failed(rows, error) from error
        if not np.array_equal(counts, length):
            self._read_views(rows, offset, length)  # a network file system may give less at once

    def _read_views(self, rows: Rows, offset: Int64s, length: Int64s) -> None:
        for row, shard in enumerate(rows.shard.tolist()):
            target = self._targets[row][0][: int(length[row])]
            try:
                count = self._files.view(shard).read_into(target, int(offset[row]))
            except StoreError as error:
                raise self._failed(rows, error) from error
            if count != length[row]:
                raise DamagedError(
                    f"{self._index.describe(shard)} is cut: {count} of {int(length[row])} bytes "
                    f"read at byte {int(offset[row])}; none of its tokens are delivered; restore "
                    "it, or run `datapipe verify`"
                )

    def _pad(self, rows: Rows) -> None:
        short = np.flatnonzero(rows.num_pairs < self._seq_len)
        behind = np.arange(self._seq_len + 1) > rows.num_pairs[short, None]
        self._tokens[short] = np.where(behind, self._eos_id, self._tokens[short])

    def _failed(self, rows: Rows, error: OSError) -> LoadError:
        shards = ", ".join(self._index.describe(s) for s in np.unique(rows.shard)[:4].tolist())
        return LoadError(
            f"a batch couldn't be read: {error}; it needs {shards}; the stream stops at this "
            "batch; resume from its last state when the cause is gone"
        )
