"""`datapipe index`: making documents findable by id, URL and domain."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.console import Console

from datapipe.cli.arguments import AsJson, Author, PlainDataset, Quiet, Reason, user_or
from datapipe.cli.output import Output, table
from datapipe.cli.progress import progress
from datapipe.cli.versions import existing
from datapipe.dataset import index_dataset
from datapipe.dataset.layout import INDEX_KINDS

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(index)


def index(
    dataset: PlainDataset,
    doc: Annotated[bool, typer.Option("--doc", help="By the document's id.")] = False,
    url: Annotated[bool, typer.Option("--url", help="By its URL.")] = False,
    domain: Annotated[bool, typer.Option("--domain", help="By the URL's host.")] = False,
    author: Author = None,
    reason: Reason = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be made.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make indexes of the latest version (default: all three); appends keep them up."""
    repository = existing(dataset)
    wanted = [kind for kind, asked in zip(INDEX_KINDS, (doc, url, domain), strict=True) if asked]
    kinds = wanted or list(INDEX_KINDS)
    before = repository.open()
    made = [kind for kind in kinds if kind not in before.manifest.indexes]
    version = before.version
    if made and not dry_run:
        with progress(quiet=quiet) as listener:
            version = index_dataset(
                repository,
                kinds,
                author=user_or(author),
                reason=reason,
                time_seconds=time.time(),
                progress=listener,
            ).version
    indexes = {
        kind: {
            "files": len(files),
            "rows": sum(file.rows for file in files),
            "bytes": sum(file.bytes for file in files),
        }
        for kind, files in repository.open(version).manifest.indexes.items()
    }
    data = {
        "dataset": repository.url,
        "version": version,
        "made": made,
        "dry_run": dry_run,
        "indexes": indexes,
    }

    def draw(console: Console) -> None:
        rows = [(kind, *found.values()) for kind, found in indexes.items()]
        console.print(table(["index", "files", "rows", "bytes"], rows))
        said = "would be made (dry run)" if dry_run else f"made, version {version}"
        console.print(f"{', '.join(made)} {said}" if made else "there are no others to be made")

    Output(as_json=as_json).result(data, draw)
