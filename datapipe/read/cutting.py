"""Cutting a stream at record borders, for files that can't be read from the middle.

One compressed stream would keep one worker busy and all others idle. It is unpacked once, in
stretches of whole records, and each stretch is then read on its own. A stream that isn't whole
isn't cut: what of it can be believed is known only at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from datapipe.read.byte_source import ByteSource
from datapipe.read.csv_rows import csv_rows
from datapipe.read.damage import Fault, StreamDamage
from datapipe.read.formats import Format, Kind
from datapipe.read.input_file import InputFile
from datapipe.read.json_values import (
    ELEMENTS,
    FIRST_ELEMENTS,
    LAST_ELEMENTS,
    VALUES,
    ValueCutter,
    cut_values,
)
from datapipe.read.lines import LineCutter
from datapipe.read.ranges import MAX_RECORD_BYTES
from datapipe.read.records import RecordError
from datapipe.read.streams import open_input, stream
from datapipe.read.warc_records import warc_records, warc_truncated
from datapipe.read.wiki_dump import base_of, dump_truncated, wiki_pages

__all__ = ["CutError", "Stretch", "can_cut", "cut_input"]


class CutError(Exception):
    """A stream can't be cut: it is damaged, or a record is too large."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """Some whole records of a stream."""

    start: int
    end: int
    data: bytes
    """The uncompressed bytes."""
    context: str | None = None
    """What its reader has to know of what is before and behind it; None: nothing."""


def can_cut(format: Format) -> bool:
    """Tells whether files of this format are cut before they are read."""
    return format.kind in _CUTTERS and (format.compression != "none" or format.kind != "jsonl")


def cut_input(
    file: InputFile,
    format: Format,
    *,
    target_bytes: int,
    max_record_bytes: int = MAX_RECORD_BYTES,
) -> Iterator[Stretch]:
    """Yields the stretches of a file, which add up to it.

    Args:
        file: one input.
        format: one for which `can_cut`.
        target_bytes: about how many bytes a stretch has.
        max_record_bytes: a file with a larger record isn't cut.

    Raises:
        CutError: it has to be read whole.
        FailedError: it can't be read, or has changed since it was listed.
    """
    with open_input(file) as view:
        chunks = stream(view, compression=format.compression)
        try:
            yield from _CUTTERS[format.kind](chunks, target_bytes, max_record_bytes, format)
        except StreamDamage as damage:
            raise CutError(damage.detail) from damage


def _cut_lines(chunks: Iterator[bytes], target: int, most: int, _: Format) -> Iterator[Stretch]:
    start, parts, size = 0, list[bytes](), 0
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if size + end >= target and end:
            data = b"".join([*parts, chunk[:end]])
            yield Stretch(start=start, end=start + len(data), data=data)
            start, parts, size = start + len(data), [], 0
            chunk = chunk[end:]
        parts.append(chunk)
        size += len(chunk)
        if size > most + target:
            raise CutError(f"a record has more than {most:,} bytes")
    if size:
        yield Stretch(start=start, end=start + size, data=b"".join(parts))


class _Tee:
    """Chunks that are kept as they are taken."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._kept = bytearray()
        self._start = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._kept += chunk
            yield chunk

    def rest(self, context: str | None) -> Iterator[Stretch]:
        """Yields what is left, if anything is."""
        if self._kept:
            yield self.stretch(self._start + len(self._kept), context)

    def stretch(self, end: int, context: str | None = None) -> Stretch:
        """Returns what was kept before `end`, which is let go."""
        count = end - self._start
        data = bytes(self._kept[:count])
        del self._kept[:count]
        found = Stretch(start=self._start, end=end, data=data, context=context)
        self._start = end
        return found


def _cut_warc(chunks: Iterator[bytes], target: int, most: int, _: Format) -> Iterator[Stretch]:
    tee = _Tee(chunks)
    source = ByteSource(chunks=iter(tee), ended=warc_truncated)
    start = 0
    for record in warc_records(source, max_record_bytes=most):
        if isinstance(record, Fault):
            raise CutError(record.detail)
        if record.offset - start >= target:
            yield tee.stretch(record.offset)
            start = record.offset
    if source.damage is not None or source.peek(1):
        raise CutError("it ends inside a record")
    yield from tee.rest(None)


def _cut_json(chunks: Iterator[bytes], target: int, most: int, _: Format) -> Iterator[Stretch]:
    tee = _Tee(chunks)
    cutter = ValueCutter(max_record_bytes=most)
    start = 0
    for piece in cut_values(iter(tee), cutter):
        if isinstance(piece, Fault):
            raise CutError(piece.detail)
        for offset in piece.offsets.tolist():
            if offset - start >= target:
                yield tee.stretch(offset, _json_context(cutter, is_first=not start))
                start = offset
    if not cutter.is_whole:
        raise CutError("it ends inside a value")
    last = LAST_ELEMENTS if cutter.is_array else VALUES
    yield from tee.rest(last if start else None)


def _json_context(cutter: ValueCutter, *, is_first: bool) -> str | None:
    if not cutter.is_array:
        return None if is_first else VALUES
    return FIRST_ELEMENTS if is_first else ELEMENTS


def _cut_csv(chunks: Iterator[bytes], target: int, most: int, format: Format) -> Iterator[Stretch]:
    tee = _Tee(chunks)
    delimiter = "\t" if format.kind == "tsv" else None
    header: list[str] = []
    start = seen_to = 0
    try:
        for row in csv_rows(
            iter(tee), LineCutter(max_record_bytes=most), delimiter=delimiter, seen=header
        ):
            if isinstance(row, Fault):
                raise CutError(row.detail)
            if row is None:
                continue
            if row.offset >= seen_to and row.offset - start >= target:
                yield tee.stretch(row.offset, header[0] if start else None)
                start = row.offset
            seen_to = max(seen_to, row.seen_to)  # of a bad row further than to its end
            if seen_to - start > most + target:
                raise CutError(f"a quote stays open for more than {most:,} bytes")
    except RecordError as error:
        raise CutError(error.detail) from error
    yield from tee.rest(header[0] if start else None)


def _cut_wiki_dump(chunks: Iterator[bytes], target: int, most: int, _: Format) -> Iterator[Stretch]:
    tee = _Tee(chunks)
    source = ByteSource(chunks=iter(tee), ended=dump_truncated)
    base = base_of(source)
    start = 0
    for page in wiki_pages(source, keep=0):
        if not page.is_whole or page.length > most:
            raise CutError("it ends inside a page, or a page is too long")
        if page.offset - start >= target:
            yield tee.stretch(page.offset, base)
            start = page.offset
    yield from tee.rest(base)


_Cutter: TypeAlias = Callable[[Iterator[bytes], int, int, Format], Iterator[Stretch]]
_CUTTERS: Mapping[Kind, _Cutter] = {
    "csv": _cut_csv,
    "json": _cut_json,
    "jsonl": _cut_lines,
    "tsv": _cut_csv,
    "warc": _cut_warc,
    "wikipedia": _cut_wiki_dump,
}
