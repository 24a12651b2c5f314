"""JSON lines to documents: one object a line, one document an object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from datapipe.documents import batch_from_columns
from datapipe.read.damage import RAW_LIMIT_BYTES, Fault, StreamDamage
from datapipe.read.dates import parse_dates
from datapipe.read.decoding import FieldDecoder, field_decoder
from datapipe.read.lines import LineBlock, LineCutter, cut_lines, is_utf8
from datapipe.read.records import (
    Record,
    RecordError,
    is_too_deep,
    may_be_deep,
    read_record,
)
from datapipe.read.results import Origin, ReadResult, rest_of_file
from datapipe.recipe import Fields

__all__ = ["read_jsonl"]

_BOM = b"\xef\xbb\xbf"


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
    parser = _Parser(fields=fields)
    gathered = _Gathered()
    damage: StreamDamage | None = None
    try:
        for piece in cut_lines(chunks, cutter, end=end):
            parser.parse(piece, gathered)
            if gathered.size_bytes >= batch_bytes:
                yield gathered.result(origin)
                gathered = _Gathered()
    except StreamDamage as caught:
        damage = caught
    if damage is not None:
        gathered.end_with(damage, cutter)
    yield gathered.result(origin)


@dataclass(slots=True)
class _Gathered:
    """The columns of the next batch, and what goes with it."""

    texts: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    ids: list[str | None] = field(default_factory=list)
    urls: list[str | None] = field(default_factory=list)
    dates: list[str | None] = field(default_factory=list)
    languages: list[str | None] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    blank_lines: int = 0
    truncated: bool = False
    trusted: int | None = None
    size_bytes: int = 0

    def add(self, record: Record, *, offset: int, length: int) -> None:
        self.texts.append(record.text)
        self.ids.append(record.id)
        self.urls.append(record.url)
        self.dates.append(record.date)
        self.languages.append(record.language)
        self.offsets.append(offset)
        self.lengths.append(length)

    def refuse(self, line: bytes, error: RecordError, *, offset: int) -> None:
        fault = Fault(
            error=error.error,
            detail=error.detail,
            offset=offset,
            length=len(line),
            raw=line[:RAW_LIMIT_BYTES],
        )
        self.faults.append(fault)

    def end_with(self, damage: StreamDamage, cutter: LineCutter) -> None:
        rest = rest_of_file(
            damage, offset=cutter.offset, beginning=cutter.beginning(), length=cutter.length
        )
        self.faults.append(rest)
        self.truncated = damage.truncated
        self.trusted = damage.trusted

    def result(self, origin: Origin) -> ReadResult:
        batch = batch_from_columns(
            self.texts,
            source=origin.source,
            source_file=origin.source_file,
            offsets=self.offsets,
            lengths=self.lengths,
            record_id=pa.array(self.ids, pa.string()),
            url=pa.array(self.urls, pa.string()),
            licence=origin.licence,
            language=pa.array(self.languages, pa.string()),
            crawled_at=parse_dates(self.dates),
        )
        return origin.result(
            _in_order(batch),
            self.faults,
            blank_lines=self.blank_lines,
            truncated=self.truncated,
            trusted=self.trusted,
        )


def _in_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the rows by place; the exactly read ones of a block were added behind its others."""
    offsets = batch.column("source_offset").to_numpy()
    if (offsets[1:] > offsets[:-1]).all():
        return batch
    return batch.take(pa.array(np.argsort(offsets)))


class _Parser:
    """Turns lines into records: quickly where that gives an answer, else exactly."""

    def __init__(self, *, fields: Fields) -> None:
        self._paths = fields.paths()
        self._any_type = field_decoder(fields, any_type=True)
        self._decoder = field_decoder(fields)

    def parse(self, piece: LineBlock | Fault, into: _Gathered) -> None:
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

    def _decode(self, piece: LineBlock, odd: set[int], into: _Gathered) -> set[int]:
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

    def _decode_each(self, piece: LineBlock, odd: set[int], into: _Gathered) -> set[int]:
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

    def _read(self, line: bytes, offset: int, into: _Gathered, *, last: bool) -> None:
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
    into: _Gathered,
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
