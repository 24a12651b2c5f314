from __future__ import annotations

import numpy as np
import pytest
import xxhash

from tiering.checksums import BLOCK_BYTES, Buffer, block_checksum, block_checksums


def plain_checksums(data: bytes) -> list[int]:
    """The same, byte by byte and without numpy."""
    checksums = []
    while data:
        block, data = data[:1048576], data[1048576:]
        checksums.append(int.from_bytes(xxhash.xxh3_64_digest(block), "big"))
    return checksums


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0x2D06800538D394C2), (b"a", 0xE6C632B61E964E1F), (b"abc", 0x78AF5F94892F3950)],
    ids=["empty", "a", "abc"],
)
def test_checksum_is_xxh3_64(data: bytes, expected: int) -> None:
    assert block_checksum(data) == expected


@pytest.mark.parametrize(
    "size", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES + 5]
)
def test_blocks_agree_with_the_plain_twin(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    found = block_checksums(data)
    assert found.dtype == np.uint64
    assert found.tolist() == plain_checksums(data)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_gives_the_same(kind: type[Buffer]) -> None:
    assert block_checksums(kind(b"abc")).tolist() == plain_checksums(b"abc")


def test_wide_items_are_taken_as_bytes() -> None:
    tokens = np.arange(1000, dtype="<u2")
    assert block_checksums(tokens.data).tolist() == plain_checksums(tokens.tobytes())


def test_no_tokens_have_no_blocks() -> None:
    assert block_checksums(np.zeros(0, dtype="<u2").data).tolist() == []
