"""gzip files of which each record is a member of its own: a damaged member costs that one.

A member's content is given once its checksum was seen to be right. One that unpacks to more than
HOLD_BYTES is given as it comes; if it is damaged then, the stream ends, as it does in `gunzip`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Self

from datapipe.read.byte_source import ByteSource
from datapipe.read.damage import RAW_LIMIT_BYTES, StreamDamage
from datapipe.read.gzip_stream import GZIP_MAGIC

__all__ = ["MemberGunzip"]

HOLD_BYTES = 16 << 20
_PIECE_BYTES = 1 << 16
_GZIP_ONLY = 16 + zlib.MAX_WBITS
_MOST_EXPANSION = 1032  # of deflate
_MEMBER = re.compile(re.escape(GZIP_MAGIC) + b"[\\x00-\\x1f]")
_TRIAL_BYTES = 1 << 12


class MemberGunzip:
    """Yields the members' contents; raises StreamDamage at a damaged one and then goes on."""

    def __init__(self, chunks: Iterator[bytes], *, begins: bytes) -> None:
        """`begins` is what every member's content begins with: how the next one is recognized."""
        self._source = ByteSource(chunks=chunks, ended=_truncated)
        self._begins = begins
        self._given = 0
        self._events = self._read()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        event = next(self._events)
        if isinstance(event, StreamDamage):
            raise event
        self._given += len(event)
        return event

    def _read(self) -> Iterator[bytes | StreamDamage]:
        members = 0
        while head := self._source.peek(len(GZIP_MAGIC)):
            if members and self._source.skip_any(b"\0"):
                continue
            if GZIP_MAGIC.startswith(head):
                yield from self._member()
            else:
                yield self._garbage()
            members += 1

    def _member(self) -> Iterator[bytes | StreamDamage]:
        start, trusted = self._source.offset, self._given
        state = zlib.decompressobj(_GZIP_ONLY)
        stored: list[bytes] = []
        held: list[bytes] = []
        num_held = 0
        is_whole = False
        try:
            while not state.eof:
                data = state.unconsumed_tail or self._source.take_some(_PIECE_BYTES)
                if not state.unconsumed_tail:
                    stored.append(data)
                if not data:
                    break
                held.append(state.decompress(data, _PIECE_BYTES * 8))
                num_held += len(held[-1])
                if num_held > HOLD_BYTES:
                    yield b"".join(held)
                    held, stored = [], []
                    is_whole = True  # nothing can be taken back any more
        except zlib.error as error:
            reason = str(error).split(": ", 1)[-1]
            detail = f"the gzip member at byte {start:,} of the file is damaged: {reason}"
            if is_whole:
                yield _final(detail, trusted)
            else:
                yield self._behind(b"".join(stored), detail)
            return
        if state.eof:
            yield b"".join(held)
            self._source.untake(len(state.unused_data))
            return
        damage = self._behind(b"".join(stored), f"the gzip member at byte {start:,} has no end")
        if not damage.resumes:
            yield b"".join(held)
        yield damage if damage.resumes else _truncated()

    def _garbage(self) -> StreamDamage:
        start = self._source.offset
        detail = f"bytes that aren't gzip stand at byte {start:,} of the file"
        found = self._behind(b"", detail)
        return found if found.resumes else _trailing(found.raw)

    def _behind(self, stored: bytes, detail: str) -> StreamDamage:
        """Goes to the next member behind one that starts with `stored`; returns what is lost."""
        source = self._source
        source.put_back(stored)
        start = source.offset
        raw = source.take_some(1)
        while True:
            raw += source.search(_MEMBER, overlap=3)
            head = source.peek(_TRIAL_BYTES)
            if not head:
                return _final(detail, None, raw)
            if self._is_member(head):
                break
            raw += source.take_some(1)
        damage = StreamDamage("corrupt_gzip", detail, raw=raw[:RAW_LIMIT_BYTES], truncated=True)
        damage.resumes = True
        size = int.from_bytes(raw[-4:], "little")
        is_known = len(raw) < RAW_LIMIT_BYTES and stored
        if is_known and size <= _MOST_EXPANSION * (source.offset - start):
            damage.lost_bytes = size
        return damage

    def _is_member(self, head: bytes) -> bool:
        try:
            content = zlib.decompressobj(_GZIP_ONLY).decompress(head, len(self._begins))
        except zlib.error:
            return False
        return content == self._begins


def _truncated() -> StreamDamage:
    return StreamDamage("truncated_gzip", "the file ends inside a gzip member", truncated=True)


def _final(detail: str, trusted: int | None, raw: bytes = b"") -> StreamDamage:
    damage = StreamDamage("corrupt_gzip", detail, raw=raw, truncated=True)
    damage.trusted = trusted
    return damage


def _trailing(raw: bytes) -> StreamDamage:
    detail = "bytes that aren't gzip follow the data"
    return StreamDamage("trailing_garbage", detail, raw=raw, truncated=True)
