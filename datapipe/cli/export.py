"""`datapipe export`: a version for other programs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from datapipe.cli.arguments import AcceptRollback, AsJson, DatasetArgument, Quiet
from datapipe.cli.output import Output, table
from datapipe.cli.progress import progress
from datapipe.dataset import open_dataset
from datapipe.dataset.foreign import export_megatron

__all__ = ["register"]


class Layout(StrEnum):
    """What to write."""

    MEGATRON = "megatron"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(export)


def export(
    dataset: DatasetArgument,
    to: Annotated[Layout, typer.Option("--to", help="Whose layout: megatron (.bin, .idx).")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write, on this machine.")],
    source: Annotated[
        list[str] | None, typer.Option("--source", help="Only this source; repeatable.")
    ] = None,
    copy: Annotated[
        bool,
        typer.Option("--copy", help="Copy the tokens, one file a source; else shards are linked."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be written.")
    ] = False,
    accept_rollback: AcceptRollback = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make a version readable by another program, without copying its tokens."""
    opened = open_dataset(dataset, accept_rollback=accept_rollback)
    with progress(quiet=quiet) as listener:
        made = export_megatron(
            opened, out, sources=source or (), copy=copy, dry_run=dry_run, progress=listener
        )
    data = {
        "dataset": opened.url,
        "version": opened.version,
        "to": to.value,
        "copied": copy,
        **msgspec.to_builtins(made),
        "dry_run": dry_run,
    }

    def draw(console: Console) -> None:
        columns = ["source", "data files", "documents", "tokens", "list for --data-args-path"]
        rows = [
            (s.source, s.num_files, s.num_documents, s.num_tokens, s.listing) for s in made.sources
        ]
        console.print(table(columns, rows))
        verb = "would be written" if dry_run else "written"
        console.print(f"{made.written:,} files {verb}, {made.existing:,} were there already")

    Output(as_json=as_json).result(data, draw)
