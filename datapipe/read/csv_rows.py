"""CSV and TSV to documents: a row is a document, the first row names the columns.

Quotes as in RFC 4180: a field in quotes may hold delimiters, line ends and doubled quotes. A row
without as many fields as there are columns is a fault; if a quote that was never closed has made
it of several lines, its first line alone is, and the others are read again.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from datapipe.read.damage import Fault, StreamDamage
from datapipe.read.gathering import Gathered
from datapipe.read.lines import LineBlock, LineCutter, cut_lines
from datapipe.read.records import Record, RecordError
from datapipe.read.results import Origin, ReadResult
from datapipe.recipe import Fields

__all__ = ["Row", "csv_rows", "read_csv"]

_DELIMITERS = ",;\t|"
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One record of the file."""

    offset: int
    length: int
    """Without the last line end."""
    raw: bytes
    """Its lines, each behind LF."""
    values: Mapping[str, str] | RecordError
    """By column, or why it can't be read."""
    seen_to: int
    """How far the stream was looked at to tell that."""


@dataclass(slots=True)
class _Lines:
    """Lines with their places, of which some may be put back."""

    pieces: Iterator[LineBlock | Fault]
    waiting: deque[tuple[int, bytes]] = field(default_factory=deque)
    fault: Fault | None = None
    """A line that is too long, behind those that were given."""

    def next(self) -> tuple[int, bytes] | None:
        """Returns the next line, None at the end and before one that is too long."""
        while not self.waiting and self.fault is None:
            piece = next(self.pieces, None)
            if piece is None:
                return None
            if isinstance(piece, Fault):
                self.fault = piece
            else:
                lines = list(zip(piece.offsets.tolist(), piece.lines, strict=True))
                if piece.blanks.size:
                    lines = sorted([*lines, *((place, b"") for place in piece.blanks.tolist())])
                self.waiting.extend(lines)
        return self.waiting.popleft() if self.waiting else None


def csv_rows(
    chunks: Iterator[bytes],
    cutter: LineCutter,
    *,
    delimiter: str | None,
    header: str | None = None,
    seen: list[str] | None = None,
) -> Iterator[Row | Fault | None]:
    """Yields the rows behind the header; None for a blank line.

    Args:
        chunks: the uncompressed stream.
        cutter: cuts it into lines.
        delimiter: what stands between fields; None: what the header has most of.
        header: the row that names the columns, if it isn't in the stream.
        seen: the header is put into it, if it is.

    Raises:
        StreamDamage: the stream's own, after the rows before it.
    """
    lines = _Lines(cut_lines(chunks, cutter))
    names: list[str] | None = None
    if header is not None:
        delimiter = delimiter or _delimiter(header.encode())
        names = _parsed(header, delimiter)
    while True:
        taken, is_open = _take(lines, delimiter or ",", cutter.max_record_bytes)
        if lines.fault is not None and not taken:
            yield lines.fault
            lines.fault = None
        elif not taken:
            return
        elif names is None:
            if not any(line.strip() for _, line in taken):
                yield None
                continue
            delimiter = delimiter or _delimiter(taken[0][1])
            header = _text(taken[0][1].removeprefix(_BOM))
            names = _parsed(header, delimiter)
            if seen is not None:
                seen.append(header)
            lines.waiting.extendleft(reversed(taken[1:]))
        else:
            yield _row(taken, lines, names, delimiter or ",", is_open=is_open)


def _take(lines: _Lines, delimiter: str, most: int) -> tuple[list[tuple[int, bytes]], bool]:
    """Returns the lines of one row, up to where no quote is open; and whether one is."""
    taken: list[tuple[int, bytes]] = []
    size, is_open = 0, False
    while line := lines.next():
        taken.append(line)
        size += len(line[1])
        is_open = _leaves_open(line[1], delimiter.encode(), is_open=is_open)
        if not is_open or size > most:
            break
    return taken, is_open


def _leaves_open(line: bytes, delimiter: bytes, *, is_open: bool) -> bool:
    """Tells whether a quote is open behind `line`. Only one where a field starts opens any."""
    if b'"' not in line:
        return is_open
    place = 0
    while True:
        if is_open:
            end = line.find(b'"', place)
            if end < 0:
                return True
            if line[end + 1 : end + 2] == b'"':
                place = end + 2
                continue
            is_open, place = False, end + 1
        elif place == 0 and line[:1] == b'"':
            is_open, place = True, 1
            continue
        found = line.find(delimiter + b'"', place)
        if found < 0:
            return False
        is_open, place = True, found + len(delimiter) + 1


def _row(
    taken: list[tuple[int, bytes]],
    lines: _Lines,
    names: list[str],
    delimiter: str,
    *,
    is_open: bool,
) -> Row | None:
    offset = taken[0][0]
    seen_to = taken[-1][0] + len(taken[-1][1])
    length = seen_to - offset
    raw = b"\n".join(line for _, line in taken)
    if not raw.strip():
        return None
    try:
        if is_open:
            raise RecordError("invalid_csv", "the row isn't CSV: a quote isn't closed")
        values = _parsed(_text(raw), delimiter)
        if len(values) == len(names):
            named = dict(zip(names, values, strict=True))
            return Row(offset=offset, length=length, raw=raw, values=named, seen_to=seen_to)
        detail = f"the row has {len(values)} fields, there are {len(names)} columns"
        error = RecordError("ragged_row", detail)
    except RecordError as caught:
        error = caught
    if len(taken) > 1:  # the other lines may be rows of their own
        lines.waiting.extendleft(reversed(taken[1:]))
        raw = taken[0][1]
        length = len(raw)
    return Row(offset=offset, length=length, raw=raw, values=error, seen_to=seen_to)


def _parsed(text: str, delimiter: str) -> list[str]:
    csv.field_size_limit(1 << 30)  # ours is checked for the row
    try:
        # Of a row of several lines a quote may have been left open: then quotes don't fit together.
        rows = list(csv.reader([text], delimiter=delimiter, strict="\n" in text))
    except csv.Error as error:
        raise RecordError("invalid_csv", f"the row isn't CSV: {error}") from error
    return rows[0] if rows else []


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        detail = f"byte {error.start} of the record, 0x{raw[error.start]:02x}, isn't UTF-8"
        raise RecordError("invalid_utf8", detail) from error


def _delimiter(header: bytes) -> str:
    return max(_DELIMITERS, key=lambda character: header.count(character.encode()))


def read_csv(
    chunks: Iterator[bytes],
    *,
    start: int,
    header: str | None,
    origin: Origin,
    fields: Fields,
    delimiter: str | None,
    batch_bytes: int,
    max_record_bytes: int,
) -> Iterator[ReadResult]:
    """Yields the documents of a CSV file.

    Args:
        chunks: the uncompressed stream.
        start: where that begins in the file's stream, at a row.
        header: see `csv_rows`.
        origin: what all records share.
        fields: the columns of text and attributes.
        delimiter: see `csv_rows`.
        batch_bytes: about how many bytes of rows go into one batch.
        max_record_bytes: a longer row is quarantined.
    """
    cutter = LineCutter(max_record_bytes=max_record_bytes, offset=start)
    gathered = Gathered()
    names = {name: ".".join(path) for name, path in fields.paths().items()}
    try:
        for row in csv_rows(chunks, cutter, delimiter=delimiter, header=header):
            _add(row, names, gathered, max_record_bytes)
            if gathered.size_bytes >= batch_bytes:
                yield gathered.result(origin)
                gathered.clear()
    except StreamDamage as damage:
        gathered.end_with(
            damage, offset=cutter.offset, beginning=cutter.beginning(), length=cutter.length
        )
    except RecordError as error:  # of the header: nothing can be read without it
        gathered.refuse(b"", error, offset=0)
        gathered.truncated = True
    yield gathered.result(origin)


def _add(row: Row | Fault | None, names: Mapping[str, str], gathered: Gathered, most: int) -> None:
    if row is None:
        gathered.blank_lines += 1
    elif isinstance(row, Fault):
        gathered.faults.append(row)
    elif isinstance(row.values, RecordError):
        gathered.refuse(row.raw, row.values, offset=row.offset, length=row.length)
    elif names["text"] not in row.values:
        error = RecordError("text_missing", f"there is no column `{names['text']}`")
        gathered.refuse(row.raw, error, offset=row.offset, length=row.length)
    elif len(row.raw) > most:
        error = RecordError(
            "record_too_large", f"the row has {len(row.raw):,} bytes, {most:,} are allowed"
        )
        gathered.refuse(row.raw, error, offset=row.offset, length=row.length)
    else:
        values = {name: row.values.get(column) or None for name, column in names.items()}
        record = Record(
            text=row.values[names["text"]],
            id=values["id"],
            url=values["url"],
            date=values["date"],
            language=values["language"],
        )
        gathered.add(record, offset=row.offset, length=row.length)
        gathered.size_bytes += len(row.raw)
