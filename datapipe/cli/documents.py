"""`datapipe lineage why` and `lineage docs`: asking for documents by what is known of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console

from datapipe.cli.arguments import AsJson, DatasetArgument, Quiet
from datapipe.cli.output import Output
from datapipe.cli.progress import progress
from datapipe.cli.rows import AsCsv, AsRows, Out, RowFormat, chosen_format, write_rows
from datapipe.dataset import open_dataset
from datapipe.errors import UsageError
from datapipe.lineage.sql import rows_where
from datapipe.lineage.why import why_document, why_record, why_url

__all__ = ["docs", "why"]


def why(
    dataset: DatasetArgument,
    document: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="A document's id, its first digits, or a record id."),
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="The URL it was read with.")] = None,
    file: Annotated[
        str | None, typer.Option("--file", help="The input file it was read from.")
    ] = None,
    offset: Annotated[
        int | None,
        typer.Option("--offset", min=0, help="Where in the file; of Parquet the row group."),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Say what became of a document: kept where, dropped by which rule, or quarantined."""
    if sum(given is not None for given in (document, url, file)) != 1:
        raise UsageError("name the document by one of ID, --url, or --file with --offset")
    if (file is None) != (offset is None):
        raise UsageError("--file and --offset go together: they name the place of a record")
    opened = open_dataset(dataset)
    with progress(quiet=quiet) as listener:
        if url is not None:
            fates = why_url(opened, url, progress=listener)
        elif file is not None and offset is not None:
            fates = why_record(opened, file=file, offset=offset, progress=listener)
        else:
            fates = why_document(opened, document or "", progress=listener)
    data = [fate.to_json() for fate in fates]

    def draw(console: Console) -> None:
        for fate in data:
            for line in _lines(fate):
                console.print(line, markup=False)

    Output(as_json=as_json).result(data, draw)


def docs(
    dataset: DatasetArgument,
    where: Annotated[
        str,
        typer.Option("--where", help="A condition in SQL: \"language = 'en' and num_tokens > 9\"."),
    ] = "true",
    domain: Annotated[
        str | None, typer.Option("--domain", help="Only of this host; an index makes it fast.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many.")] = None,
    as_json: AsRows = False,
    as_csv: AsCsv = False,
    out: Out = None,
) -> None:
    """List documents by any column of their docmaps."""
    if domain is not None and not domain.strip():
        raise UsageError(f"--domain {domain!r} names no host; nothing was read; give one")
    given = RowFormat.JSON if as_json else RowFormat.CSV if as_csv else None
    form = chosen_format(given, out)
    with rows_where(dataset, where, domain=domain, limit=limit) as rows:
        write_rows(rows, form, out)


def _lines(fate: dict[str, Any], indent: str = "") -> Iterator[str]:
    origin = f"{fate['source_file']} at {fate['source_offset']}"
    if fate["outcome"] == "quarantined":
        yield f"quarantined: {origin} of source {fate['source']}, version {fate['version']}"
        yield f"  error {fate['error']}: {fate['detail']}"
        yield f"  {fate['raw'][:200]!r}"
        return
    yield f"{indent}{fate['outcome']}: document {fate['doc_id']}, version {fate['version']}"
    yield f"{indent}  from {origin} of source {fate['source']}{_named(fate)}"
    if fate["outcome"] == "kept":
        end = fate["token_start"] + fate["num_tokens"]
        yield (
            f"{indent}  shard {fate['shard']}, tokens {fate['token_start']:,} to {end:,} "
            f"({fate['num_tokens']:,})"
        )
        return
    measured = [
        f"{name} {fate[name]:g}"
        for name in ("value", "threshold", "similarity")
        if fate[name] is not None
    ]
    yield f"{indent}  by {fate['stage']}.{fate['rule']}{_joined(measured)}"
    if fate["survivor"] is not None:
        yield f"{indent}  {fate['survivor']} stayed in its place"
        for survivor in fate["survivors"]:
            yield from _lines(survivor, indent + "    ")


def _named(fate: dict[str, Any]) -> str:
    return f", record {fate['record_id']}" if fate["record_id"] is not None else ""


def _joined(measured: list[str]) -> str:
    return f": {', '.join(measured)}" if measured else ""
