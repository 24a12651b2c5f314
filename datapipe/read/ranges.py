"""Units of reading: the parts of a file that are read on their own.

Ranges depend only on the file and the size asked for, never on who reads them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from datapipe.read.arc import read_arc
from datapipe.read.arrow_file import ArrowInput
from datapipe.read.csv_rows import read_csv
from datapipe.read.damage import HEAD_LIMIT_BYTES, Fault
from datapipe.read.formats import Format
from datapipe.read.input_file import InputFile
from datapipe.read.jsonl import read_json, read_jsonl
from datapipe.read.lines import LineCutter
from datapipe.read.parquet import read_arrow, read_parquet
from datapipe.read.parquet_file import ParquetDamage, ParquetInput
from datapipe.read.results import Origin, ReadResult
from datapipe.read.streams import open_input, raw_chunks, stream
from datapipe.read.tar_samples import read_tar
from datapipe.read.text import read_text
from datapipe.read.warc import read_warc
from datapipe.read.wiki_dump import read_wiki_dump
from datapipe.recipe import Fields
from tiering.store import View

__all__ = ["BATCH_BYTES", "MAX_RECORD_BYTES", "FileRange", "Place", "plan_ranges", "read_range"]

BATCH_BYTES = 16 << 20
"""About how much input goes into one batch: enough that what a batch costs doesn't show."""

MAX_RECORD_BYTES = 100 << 20
"""A larger record is quarantined."""


class Place(Protocol):
    """Where the bytes of a stretch lie that was cut out of a file; can be pickled."""

    def open(self) -> View:
        """Opens them for ranged reads."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRange:
    """Some of a file's records."""

    file: InputFile
    format: Format
    start: int
    """Plain JSON lines: the first byte; lines that start in [start, end) belong to the range.
    Parquet: the first row group; Arrow: batch. WARC: that of a record. Else 0."""
    end: int
    """Behind the last byte or row group. Of a file that is read whole: its size."""
    place: Place | None = None
    """Of a stretch of the uncompressed stream: where its bytes lie; None: in `file`."""
    context: str | None = None
    """Of a stretch: what its reader has to know of what is before it; None: it isn't one."""


def plan_ranges(file: InputFile, format: Format, *, target_bytes: int) -> list[FileRange]:
    """Returns the ranges of a file, ascending; at least one, which may hold no record.

    Args:
        file: one input.
        format: what `detect_format` said.
        target_bytes: about how many stored bytes a range has, where the format can be cut.

    Raises:
        FailedError: a Parquet file's footer is needed and the file can't be opened.
    """
    if format.kind == "jsonl" and format.compression == "none":
        borders = [*range(0, file.size_bytes, target_bytes), file.size_bytes]
    elif format.kind == "parquet":
        borders = _parquet_borders(file, target_bytes)
    elif format.kind == "arrow":
        borders = _arrow_borders(file, target_bytes)
    else:
        borders = [0, file.size_bytes]
    pairs = list(itertools.pairwise(borders)) or [(0, 0)]
    return [FileRange(file=file, format=format, start=a, end=b) for a, b in pairs]


def read_range(
    part: FileRange,
    *,
    source: str,
    fields: Fields | None = None,
    licence: str | None = None,
    batch_bytes: int = BATCH_BYTES,
    max_record_bytes: int = MAX_RECORD_BYTES,
    trusted: int | None = None,
) -> Iterator[ReadResult]:
    """Yields the documents of a range and what stands in their way, in order.

    The ranges of a file add up to the file, whatever their borders. Memory is bounded by
    `batch_bytes` and the largest record, and by a zstd frame's window.

    Args:
        part: what to read.
        source: the source that the documents belong to.
        fields: where text and attributes stand; default: `Fields()`.
        licence: of every document.
        batch_bytes: about how much input goes into one result.
        max_record_bytes: a larger record is quarantined.
        trusted: bytes of the uncompressed stream to use, of a compressed file whose reading ended
            with a result that says so; None: all.

    Raises:
        FailedError: the file can't be read, or has changed since it was listed.
    """
    origin = Origin(source=source, source_file=part.file.relative, licence=licence)
    fields = fields or Fields()
    if part.place is not None:
        stretch = replace(part, format=replace(part.format, compression="none"))
        with part.place.open() as view:
            chunks = raw_chunks(view)
            yield from _read(stretch, view, chunks, origin, fields, batch_bytes, max_record_bytes)
        return
    with open_input(part.file) as view:
        yield from _read(
            part,
            view,
            _chunks(part, view, trusted),
            origin,
            fields,
            batch_bytes,
            max_record_bytes,
        )


def _chunks(part: FileRange, view: View, trusted: int | None) -> Iterator[bytes]:
    """Returns the uncompressed bytes that a range of a file is in."""
    kind, compression = part.format.kind, part.format.compression
    if compression == "none":
        # Of lines a range starts one byte early: only then is it known whether one starts there,
        # and it may end in the next range.
        early = kind == "jsonl" and part.start > 0
        end = None if kind == "jsonl" else part.end
        return raw_chunks(view, start=part.start - early, end=end)
    begins = b"WARC/" if kind == "warc" else None
    return stream(view, compression=compression, trusted=trusted, begins=begins)


def _read(
    part: FileRange,
    view: View,
    chunks: Iterator[bytes],
    origin: Origin,
    fields: Fields,
    batch_bytes: int,
    max_record_bytes: int,
) -> Iterator[ReadResult]:
    kind = part.format.kind
    if kind == "jsonl":
        early = part.start > 0 and part.place is None
        cutter = LineCutter(
            max_record_bytes=max_record_bytes, offset=part.start - early, foreign=early
        )
        is_plain = part.format.compression == "none" and part.place is None
        return read_jsonl(
            chunks,
            cutter,
            origin=origin,
            fields=fields,
            end=part.end if is_plain else None,
            batch_bytes=batch_bytes,
        )
    if kind == "json":
        return read_json(
            chunks,
            start=part.start,
            context=part.context,
            origin=origin,
            fields=fields,
            batch_bytes=batch_bytes,
            max_record_bytes=max_record_bytes,
        )
    if kind in ("csv", "tsv"):
        return read_csv(
            chunks,
            start=part.start,
            header=part.context,
            origin=origin,
            fields=fields,
            delimiter="\t" if kind == "tsv" else None,
            batch_bytes=batch_bytes,
            max_record_bytes=max_record_bytes,
        )
    if kind == "warc":
        return read_warc(
            chunks,
            start=part.start,
            origin=origin,
            batch_bytes=batch_bytes,
            max_record_bytes=max_record_bytes,
        )
    if kind == "tar":
        return read_tar(
            chunks,
            origin=origin,
            fields=fields,
            batch_bytes=batch_bytes,
            max_record_bytes=max_record_bytes,
        )
    if kind == "arc":
        return read_arc(
            chunks, origin=origin, batch_bytes=batch_bytes, max_record_bytes=max_record_bytes
        )
    if kind == "wikipedia":
        return read_wiki_dump(
            chunks,
            start=part.start,
            base=part.context,
            origin=origin,
            batch_bytes=batch_bytes,
            max_record_bytes=max_record_bytes,
        )
    if kind in ("text", "html"):
        return read_text(
            chunks,
            origin=origin,
            max_record_bytes=max_record_bytes,
            is_html=kind == "html",
        )
    if kind == "parquet":
        return read_parquet(
            view,
            groups=range(part.start, part.end),
            origin=origin,
            fields=fields,
            batch_bytes=batch_bytes,
            max_record_bytes=max_record_bytes,
        )
    if kind == "arrow":
        return read_arrow(
            view,
            batches=range(part.start, part.end),
            origin=origin,
            fields=fields,
            batch_bytes=batch_bytes,
            max_record_bytes=max_record_bytes,
        )
    return iter([origin.result(faults=[_unsupported(part, view)])])


def _parquet_borders(file: InputFile, target_bytes: int) -> list[int]:
    if not file.size_bytes:
        return [0]
    with open_input(file) as view:
        try:
            parquet = ParquetInput(view)
        except ParquetDamage:
            return [0, 1]
    borders, size = [0], 0
    for group in range(parquet.num_groups):
        if size and size + parquet.num_bytes(group) > target_bytes:
            borders.append(group)
            size = 0
        size += parquet.num_bytes(group)
    return [*borders, parquet.num_groups] if parquet.num_groups else borders


def _arrow_borders(file: InputFile, target_bytes: int) -> list[int]:
    with open_input(file) as view:
        try:
            count = ArrowInput(view).num_batches
        except ParquetDamage:
            return [0, 1]
    if not count:
        return [0, 1]
    step = max(1, count * target_bytes // max(file.size_bytes, 1))
    return [*range(0, count, step), count]


def _unsupported(part: FileRange, view: View) -> Fault:
    buffer = bytearray(min(view.size, HEAD_LIMIT_BYTES))
    view.read_into(memoryview(buffer), 0)
    return Fault(
        error="unsupported_format",
        detail=f"the file is {part.format.reason}, which this version can't read",
        offset=0,
        length=part.file.size_bytes,
        raw=bytes(buffer),
    )
