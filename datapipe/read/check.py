"""Looking at the first records before a build starts: is the text where the recipe says?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice

import pyarrow as pa

from datapipe.errors import InputError
from datapipe.read.arrow_file import ArrowBatch, ArrowInput
from datapipe.read.columns import is_text, num_named, type_at
from datapipe.read.csv_rows import Row, csv_rows
from datapipe.read.damage import Fault, StreamDamage
from datapipe.read.fields import is_there
from datapipe.read.formats import KNOWN_FORMATS, Format, detect_format
from datapipe.read.input_file import InputFile
from datapipe.read.json_values import ValueCutter, cut_values
from datapipe.read.lines import LineBlock, LineCutter, cut_lines
from datapipe.read.parquet_file import ParquetDamage, ParquetInput
from datapipe.read.records import RecordError, parse_json
from datapipe.read.streams import open_input, stream
from datapipe.recipe import FieldPath, Fields
from tiering.store import View

__all__ = ["check_fields"]

_FIRST_RECORDS = 1_000
_MAX_LINE_BYTES = 16 << 20
_KEYS_SHOWN = 20
_USUAL_NAMES = ("content", "raw_content", "body", "article", "document", "markdown", "code")
"""What text is called where it isn't called text."""


def check_fields(
    files: Sequence[InputFile], fields: Fields, source: str, *, declared: str | None = None
) -> None:
    """Returns if the first records of a source have the text field, or there are none.

    Args:
        files: the source's inputs, in order.
        fields: where the text should be.
        source: for the message.
        declared: see `detect_format`.

    Raises:
        InputError: none of the first 1,000 records has it; or no file is of a known format.
        FailedError: a file can't be read.
    """
    seen = _Seen()
    unsupported: dict[str, Format] = {}
    for file in files:
        format = detect_format(file, declared=declared)
        if format.kind == "unsupported":
            unsupported[file.relative] = format
        _look(file, format, fields.paths()["text"], seen)
        if seen.has_text:
            return
        if seen.num_looked_at >= _FIRST_RECORDS:
            break
    if seen.num_records:
        raise InputError(_no_text(seen, fields.text, source))
    if unsupported and len(unsupported) == len(files):
        name, format = next(iter(unsupported.items()))
        raise InputError(
            f"no file of {source} has a format that this version can read: {name} is "
            f"{format.reason}; known formats: {KNOWN_FORMATS}."
        )


@dataclass(slots=True)
class _Seen:
    num_looked_at: int = 0
    """Lines and rows, records or not."""
    num_records: int = 0
    """Objects and rows."""
    has_text: bool = False
    text_bytes: Counter[str] = field(default_factory=Counter)
    """By dotted path, of strings."""
    keys: dict[str, None] = field(default_factory=dict)
    """Top-level ones, as first met."""


def _look(file: InputFile, format: Format, path: FieldPath, seen: _Seen) -> None:
    if format.kind in ("jsonl", "json"):
        for record in islice(_values(file, format), _FIRST_RECORDS - seen.num_looked_at):
            seen.num_looked_at += 1
            if isinstance(record, dict):
                seen.num_records += 1
                seen.has_text |= is_there(record, path)
                _note_keys(record, seen)
    elif format.kind in ("parquet", "arrow"):
        _look_at_schema(file, format, path, seen)
    elif format.kind in ("csv", "tsv"):
        for row in islice(_rows(file, format), _FIRST_RECORDS - seen.num_looked_at):
            seen.num_looked_at += 1
            seen.num_records += 1
            seen.has_text |= ".".join(path) in row
            _note_keys(row, seen)


def _values(file: InputFile, format: Format) -> Iterator[object]:
    """Yields what each line holds, None where it isn't JSON."""
    with open_input(file) as view:
        chunks = stream(view, compression=format.compression)
        try:
            for piece in _pieces(chunks, format):
                yield from () if isinstance(piece, Fault) else _parsed(piece.lines)
        except StreamDamage:
            return


def _rows(file: InputFile, format: Format) -> Iterator[dict[str, object]]:
    """Yields the rows that can be read."""
    delimiter = "\t" if format.kind == "tsv" else None
    with open_input(file) as view:
        chunks = stream(view, compression=format.compression)
        cutter = LineCutter(max_record_bytes=_MAX_LINE_BYTES)
        try:
            for row in csv_rows(chunks, cutter, delimiter=delimiter):
                if isinstance(row, Row) and not isinstance(row.values, RecordError):
                    yield dict(row.values)
        except (StreamDamage, RecordError):
            return


def _pieces(chunks: Iterator[bytes], format: Format) -> Iterator[LineBlock | Fault]:
    if format.kind == "json":
        return cut_values(chunks, ValueCutter(max_record_bytes=_MAX_LINE_BYTES))
    return cut_lines(chunks, LineCutter(max_record_bytes=_MAX_LINE_BYTES))


def _parsed(lines: Sequence[bytes]) -> Iterator[object]:
    for line in lines:
        try:
            yield parse_json(line.removeprefix(b"\xef\xbb\xbf"))
        except RecordError:
            yield None


def _look_at_schema(file: InputFile, format: Format, path: FieldPath, seen: _Seen) -> None:
    with open_input(file) as view:
        try:
            schema, num_rows = _schema(view, format)
        except ParquetDamage:
            return
    twice = num_named(schema, path[0])
    if twice > 1:
        raise InputError(
            f"{file.path} has {twice} columns named `{path[0]}`, so it isn't clear which one is "
            "meant. Rename them, leave the file out, or name another column with --text-field (in "
            "a recipe `fields: {text: ...}`)."
        )
    seen.num_records += num_rows
    seen.num_looked_at += num_rows
    seen.has_text |= type_at(schema, path) is not None
    for column in schema:
        seen.keys.setdefault(column.name)
        seen.text_bytes[column.name] += is_text(column.type)


def _schema(view: View, format: Format) -> tuple[pa.Schema, int]:
    """Returns the columns and how many rows there are; of Arrow IPC, as many as are looked at."""
    if format.kind == "parquet":
        parquet = ParquetInput(view)
        return parquet.schema, parquet.num_rows
    arrow = ArrowInput(view)
    first = next((batch for _, batch in arrow.batches(range(1))), None)
    return arrow.schema, first.rows(0) if isinstance(first, ArrowBatch) else 0


def _note_keys(record: dict[str, object], seen: _Seen) -> None:
    for key, value in record.items():
        seen.keys.setdefault(key)
        name = key.replace(".", "\\.")
        children = value.items() if isinstance(value, dict) else ()
        for path, text in ((name, value), *((f"{name}.{k}", v) for k, v in children)):
            if type(text) is str:
                seen.text_bytes[path] += len(text)


def _no_text(seen: _Seen, name: str, source: str) -> str:
    count = min(seen.num_records, _FIRST_RECORDS)
    where = f"the first {count:,} records" if count > 1 else "the only record"
    strings = {path: size for path, size in seen.text_bytes.items() if size}
    near = get_close_matches(name, strings, n=1, cutoff=0.75)
    usual = [path for path in _USUAL_NAMES if path in strings]
    longest = sorted(strings, key=lambda path: strings[path], reverse=True)
    likely = next(iter((*near, *usual, *longest)), None)
    keys = [*islice(seen.keys, _KEYS_SHOWN), *(["..."] if len(seen.keys) > _KEYS_SHOWN else [])]
    question = (
        f"; did you mean `{likely}`? Say --text-field {likely}, or in a recipe "
        f"`fields: {{text: {likely}}}`."
        if likely
        else "."
    )
    return f"no `{name}` in {where} of {source}{question} Keys there: {', '.join(keys) or 'none'}."
