"""Megatron's index of a file of tokens: `<prefix>.idx` beside `<prefix>.bin`.

The data file is what a token shard is already: ids without a header. The index is little-endian:
9 bytes of magic, uint64 1, uint8 code of the token type, uint64 sequences, uint64 documents + 1,
int32 lengths in tokens, int64 places in bytes, int64 the sequences that documents begin at. Here a
document is one sequence.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from datapipe.errors import UsageError

__all__ = ["Lengths", "index_bytes", "token_code"]

Lengths = Sequence[npt.NDArray[np.int32]]
"""Tokens of each document, in as many arrays as is handy."""

_MAGIC = b"MMIDIDX\x00\x00"
_CODES = {np.dtype(np.uint16): 8, np.dtype(np.uint32): 4}
"""There is no unsigned type of 32 bits, but ids below 2**31 are the same bytes as int32."""
_AT_ONCE = 1 << 20


def token_code(dtype: np.dtype[Any], *, max_id: int) -> int:
    """Returns the index's code for a dataset's tokens. Raises: UsageError: there is none."""
    if max_id >= 1 << 31:
        raise UsageError(
            f"token ids go up to {max_id}, Megatron's largest is {(1 << 31) - 1}; nothing was "
            "exported; such a dataset can't be read there"
        )
    return _CODES[dtype]


def index_bytes(lengths: Lengths, dtype: np.dtype[Any], *, max_id: int) -> Iterator[bytes]:
    """Yields an index piece by piece.

    Args:
        lengths: tokens of each document in the order of the data file, which they cover.
        dtype: of the tokens.
        max_id: largest id.
    """
    count = sum(len(part) for part in lengths)
    yield _MAGIC + struct.pack("<QBQQ", 1, token_code(dtype, max_id=max_id), count, count + 1)
    for part in lengths:
        yield part.astype("<i4").tobytes()
    place = 0
    for part in lengths:
        ends = place + np.cumsum(part, dtype=np.int64) * dtype.itemsize
        yield np.concatenate([[place], ends[:-1]]).astype("<i8").tobytes() if len(part) else b""
        place = int(ends[-1]) if len(part) else place
    for start in range(0, count + 1, _AT_ONCE):
        yield np.arange(start, min(start + _AT_ONCE, count + 1), dtype="<i8").tobytes()
