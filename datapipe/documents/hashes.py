"""Hashes of many documents at once, straight from the Arrow buffers.

Measured on one core: 0.7 us a document plus 1.1 ns a byte for content hashes (BLAKE2b runs at
0.9 GB/s), 0.8 us a document for identities. No string object is made for a text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.dataset.hashing import hashed_tuple
from datapipe.dataset.tables import HASH_BYTES

__all__ = ["content_hashes", "doc_ids"]

_LOCATOR = np.dtype(
    [
        ("offset_size", "<u8"),
        ("offset", "<i8"),
        ("length_size", "<u8"),
        ("length", "<i8"),
        ("hash_size", "<u8"),
        ("content_hash", f"V{HASH_BYTES}"),
    ]
)


def content_hashes(texts: pa.Array) -> pa.FixedSizeBinaryArray:
    """Returns the BLAKE2b-128 of each text's UTF-8 bytes, in order.

    Args:
        texts: string, large_string, binary or large_binary, without nulls.
    """
    offsets = _value_offsets(texts).tolist()
    values = texts.buffers()[2]
    data = memoryview(values) if values is not None else memoryview(b"")
    return _fixed(
        [
            blake2b(data[start:stop], digest_size=HASH_BYTES).digest()
            for start, stop in itertools.pairwise(offsets)
        ]
    )


def doc_ids(
    content_hash: pa.FixedSizeBinaryArray,
    *,
    source: str,
    source_file: str,
    offsets: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
) -> pa.FixedSizeBinaryArray:
    """Returns each document's identity: BLAKE2b-128 of the hashed tuple (source, file, offset,
    length, content hash).

    All documents are of one source and one file.
    """
    fields = np.empty(len(content_hash), dtype=_LOCATOR)
    fields["offset_size"] = fields["length_size"] = 8
    fields["hash_size"] = HASH_BYTES
    fields["offset"], fields["length"] = offsets, lengths
    fields["content_hash"] = _raw_hashes(content_hash)
    start = blake2b(hashed_tuple(source, source_file), digest_size=HASH_BYTES)
    data, size = memoryview(fields.tobytes()), _LOCATOR.itemsize

    def digest(position: int) -> bytes:
        state = start.copy()
        state.update(data[position : position + size])
        return state.digest()

    return _fixed(map(digest, range(0, len(data), size)))


def _value_offsets(texts: pa.Array) -> npt.NDArray[np.signedinteger]:
    wide = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    dtype = np.dtype(np.int64 if wide else np.int32)
    buffer = texts.buffers()[1]
    if buffer is None or not len(texts):
        return np.zeros(1, dtype=dtype)
    start = texts.offset * dtype.itemsize
    return np.frombuffer(buffer, dtype=dtype, count=len(texts) + 1, offset=start)


def _raw_hashes(hashes: pa.FixedSizeBinaryArray) -> npt.NDArray[np.void]:
    buffer = hashes.buffers()[1]
    if buffer is None or not len(hashes):
        return np.empty(0, dtype=f"V{HASH_BYTES}")
    start = hashes.offset * HASH_BYTES
    return np.frombuffer(buffer, dtype=f"V{HASH_BYTES}", count=len(hashes), offset=start)


def _fixed(digests: Iterable[bytes]) -> pa.FixedSizeBinaryArray:
    data = b"".join(digests)
    buffers = [None, pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(HASH_BYTES), len(data) // HASH_BYTES, buffers)
