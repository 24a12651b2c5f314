"""zstd in all its shapes: many frames, skippable frames, long windows, cut anywhere.

The decoder is fed one block at a time, and a block holds at most 128 KiB, so a ratio bomb costs
time and no memory; and where a frame ends is known exactly, so a cut is always seen (the library's
own stream reader takes the end of the input for the end of the data).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import zstandard

from datapipe.read.byte_source import ByteSource
from datapipe.read.damage import RAW_LIMIT_BYTES, StreamDamage

__all__ = ["MAX_WINDOW_BYTES", "is_skippable", "is_zstd", "unzstd"]

MAX_WINDOW_BYTES = 1 << 31
"""`zstd --long=31` writes such windows; this much memory is taken only for frames that ask."""

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_RLE, _RESERVED = 1, 3
_DICTIONARY = (0x184D2A5D).to_bytes(4, "little")
"""A frame to be passed over of this kind, before all others, holds the others' dictionary."""
_DICTIONARY_MARK = b"\x37\xa4\x30\xec"
_MOST_DICTIONARY_BYTES = 32 << 20


def is_zstd(head: bytes) -> bool:
    """Tells whether a file that starts with `head` is zstd; 4 bytes suffice."""
    return head[:4] == _MAGIC or is_skippable(head[:4])


def is_skippable(magic: bytes) -> bool:
    """Tells whether a frame that starts with these 4 bytes is to be passed over."""
    return int.from_bytes(magic, "little") in _SKIPPABLE


def unzstd(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the frames' contents, one behind the other.

    Raises:
        StreamDamage: truncated_zstd, corrupt_zstd or trailing_garbage, after all bytes that can be
            had; those of a corrupt frame may be wrong.
    """
    source = ByteSource(chunks=chunks, ended=_truncated)
    frames = trusted = 0
    dictionary: zstandard.ZstdCompressionDict | None = None
    while magic := source.peek(4):
        if magic == _MAGIC:
            try:
                trusted += yield from _frame(source, dictionary)
            except StreamDamage as damage:
                damage.trusted = trusted if damage.error == "corrupt_zstd" else None
                raise
        elif magic == _DICTIONARY and not frames:
            dictionary = _dictionary(source)
        elif is_skippable(magic):
            _skip_frame(source)
        elif len(magic) < 4 and (_MAGIC.startswith(magic) or magic[:1] in _SKIPPABLE_START):
            raise _truncated()
        elif not source.only_zeros():
            raise _garbage(source, frames)
        frames += 1


_SKIPPABLE_START = [bytes([first]) for first in range(0x50, 0x60)]


def _frame(
    source: ByteSource, dictionary: zstandard.ZstdCompressionDict | None
) -> Generator[bytes, None, int]:
    """Yields one frame's content; returns how many bytes it has."""
    num_bytes = 0
    header = source.take(_header_size(source))
    decoder = zstandard.ZstdDecompressor(
        dict_data=dictionary, max_window_size=MAX_WINDOW_BYTES
    ).decompressobj()
    _decode(decoder, header)
    last = False
    while not last:
        block = source.take(3)
        word = int.from_bytes(block, "little")
        last, kind, size = bool(word & 1), (word >> 1) & 3, word >> 3
        if kind == _RESERVED:
            raise StreamDamage(
                "corrupt_zstd", "the zstd data is damaged: unknown block type", truncated=True
            )
        output = _decode(decoder, block + source.take(1 if kind == _RLE else size))
        if output:
            yield output
        num_bytes += len(output)
    if header[4] & 4:
        _decode(decoder, source.take(4))
    return num_bytes


def _decode(decoder: zstandard.ZstdDecompressionObj, data: bytes) -> bytes:
    try:
        return decoder.decompress(data)
    except zstandard.ZstdError as error:
        raise _damage(error) from error


def _damage(error: zstandard.ZstdError) -> StreamDamage:
    reason = str(error).removeprefix("zstd decompressor error: ").lower()
    return StreamDamage("corrupt_zstd", f"the zstd data is damaged: {reason}", truncated=True)


def _header_size(source: ByteSource) -> int:
    """Returns the bytes of the frame header (RFC 8878, 3.1.1.1), magic included."""
    start = source.peek(5)
    if len(start) < 5:
        raise _truncated()
    descriptor = start[4]
    single_segment = bool(descriptor & 0x20)
    content = (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    return 5 + (not single_segment) + dictionary + content


def _skip_frame(source: ByteSource) -> None:
    source.skip(int.from_bytes(source.take(8)[4:], "little"))


def _dictionary(source: ByteSource) -> zstandard.ZstdCompressionDict | None:
    """Takes the frame that web archives hold their dictionary in, itself compressed or not."""
    size = int.from_bytes(source.take(8)[4:], "little")
    if size > _MOST_DICTIONARY_BYTES:
        source.skip(size)
        return None
    data = source.take(size)
    if data[:4] == _MAGIC:
        try:
            reader = zstandard.ZstdDecompressor().stream_reader(data)
            data = reader.read(_MOST_DICTIONARY_BYTES)
        except zstandard.ZstdError as error:
            raise _damage(error) from error
    is_one = data[:4] == _DICTIONARY_MARK
    return zstandard.ZstdCompressionDict(data) if is_one else None


def _truncated() -> StreamDamage:
    return StreamDamage("truncated_zstd", "the file ends inside a zstd frame", truncated=True)


def _garbage(source: ByteSource, frames: int) -> StreamDamage:
    raw = source.peek(RAW_LIMIT_BYTES)
    if not frames:
        return StreamDamage("corrupt_zstd", "this isn't zstd data", raw=raw, truncated=True)
    return StreamDamage(
        "trailing_garbage", "bytes that aren't zstd follow the data", raw=raw, truncated=True
    )
