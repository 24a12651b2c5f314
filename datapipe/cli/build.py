"""`datapipe init`, `build`, `append`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from datapipe.cli.arguments import AsJson, Author, Quiet, Reason, user_or
from datapipe.cli.output import Output, stderr_console, table
from datapipe.cli.progress import progress
from datapipe.engine import (
    BuildOptions,
    BuildReport,
    Request,
    append_dataset,
    build_dataset,
    plan_build,
)
from datapipe.errors import UsageError
from datapipe.recipe import starter_recipe

__all__ = ["register"]

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="RECIPE.yaml | PATH...",
        help="A recipe, or files, folders and globs of JSONL (plain, .gz, .zst), Parquet or text.",
        show_default=False,
    ),
]
TokenizerOption = Annotated[
    str | None,
    typer.Option("--tokenizer", "-t", help="A tokenizer.json or its folder.", show_default=False),
]
Eos = Annotated[
    str | None,
    typer.Option("--eos", help="The token that closes a document, where the tokenizer names none."),
]
TextField = Annotated[
    str | None,
    typer.Option("--text-field", help="Field that holds the text.", show_default="text"),
]
Source = Annotated[
    str | None,
    typer.Option("--source", help="Name of the documents in a mixture.", show_default="default"),
]
Workers = Annotated[
    int | None, typer.Option("--workers", "-j", min=1, help="Processes.", show_default="all cores")
]
WorkFolder = Annotated[
    str | None,
    typer.Option("--work", help="Folder for unfinished work.", show_default="_work in the dataset"),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be read.")]
MaxQuarantined = Annotated[
    float | None,
    typer.Option(
        "--max-quarantined",
        min=0,
        max=1,
        help="Share of unreadable records that stops the build.",
        show_default="0.001",
    ),
]
MaxDropped = Annotated[
    float | None,
    typer.Option(
        "--max-dropped",
        min=0,
        max=1,
        help="Share of a source's documents whose loss stops the build.",
        show_default="0.9",
    ),
]

AllowDamaged = Annotated[
    bool,
    typer.Option("--allow-damaged", help="Accept cut or damaged input files: exit 0, not 3."),
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(init)
    app.command()(build)
    app.command()(append)


def init(
    path: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("recipe.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a commented starter recipe."""
    if path.exists() and not force:
        raise UsageError(f"{path} exists and was left as it is; name another, or give --force")
    try:
        path.write_text(starter_recipe())
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from error
    hint = f"wrote {path}; edit it, then: datapipe build {path} --out DATASET"
    Output(as_json=as_json).result(
        {"recipe": str(path)}, lambda console: console.print(hint, markup=False)
    )


def build(
    inputs: Inputs,
    out: Annotated[str, typer.Option("--out", "-o", help="The dataset's folder.")] = "dataset",
    tokenizer: TokenizerOption = None,
    eos: Eos = None,
    text_field: TextField = None,
    source: Source = None,
    workers: Workers = None,
    work: WorkFolder = None,
    author: Author = None,
    reason: Reason = "",
    max_quarantined: MaxQuarantined = None,
    max_dropped: MaxDropped = None,
    allow_damaged: AllowDamaged = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Build a dataset from a recipe or from paths; on an existing one, its next version."""
    request = Request(
        inputs=tuple(inputs),
        tokenizer=tokenizer,
        eos=eos,
        text_field=text_field,
        source=source,
        max_quarantined_fraction=max_quarantined,
        max_dropped_fraction=max_dropped,
        allow_damaged=allow_damaged,
    )
    if dry_run:
        return _show_plan(request, None, own=[out, *([work] if work else [])], as_json=as_json)
    with _options(workers, work, author, reason, quiet=quiet) as options:
        report = build_dataset(request, out=out, options=options)
    _show(report, as_json=as_json)


def append(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="The dataset's folder.")],
    inputs: Inputs,
    text_field: TextField = None,
    source: Source = None,
    workers: Workers = None,
    work: WorkFolder = None,
    author: Author = None,
    reason: Reason = "",
    max_quarantined: MaxQuarantined = None,
    max_dropped: MaxDropped = None,
    allow_damaged: AllowDamaged = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Add documents to a dataset as its next version; inputs that are in already are skipped."""
    request = Request(
        inputs=tuple(inputs),
        text_field=text_field,
        source=source,
        max_quarantined_fraction=max_quarantined,
        max_dropped_fraction=max_dropped,
        allow_damaged=allow_damaged,
    )
    if dry_run:
        return _show_plan(request, dataset, own=[work] if work else [], as_json=as_json)
    with _options(workers, work, author, reason, quiet=quiet) as options:
        report = append_dataset(dataset, request, options=options)
    _show(report, as_json=as_json)


@contextmanager
def _options(
    workers: int | None, work: str | None, author: str | None, reason: str, *, quiet: bool
) -> Iterator[BuildOptions]:
    """Yields how to build, with a listener that draws the progress meanwhile."""
    with progress(quiet=quiet) as listener:
        yield BuildOptions(
            workers=workers,
            work=work,
            author=user_or(author),
            reason=reason,
            progress=listener,
        )


def _show_plan(request: Request, dataset: str | None, *, own: Sequence[str], as_json: bool) -> None:
    plan = plan_build(request, dataset=dataset, own=own)

    def draw(console: Console) -> None:
        rows = [
            (source["source"], source["files"], source["bytes"] / 1e6, ", ".join(source["formats"]))
            for source in plan["sources"]
        ]
        console.print(table(["source", "files", "MB", "formats"], rows))
        console.print(
            f"stages: {', '.join(plan['stages']) or 'none'}; nothing was written", markup=False
        )

    Output(as_json=as_json).result(plan, draw)
    for note in plan["notes"]:
        stderr_console().print(note, markup=False)


def _show(report: BuildReport, *, as_json: bool) -> None:
    data = report.to_json()
    Output(as_json=as_json).result(data, lambda console: _draw(console, data))
    for warning in report.warnings if report.is_complete else report.remarks:
        stderr_console().print(f"datapipe: warning: {warning}", markup=False)
    if not report.is_complete:
        stderr_console().print(f"datapipe: {report.incomplete}", markup=False)
        raise typer.Exit(3)


def _draw(console: Console, data: dict[str, Any]) -> None:
    documents = data["documents"]
    rows: list[tuple[str, object]] = [
        ("records in", documents["in"]),
        ("documents kept", documents["kept"]),
    ]
    rows += [(f"dropped: {rule}", count) for rule, count in documents["dropped"].items()]
    rows += [(f"quarantined: {error}", count) for error, count in documents["quarantined"].items()]
    rows += [("tokens", data["tokens"]), ("shards", data["shards"])]
    if data["inputs"]["skipped"]:
        rows.append(("input files skipped (in already)", data["inputs"]["skipped"]))
    console.print(table(["", "count"], rows))
    verb = "committed version" if data["created"] else "nothing new: the result equals version"
    console.print(
        f"{data['dataset']}: {verb} {data['version']} in {data['seconds']:.1f} s\n"
        f"documents end with {data['eos']['token']} ({data['eos']['id']})\n"
        f"manifest {data['manifest']}\nlogical  {data['logical']}\ncontent  {data['content']}",
        markup=False,
    )
