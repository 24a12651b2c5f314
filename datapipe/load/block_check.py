"""The check of blocks on first touch: no token leaves a block before its checksum was compared.

Each process checks each 1 MiB block once; the read warms the page cache for the batches to come.
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from datapipe.dataset.parts import Int64s
from datapipe.errors import DamagedError, LoadError
from datapipe.load.shard_files import ShardFiles
from datapipe.load.shard_index import ShardIndex
from tiering.checksums import BLOCK_BYTES, block_checksum
from tiering.errors import StoreError

__all__ = ["BlockCheck"]


class BlockCheck:
    """Which blocks of a stream's shards this process has checked: a byte a block."""

    def __init__(self, index: ShardIndex) -> None:
        self._index = index
        self._checked = np.zeros(int(index.first_block[-1]), dtype=np.bool_)
        self._buffer: memoryview | None = None
        self._lock = Lock()  # iterators of several threads share the buffer

    @property
    def num_checked(self) -> int:
        """Blocks checked."""
        return int(np.count_nonzero(self._checked))

    def ensure(
        self,
        files: ShardFiles,
        *,
        shards: Int64s,
        first: Int64s,
        last: Int64s,
        is_long: bool,
    ) -> None:
        """Checks the blocks of ranges that weren't yet.

        Args:
            files: has the shards open.
            shards: flat number of each range's shard.
            first: block of each range's first byte, among the blocks of all shards.
            last: block of its last byte.
            is_long: whether a range may have blocks between the two, so that each is looked at.

        Raises:
            DamagedError: a block isn't what its checksum says.
            LoadError: it can't be read.
        """
        if not is_long and self._checked[first].all() and self._checked[last].all():
            return
        ranges = zip(shards.tolist(), first.tolist(), last.tolist(), strict=True)
        with self._lock:
            for shard, start, stop in ranges:
                for block in range(start, stop + 1):
                    if not self._checked[block]:
                        self._check(files, shard, block - int(self._index.first_block[shard]))
                        self._checked[block] = True

    def _check(self, files: ShardFiles, shard: int, block: int) -> None:
        data = self._read(files, shard, block)
        dataset, source, number = self._index.place(shard)
        expected = int(dataset.block_checksums(source, number)[block])
        actual = block_checksum(data)
        if actual != expected:
            raise DamagedError(
                f"{self._index.describe(shard)} is damaged: block {block} (bytes from "
                f"{block * BLOCK_BYTES}) has xxh3 {actual:016x}, {expected:016x} expected; none of "
                f"its tokens are delivered; {self._index.to_repair(shard)}"
            )

    def _read(self, files: ShardFiles, shard: int, block: int) -> memoryview:
        offset = block * BLOCK_BYTES
        length = min(BLOCK_BYTES, self._index.size(shard) - offset)
        if self._buffer is None:
            self._buffer = memoryview(bytearray(BLOCK_BYTES))
        data = self._buffer[:length]
        try:
            count = files.view(shard).read_into(data, offset)
        except StoreError as error:
            raise LoadError(
                f"{self._index.describe(shard)} can't be read at byte {offset}: {error}; the "
                "stream stops at this batch; resume from its last state when the cause is gone"
            ) from error
        if count != length:
            raise DamagedError(
                f"{self._index.describe(shard)} is cut: {count} of {length} bytes read at byte "
                f"{offset}; none of its tokens are delivered; "
                f"{self._index.to_repair(shard)}"
            )
        return data
