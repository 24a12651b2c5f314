"""Rows of any number on standard output or into a file, written as they come."""

from __future__ import annotations

import codecs
import contextlib
import csv
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec
import pyarrow.parquet as pq
import typer
from rich.table import Table

from datapipe.cli.arguments import file_name
from datapipe.cli.messages import printable
from datapipe.cli.output import Output, cell_text, table
from datapipe.errors import FailedError, UsageError
from datapipe.lineage.sql import SqlRows

__all__ = ["AsCsv", "AsRows", "Out", "RowFormat", "chosen_format", "write_rows"]

AsRows = Annotated[bool, typer.Option("--json", help="Print a JSON array of rows.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Write a file: .parquet, .csv, .json or .jsonl.",
        callback=file_name,
    ),
]

_PAGE_ROWS = 1000  # a table's columns can't be laid out before its rows are there


class RowFormat(Enum):
    """How rows are written; the value is the suffix of a file."""

    TABLE = ""
    JSON = ".json"
    LINES = ".jsonl"
    CSV = ".csv"
    PARQUET = ".parquet"


def chosen_format(given: RowFormat | None, out: Path | None) -> RowFormat:
    """Returns the format that an option or the name of the file asks for. Raises: UsageError."""
    if out is None:
        return given or RowFormat.TABLE
    known = [form for form in RowFormat if form is not RowFormat.TABLE]
    named = next((form for form in known if form.value == out.suffix.lower()), None)
    if named is None:
        raise UsageError(
            f"{out} has none of the endings {', '.join(form.value for form in known)}; nothing "
            "was written; name the file so that its format is known"
        )
    if given not in (None, named):
        raise UsageError(f"{out} is to be {named.value}, the option says {given.value}; give one")
    return named


def write_rows(rows: SqlRows, form: RowFormat, out: Path | None = None) -> None:
    """Writes all rows, to standard output without `out`.

    A file appears under its name when it is complete.

    Raises:
        FailedError: the file or standard output can't be written.
    """
    output = Output(as_json=False)
    if out is not None:
        with _new_file(out) as file:
            _WRITERS[form](rows, file)
    elif form is RowFormat.TABLE and sys.stdout.isatty():
        output.pages(_tables(rows))
    else:
        with output.stream() as file:
            _WRITERS[form](rows, file)


@contextlib.contextmanager
def _new_file(out: Path) -> Iterator[IO[bytes]]:
    partial = out.with_name(out.name + ".partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(out)
    except OSError as error:
        raise FailedError(f"{out} can't be written: {error}; choose another place") from error
    finally:
        partial.unlink(missing_ok=True)


def _pages(rows: SqlRows) -> Iterator[list[list[object]]]:
    """Yields the cells of so many rows as are laid out together; at least one page."""
    page: list[list[object]] = []
    for batch in rows.batches():
        for row in batch.to_pylist():
            if len(page) == _PAGE_ROWS:
                yield page
                page = []
            page.append([_cell(value) for value in row.values()])
    yield page


def _tables(rows: SqlRows) -> Iterator[Table]:
    return (table([printable(name) for name in rows.columns], page) for page in _pages(rows))


def _write_text(rows: SqlRows, file: IO[bytes]) -> None:
    """Writes what a terminal shows, without folding: 30 times as fast."""
    head = [printable(name) for name in rows.columns]
    for page in _pages(rows):
        lines = [head, *([cell_text(value) for value in row] for row in page)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        columns = list(zip(*page, strict=True)) or [()] * len(head)
        right = [bool(c) and all(isinstance(cell, int | float) for cell in c) for c in columns]
        for line in lines:
            cells = [
                cell.rjust(width) if is_right else cell.ljust(width)
                for cell, width, is_right in zip(line, widths, right, strict=True)
            ]
            file.write(("  ".join(cells) + "\n").encode())


def _write_json(rows: SqlRows, file: IO[bytes]) -> None:
    before = b"[\n"
    for encoded in _encoded(rows):
        file.write(before + encoded)
        before = b",\n"
    file.write(b"[\n]\n" if before == b"[\n" else b"\n]\n")


def _write_lines(rows: SqlRows, file: IO[bytes]) -> None:
    for encoded in _encoded(rows):
        file.write(encoded + b"\n")


def _encoded(rows: SqlRows) -> Iterator[bytes]:
    for batch in rows.batches():
        for row in batch.to_pylist():
            yield msgspec.json.encode({name: _value(value) for name, value in row.items()})


def _write_csv(rows: SqlRows, file: IO[bytes]) -> None:
    writer = csv.writer(codecs.getwriter("utf-8")(file), lineterminator="\n")
    writer.writerow(rows.columns)
    for batch in rows.batches(as_text=True):
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _write_parquet(rows: SqlRows, file: IO[bytes]) -> None:
    batches = rows.batches()
    first = next(batches)  # has no rows, but always comes
    with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


_WRITERS: dict[RowFormat, Callable[[SqlRows, IO[bytes]], None]] = {
    RowFormat.TABLE: _write_text,
    RowFormat.JSON: _write_json,
    RowFormat.LINES: _write_lines,
    RowFormat.CSV: _write_csv,
    RowFormat.PARQUET: _write_parquet,
}


def _value(value: Any) -> Any:
    """Returns a value as JSON has it: whole decimals (sums) as integers, bytes readable."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return _readable(value)
    if isinstance(value, list):
        return [_value(item) for item in value]
    if isinstance(value, dict):
        return {name: _value(item) for name, item in value.items()}
    return value


def _cell(value: Any) -> object:
    value = _value(value)
    if isinstance(value, list | dict):
        return msgspec.json.encode(value).decode()
    return value


def _readable(data: bytes) -> str:
    """Returns printable ASCII as it is, other bytes as \\xNN: what DuckDB shows of a BLOB."""
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in data)
