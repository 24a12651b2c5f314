"""Block checksums: xxh3-64 of every 1 MiB of raw bytes; the one implementation.

A range read is checked by the blocks it touches, without reading the whole object
(measured here: xxh3-64 runs at memory speed, SHA-256 at 1.7 GB/s).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import xxhash

__all__ = ["BLOCK_BYTES", "Buffer", "block_checksum", "block_checksums"]

BLOCK_BYTES = 1 << 20
"""Raw bytes under one checksum; part of the dataset format."""

Buffer = bytes | bytearray | memoryview
"""Contiguous bytes, by reference."""


def block_checksum(block: Buffer) -> int:
    """Returns the xxh3-64 of one block as an unsigned integer."""
    return xxhash.xxh3_64_intdigest(block)


def block_checksums(data: Buffer) -> npt.NDArray[np.uint64]:
    """Returns the checksum of each BLOCK_BYTES of `data`; the last block may be shorter."""
    return np.fromiter(map(block_checksum, _blocks(data)), dtype=np.uint64)


def _blocks(data: Buffer) -> Iterator[memoryview]:
    view = memoryview(data).cast("B")
    for start in range(0, len(view), BLOCK_BYTES):
        yield view[start : start + BLOCK_BYTES]
