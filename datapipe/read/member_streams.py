"""bzip2, xz, lzma and lz4: members one behind the other, each with an end that its decoder sees.

A call's output is bounded, so a ratio bomb costs time and no memory. (gzip and zstd stand on their
own: their decoders are asked for more.)
"""

from __future__ import annotations

import bz2
import lzma
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Protocol

from datapipe.read.byte_source import ByteSource
from datapipe.read.damage import RAW_LIMIT_BYTES, StreamDamage
from datapipe.read.packages import need_package
from datapipe.read.zstd_stream import is_skippable

__all__ = ["BZIP2", "LZ4", "LZMA", "XZ", "Codec", "is_lzma", "unpack"]

_OUTPUT_BYTES = 1 << 20
_INPUT_BYTES = 1 << 14
"""Given to a decoder at once: what a failing call had put out is lost."""
_MEMORY_BYTES = (1 << 31) + (1 << 26)
"""An xz dictionary may take so much; 1.5 GiB is the format's most."""


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Codec:
    """A compression whose files are members."""

    name: str
    """As in `truncated_...` and `corrupt_...`."""
    magic: bytes
    """What a member starts with."""
    decoder: Callable[[], _Decoder]
    """Makes a decoder of one member."""
    has_skippable: bool = False
    """Whether frames to be passed over may stand between members."""
    is_single: bool = False
    """Whether a file is one member."""


def _lz4_decoder() -> _Decoder:
    need_package("lz4", "lz4 files")
    import lz4.frame

    decoder: _Decoder = lz4.frame.LZ4FrameDecompressor()
    return decoder


BZIP2 = Codec(name="bz2", magic=b"BZh", decoder=bz2.BZ2Decompressor)
XZ = Codec(
    name="xz",
    magic=b"\xfd7zXZ\x00",
    decoder=lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_BYTES),
)
LZMA = Codec(
    name="lzma",
    magic=b"\x5d\x00\x00",
    decoder=lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=_MEMORY_BYTES),
    is_single=True,
)
LZ4 = Codec(name="lz4", magic=b"\x04\x22\x4d\x18", decoder=_lz4_decoder, has_skippable=True)


def is_lzma(head: bytes) -> bool:
    """Tells whether a file that starts with `head` is lzma as its tools write it.

    The format has no mark: usual properties, a dictionary size that is a power of two (or one and a
    half), and a content size that isn't known or below 256 GiB.
    """
    if len(head) < 13 or not head.startswith(LZMA.magic):
        return False
    dictionary, size = int.from_bytes(head[1:5], "little"), int.from_bytes(head[5:13], "little")
    usual = any(dictionary in (1 << power, 3 << (power - 1)) for power in range(16, 31))
    return usual and (size == (1 << 64) - 1 or size < 1 << 38)


def unpack(chunks: Iterator[bytes], codec: Codec) -> Iterator[bytes]:
    """Yields the members' contents, one behind the other. Zero bytes behind one are padding.

    Raises:
        StreamDamage: truncated_..., corrupt_... or trailing_garbage, after all bytes that can be
            had; those of a corrupt member may be wrong.
        InputError: the library for it isn't installed.
    """
    source = ByteSource(chunks=chunks, ended=lambda: _truncated(codec))
    members = trusted = 0
    while head := source.peek(max(len(codec.magic), 4)):
        if members and source.skip_any(b"\0"):
            continue
        if head.startswith(codec.magic) and not (members and codec.is_single):
            try:
                trusted += yield from _member(source, codec)
            except StreamDamage as damage:
                damage.trusted = trusted if damage.error.startswith("corrupt_") else None
                raise
        elif codec.has_skippable and is_skippable(head[:4]):
            source.skip(int.from_bytes(source.take(8)[4:], "little"))
        elif _may_begin(codec, head):
            raise _truncated(codec)
        else:
            raise _not_a_member(source, codec, members)
        members += 1


def _may_begin(codec: Codec, head: bytes) -> bool:
    """Tells whether the file ends so early that this may be how a member or frame begins."""
    if codec.has_skippable and len(head) < 4 and head[0] >> 4 == 5:
        return True
    return len(head) < len(codec.magic) and codec.magic.startswith(head)


def _member(source: ByteSource, codec: Codec) -> Generator[bytes, None, int]:
    """Yields one member's content; returns how many bytes it has."""
    num_bytes = 0
    decoder = codec.decoder()
    while not decoder.eof:
        data = source.take_some(_INPUT_BYTES) if decoder.needs_input else b""
        try:
            output = decoder.decompress(data, _OUTPUT_BYTES)
        except (OSError, lzma.LZMAError, RuntimeError, EOFError) as error:
            raise _damaged(codec, error) from error
        if output:
            yield output
        elif not data and decoder.needs_input and not decoder.eof:
            raise _truncated(codec)
        num_bytes += len(output)
    source.untake(len(decoder.unused_data or b""))
    return num_bytes


def _truncated(codec: Codec) -> StreamDamage:
    detail = f"the file ends inside its {codec.name} data"
    return StreamDamage(f"truncated_{codec.name}", detail, truncated=True)


def _damaged(codec: Codec, error: Exception) -> StreamDamage:
    reason = str(error).rsplit(": ", 1)[-1].lower()
    detail = f"the {codec.name} data is damaged: {reason}"
    return StreamDamage(f"corrupt_{codec.name}", detail, truncated=True)


def _not_a_member(source: ByteSource, codec: Codec, members: int) -> StreamDamage:
    raw = source.peek(RAW_LIMIT_BYTES)
    if not members:
        detail = f"this isn't {codec.name} data"
        return StreamDamage(f"corrupt_{codec.name}", detail, raw=raw, truncated=True)
    detail = f"bytes that aren't {codec.name} follow the data"
    return StreamDamage("trailing_garbage", detail, raw=raw, truncated=True)
