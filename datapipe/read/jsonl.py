"""JSON to documents: an object is a document, in a line of its own or a value among others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Protocol

import msgspec

from datapipe.read.damage import Fault, StreamDamage
from datapipe.read.decoding import FieldDecoder, field_decoder
from datapipe.read.gathering import Gathered
from datapipe.read.json_values import ValueCutter, cut_values
from datapipe.read.lines import LineBlock, LineCutter, cut_lines, is_utf8
from datapipe.read.records import (
    RecordError,
    is_too_deep,
    may_be_deep,
    read_record,
)
from datapipe.read.results import Origin, ReadResult
from datapipe.recipe import Fields

__all__ = ["read_json", "read_jsonl"]

_BOM = b"\xef\xbb\xbf"


class Cutter(Protocol):
    """What cuts the stream; it knows the record that isn't finished."""

    @property
    def offset(self) -> int:
        """Where that starts."""

    @property
    def length(self) -> int:
        """How many bytes of it there were."""

    def beginning(self) -> bytes:
        """Returns what is kept of it."""


def read_jsonl(
    chunks: Iterator[bytes],
    cutter: LineCutter,
    *,
    origin: Origin,
    fields: Fields,
    end: int | None,
    batch_bytes: int,
) -> Iterator[ReadResult]:
    """Yields the documents of the lines that start before `end`.

    Args:
        chunks: the uncompressed stream from where the cutter stands.
        cutter: cuts it.
        origin: what all records share.
        fields: where text and attributes stand.
        end: see `cut_lines`.
        batch_bytes: about how many bytes of lines go into one batch.
    """
    gathered = Gathered()
    pieces = cut_lines(chunks, cutter, end=end)
    yield from _read(pieces, cutter, gathered, origin, fields, batch_bytes)
    yield gathered.result(origin)


def read_json(
    chunks: Iterator[bytes],
    *,
    start: int,
    context: str | None,
    origin: Origin,
    fields: Fields,
    batch_bytes: int,
    max_record_bytes: int,
) -> Iterator[ReadResult]:
    """Yields the documents of a JSON array, or of JSON values one behind the other.

    Args:
        chunks: the uncompressed stream.
        start: where that begins in the file's stream.
        context: of a stretch, see `ValueCutter`.
        origin: what all records share.
        fields: where text and attributes stand.
        batch_bytes: about how many bytes of values go into one batch.
        max_record_bytes: a longer value is quarantined.
    """
    gathered = Gathered()
    cutter = ValueCutter(max_record_bytes=max_record_bytes, start=start, context=context)
    pieces = cut_values(chunks, cutter)
    yield from _read(pieces, cutter, gathered, origin, fields, batch_bytes)
    if not gathered.truncated and not cutter.is_whole:
        what = "data behind the end of its array" if cutter.is_over else "a value or array open"
        damage = StreamDamage("truncated_json", f"the file ends with {what}", truncated=True)
        gathered.end_with(
            damage, offset=cutter.offset, beginning=cutter.beginning(), length=cutter.length
        )
    yield gathered.result(origin)


def _read(
    pieces: Iterator[LineBlock | Fault],
    cutter: Cutter,
    gathered: Gathered,
    origin: Origin,
    fields: Fields,
    batch_bytes: int,
) -> Iterator[ReadResult]:
    """Yields results of about `batch_bytes`; what is left when the pieces end is in `gathered`."""
    parser = _Parser(fields=fields)
    try:
        for piece in pieces:
            parser.parse(piece, gathered)
            if gathered.size_bytes >= batch_bytes:
                yield gathered.result(origin)
                gathered.clear()
    except StreamDamage as damage:
        gathered.end_with(
            damage, offset=cutter.offset, beginning=cutter.beginning(), length=cutter.length
        )


class _Parser:
    """Turns lines into records: quickly where that gives an answer, else exactly."""

    def __init__(self, *, fields: Fields) -> None:
        self._paths = fields.paths()
        self._any_type = field_decoder(fields, any_type=True)
        self._decoder = field_decoder(fields)

    def parse(self, piece: LineBlock | Fault, into: Gathered) -> None:
        if isinstance(piece, Fault):
            into.faults.append(piece)
            into.size_bytes += len(piece.raw)
            return
        into.blank_lines += len(piece.blanks)
        if not piece.lines:
            return
        into.size_bytes += sum(map(len, piece.lines))
        if self._decoder is None:
            odd = set(range(len(piece.lines)))
        else:
            odd = self._decode(piece, _quick_way_is_wrong(piece), into)
        for index in sorted(odd):
            last = piece.unterminated and index == len(piece.lines) - 1
            self._read(piece.lines[index], int(piece.offsets[index]), into, last=last)

    def _decode(self, piece: LineBlock, odd: set[int], into: Gathered) -> set[int]:
        """Takes the records that the decoder accepts; returns which lines it doesn't."""
        assert self._decoder is not None
        try:
            records = [] if odd else list(map(self._decoder.decode, piece.lines))
        except (msgspec.DecodeError, RecursionError):
            records = []
        if not records:
            return self._decode_each(piece, odd, into)
        _take(self._decoder, piece, records, slice(None), into)
        return odd

    def _decode_each(self, piece: LineBlock, odd: set[int], into: Gathered) -> set[int]:
        assert self._decoder is not None
        records: list[Any] = []
        places: list[int] = []
        refused = set(odd)
        blank_lines = 0
        for index, line in enumerate(piece.lines):
            if index in odd:
                continue
            if line.isspace():
                blank_lines += 1
                continue
            try:
                records.append(self._decoder.decode(line))
            except (msgspec.DecodeError, RecursionError):
                if self._widen(line):
                    return self._decode(piece, odd, into)
                refused.add(index)
            else:
                places.append(index)
        into.blank_lines += blank_lines
        _take(self._decoder, piece, records, places, into)
        return refused

    def _widen(self, line: bytes) -> bool:
        """Goes over to attributes of any type, if that is what `line` needs."""
        if self._decoder is self._any_type or self._any_type is None:
            return False
        try:
            self._any_type.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return False
        self._decoder = self._any_type
        return True

    def _read(self, line: bytes, offset: int, into: Gathered, *, last: bool) -> None:
        if line.startswith(_BOM):
            line, offset = line[len(_BOM) :], offset + len(_BOM)
        if not line.strip():
            into.blank_lines += 1
            return
        try:
            into.add(read_record(line, self._paths), offset=offset, length=len(line))
        except RecordError as error:
            pieces = _split_at_returns(line) if error.error == "invalid_json" else []
            if not pieces:
                into.refuse(line, error, offset=offset)
                into.truncated |= last
            for place, piece in pieces:
                self._read(piece, offset + place, into, last=False)


def _quick_way_is_wrong(piece: LineBlock) -> set[int]:
    """Returns the lines that the decoder might accept though they aren't records."""
    odd = set()
    if may_be_deep(piece.data):
        odd = {index for index, line in enumerate(piece.lines) if is_too_deep(line)}
    if not is_utf8(piece.data):
        odd |= {index for index, line in enumerate(piece.lines) if not is_utf8(line)}
    return odd


def _take(
    decoder: FieldDecoder,
    piece: LineBlock,
    records: list[Any],
    places: list[int] | slice,
    into: Gathered,
) -> None:
    into.texts += decoder.texts(records)
    into.ids += decoder.attributes(records, "id")
    into.urls += decoder.attributes(records, "url")
    into.dates += decoder.attributes(records, "date")
    into.languages += decoder.attributes(records, "language")
    into.offsets += piece.offsets[places].tolist()
    lines = piece.lines if isinstance(places, slice) else map(piece.lines.__getitem__, places)
    into.lengths += map(len, lines)


def _split_at_returns(line: bytes) -> list[tuple[int, bytes]]:
    """Returns the lines, each with its place, of data whose lines end with CR alone."""
    pieces = line.split(b"\r")
    shown = [piece.strip() for piece in pieces]
    if len(pieces) == 1 or not all(
        not piece or (piece[:1] == b"{" and piece[-1:] == b"}") for piece in shown
    ):
        return []
    places = accumulate((len(piece) + 1 for piece in pieces), initial=0)
    return [(place, piece) for place, piece in zip(places, pieces, strict=False) if piece]
