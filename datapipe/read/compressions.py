"""How a file is compressed, by its first bytes, and how it is unpacked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Literal

from datapipe.read.gzip_stream import GZIP_MAGIC, gunzip
from datapipe.read.member_streams import BZIP2, LZ4, LZMA, XZ, is_lzma, unpack
from datapipe.read.zstd_stream import is_skippable, is_zstd, unzstd

__all__ = ["Compression", "compression_of", "unpacked"]

Compression = Literal["none", "gzip", "zstd", "bz2", "xz", "lzma", "lz4"]

_UNPACK: Mapping[Compression, Callable[[Iterator[bytes]], Iterator[bytes]]] = {
    "none": iter,
    "gzip": gunzip,
    "zstd": unzstd,
    "bz2": partial(unpack, codec=BZIP2),
    "xz": partial(unpack, codec=XZ),
    "lzma": partial(unpack, codec=LZMA),
    "lz4": partial(unpack, codec=LZ4),
}
_BZIP2_STARTS = [
    b"BZh%d" % level + block for level in range(1, 10) for block in (b"1AY&SY", b"\x17rE8P\x90")
]


def unpacked(chunks: Iterator[bytes], compression: Compression) -> Iterator[bytes]:
    """Yields the uncompressed bytes.

    Raises:
        StreamDamage: after the last byte that could be had.
        InputError: the library for this compression isn't installed.
    """
    return _UNPACK[compression](chunks)


def compression_of(head: bytes) -> Compression:
    """Returns how a file is compressed that starts with `head`; 13 bytes suffice for most."""
    if len(head) > 1 and GZIP_MAGIC.startswith(head[:3]):
        return "gzip"
    if head[_skippable_bytes(head) :].startswith(LZ4.magic):
        return "lz4"
    if is_zstd(head):
        return "zstd"
    if len(head) > 2 and any(start.startswith(head[:10]) for start in _BZIP2_STARTS):
        return "bz2"
    if len(head) > 2 and XZ.magic.startswith(head[:6]):
        return "xz"
    return "lzma" if is_lzma(head) else "none"


def _skippable_bytes(head: bytes) -> int:
    """Returns how long the frames to be passed over are that a zstd or lz4 file starts with."""
    size = 0
    while is_skippable(head[size : size + 4]) and len(head) >= size + 8:
        size += 8 + int.from_bytes(head[size + 4 : size + 8], "little")
    return size
