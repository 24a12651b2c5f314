"""`datapipe lineage batch` and `lineage doc`; `why` and `docs` are in `documents.py`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from datapipe.cli.arguments import AsJson, DatasetArgument, Quiet, Runs, count
from datapipe.cli.documents import docs, why
from datapipe.cli.output import Output, table
from datapipe.cli.progress import progress
from datapipe.dataset import open_dataset
from datapipe.errors import UsageError
from datapipe.lineage import documents_of_batch, documents_of_step, steps_of_document

__all__ = ["register"]

Run = Annotated[str, typer.Option("--run", help="Name of the training run.")]


_PLANNED = (
    "planned, not known to be delivered: the record has neither an end nor a saved state behind "
    "this batch (the run goes on, was killed, or was read by DataLoader workers)"
)


def register(app: typer.Typer) -> None:
    """Adds the command group."""
    group = typer.Typer(
        name="lineage",
        help="Which documents a training step saw, which steps saw a document, and what became "
        "of any record that was read.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command()(batch)
    group.command()(doc)
    group.command()(why)
    group.command()(docs)
    app.add_typer(group)


def batch(
    dataset: DatasetArgument,
    run: Run,
    step: Annotated[
        int | None, typer.Option("--step", min=0, callback=count, help="Step, from 0.")
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--batch", min=0, callback=count, help="Batch of the stream, from 0."),
    ] = None,
    rank: Annotated[
        int | None, typer.Option("--rank", min=0, callback=count, help="Only this rank, from 0.")
    ] = None,
    runs: Runs = None,
    as_json: AsJson = False,
) -> None:
    """List the documents of one step or batch.

    For example: datapipe lineage batch dataset --run my-run --step 1200 --rank 0
    """
    if (step is None) == (number is None):
        raise UsageError("documents are listed of one step or one batch; give --step or --batch")
    opened = open_dataset(dataset)
    if step is not None:
        answer = documents_of_step(opened, run=run, step=step, rank=rank, runs=runs)
    else:
        answer = documents_of_batch(opened, run=run, batch=number or 0, rank=rank, runs=runs)
    data = answer.to_json()

    def draw(console: Console) -> None:
        if not data["delivered"]:
            console.print(_PLANNED, markup=False)
        columns = ["sample", "rank", "doc_id", "source", "source_file", "source_offset"]
        columns += ["source_length", "tokens"]
        rows = [
            [sample["sample"], sample["rank"], *(document[name] for name in columns[2:])]
            for sample in data["samples"]
            for document in sample["documents"]
        ]
        console.print(table(columns, rows))

    Output(as_json=as_json).result(data, draw)


def doc(
    dataset: DatasetArgument,
    document: Annotated[str, typer.Argument(metavar="ID", help="A document's id, or record id.")],
    run: Run,
    runs: Runs = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """List the steps, batches and ranks that saw one document.

    For example: datapipe lineage doc dataset crawl-00017 --run my-run
    """
    with progress(quiet=quiet) as listener:
        answer = steps_of_document(
            open_dataset(dataset), document, run=run, runs=runs, progress=listener
        )
    data = answer.to_json()

    def draw(console: Console) -> None:
        place = data["document"]
        console.print(
            f"document {place['doc_id']} of source {place['source']}, {place['source_file']} at "
            f"{place['source_offset']}: {len(data['seen'])} samples",
            markup=False,
        )
        columns = ["step", "batch", "rank", "row", "sample", "epoch", "tokens", "delivered"]
        rows = [
            [*(seen[name] for name in columns[:-1]), "yes" if seen["delivered"] else "planned"]
            for seen in data["seen"]
        ]
        console.print(table(columns, rows))
        if any(not seen["delivered"] for seen in data["seen"]):
            console.print(_PLANNED, markup=False)

    Output(as_json=as_json).result(data, draw)
