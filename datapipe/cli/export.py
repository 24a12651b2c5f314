"""`datapipe export`: a version for other programs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from datapipe.cli.arguments import (
    AcceptRollback,
    AsJson,
    DatasetArgument,
    DryRun,
    Quiet,
    local_folder,
)
from datapipe.cli.output import Output, table
from datapipe.cli.progress import progress
from datapipe.cli.signals import noted
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
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", help="The folder to write, on this machine.", callback=local_folder
        ),
    ],
    source: Annotated[
        list[str] | None, typer.Option("--source", help="Only this source; repeatable.")
    ] = None,
    copy: Annotated[
        bool,
        typer.Option("--copy", help="Copy the tokens, one file a source; else shards are linked."),
    ] = False,
    dry_run: DryRun = False,
    accept_rollback: AcceptRollback = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make a version readable by another program, without copying its tokens.

    For example: datapipe export dataset@3 --to megatron --out megatron/dataset-3
    """
    opened = open_dataset(dataset, accept_rollback=accept_rollback)
    what = "what was exported is whole; run the same command again for the rest"
    with progress(quiet=quiet) as listener, noted(what):
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

    done = "" if dry_run else f"version {opened.version} was exported to {out}"
    Output(as_json=as_json).result(data, draw, done=done)
