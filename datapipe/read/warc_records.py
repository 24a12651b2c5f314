"""Cutting WARC into its records, with the place of each; neighbours of a bad one survive.

Libraries for WARC stop at what they can't parse, or pass over it without a word; here it becomes a
fault. Any version from 0.9 on, any line ends, any number of them between records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from datapipe.read.byte_source import ByteSource
from datapipe.read.damage import RAW_LIMIT_BYTES, Fault, StreamDamage
from datapipe.read.header_fields import HeaderFields

__all__ = ["WarcRecord", "warc_records", "warc_truncated"]

_MAX_HEADER_BYTES = 1 << 16
_BETWEEN = b"\r\n"
_VERSION = b"WARC/"
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_NEXT = re.compile(rb"(?<=\n)WARC/\d\.\d{1,2}[ \t]*\r?\n")
_NEXT_BYTES = 32
_LENGTH = re.compile(r"\d{1,18}")


@dataclass(frozen=True, kw_only=True, slots=True)
class WarcRecord:
    """One record."""

    offset: int
    """Of its first byte in the uncompressed stream."""
    length: int
    """Header and block, without the line ends behind."""
    headers: HeaderFields
    header_bytes: bytes
    block: bytes | None
    """None: it is longer than `max_record_bytes`."""

    @property
    def type(self) -> str:
        """`response`, `conversion`, ..."""
        return self.headers.get(b"warc-type").lower()


def warc_truncated() -> StreamDamage:
    """Returns that a file ends where no record does."""
    return StreamDamage("truncated_warc", "the file ends inside a WARC record", truncated=True)


def warc_records(source: ByteSource, *, max_record_bytes: int) -> Iterator[WarcRecord | Fault]:
    """Yields the records and, in their places, a fault for each that can't be read.

    Where it ends before the stream does, the source stands at the record that isn't whole.

    Args:
        source: the uncompressed stream.
        max_record_bytes: of a longer block nothing is kept.
    """
    while True:
        source.skip_any(_BETWEEN)
        start = source.peek(len(_VERSION))
        if not start:
            damage, offset = source.damage, source.offset
            if not source.resume():
                return
            assert damage is not None
            yield _lost(damage, offset, b"")
        elif not _VERSION.startswith(start):
            yield from _to_next(source, source.offset, b"", "bytes that aren't a WARC record")
        else:
            found = _record(source, max_record_bytes)
            if found is None:
                return
            yield from found


def _record(source: ByteSource, max_record_bytes: int) -> Iterator[WarcRecord | Fault] | None:
    """Returns what the next record gives; None if it isn't whole and nothing is behind it."""
    offset = source.offset
    head = source.peek(1 << 10)
    end = _BLANK_LINE.search(head)
    if end is None:
        head = source.peek(_MAX_HEADER_BYTES)
        end = _BLANK_LINE.search(head)
    if end is None:
        if len(head) < _MAX_HEADER_BYTES:
            return _cut(source, offset)
        source.take(len(_VERSION))
        return _to_next(source, offset, _VERSION, "its header has no end")
    header_bytes = source.take(end.end())
    headers = HeaderFields(header_bytes.partition(b"\n")[2])
    length = headers.get(b"content-length")
    if not _LENGTH.fullmatch(length):
        return _to_next(source, offset, header_bytes, f"its Content-Length is {length[:40]!r}")
    return _with_block(source, offset, header_bytes, headers, int(length), max_record_bytes)


def _with_block(
    source: ByteSource,
    offset: int,
    header_bytes: bytes,
    headers: HeaderFields,
    length: int,
    max_record_bytes: int,
) -> Iterator[WarcRecord | Fault] | None:
    block: bytes | None = None
    if length <= max_record_bytes:
        block = source.peek(length)
        if len(block) < length:
            return _cut_block(source, offset, header_bytes, block)
        source.advance(length)
        if not _ends_here(source):
            source.put_back(block)
            reason = f"its Content-Length, {length:,}, isn't its length"
            return _to_next(source, offset, header_bytes, reason)
    else:
        try:
            source.skip(length)
        except StreamDamage:
            return _cut(source, offset)
    return iter(
        [
            WarcRecord(
                offset=offset,
                length=len(header_bytes) + length,
                headers=headers,
                header_bytes=header_bytes,
                block=block,
            )
        ]
    )


def _ends_here(source: ByteSource) -> bool:
    """Tells whether a record may end before the next byte."""
    behind = source.peek(_NEXT_BYTES)
    if behind.startswith((b"\r\n\r\n", b"\n\n")) or not behind.strip(_BETWEEN):
        return True
    return behind.lstrip(_BETWEEN).startswith(_VERSION)


def _cut_block(
    source: ByteSource, offset: int, header_bytes: bytes, rest: bytes
) -> Iterator[WarcRecord | Fault] | None:
    """Returns what is left of a block that the stream doesn't hold whole."""
    damage = source.damage
    if _NEXT.search(rest):  # its length is wrong, and records behind it may be whole
        return _to_next(source, offset, header_bytes, "it is longer than the rest of the file")
    if damage is not None and damage.resumes:
        return _cut(source, offset)
    source.put_back(header_bytes)
    return None


def _cut(source: ByteSource, offset: int) -> Iterator[WarcRecord | Fault] | None:
    damage = source.damage
    if damage is None or not damage.resumes:
        return None
    raw = source.search(re.compile(rb"(?!)"), overlap=0)
    source.resume()
    return iter([_lost(damage, offset, raw)])


def _lost(damage: StreamDamage, offset: int, beginning: bytes) -> Fault:
    return Fault(
        error=damage.error,
        detail=damage.detail,
        offset=offset,
        length=len(beginning) + damage.lost_bytes,
        raw=(beginning + damage.raw)[:RAW_LIMIT_BYTES],
    )


def _to_next(
    source: ByteSource, offset: int, taken: bytes, reason: str
) -> Iterator[WarcRecord | Fault]:
    """Goes to the next record; yields what is passed over, and `taken` before it, as a fault."""
    raw = taken + source.search(_NEXT, overlap=_NEXT_BYTES)
    yield Fault(
        error="invalid_warc",
        detail=f"the record isn't WARC: {reason}",
        offset=offset,
        length=source.offset - offset,
        raw=raw[:RAW_LIMIT_BYTES],
    )
