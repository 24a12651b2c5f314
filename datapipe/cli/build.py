"""`datapipe init`, `build`, `append`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from datapipe.cli.arguments import (
    AsJson,
    Author,
    OutFolder,
    PlainDataset,
    Quiet,
    Reason,
    WorkFolder,
    file_name,
    share,
    user_or,
)
from datapipe.cli.expanded import expanded
from datapipe.cli.messages import say
from datapipe.cli.output import Output, table
from datapipe.cli.progress import progress
from datapipe.cli.signals import noted
from datapipe.cli.signing import KeyToSign, private_key, sign_built
from datapipe.dataset import Repository
from datapipe.engine import (
    MAX_WORKERS,
    BuildOptions,
    BuildReport,
    Request,
    append_dataset,
    build_dataset,
    plan_build,
)
from datapipe.errors import UsageError
from datapipe.observe import Progress
from datapipe.recipe import starter_recipe

__all__ = ["Eos", "Inputs", "TokenizerOption", "Workers", "register"]

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="RECIPE.yaml | PATH",
        help="A recipe, or files, folders and globs of JSONL (plain, .gz, .zst), Parquet or text.",
        show_default=False,
    ),
]
TokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        "-t",
        help="A tokenizer's file (tokenizer.json, .model, tekken.json, .tiktoken) or folder, or "
        "an encoding's name (cl100k_base).",
        show_default=False,
    ),
]
Eos = Annotated[
    str | None,
    typer.Option(
        "--eos",
        help="The token that closes a document.",
        show_default="the one the tokenizer names",
    ),
]


Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        "-j",
        min=1,
        max=MAX_WORKERS,
        help="Processes.",
        show_default="all cores",
    ),
]


StageFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--stages",
        metavar="FILE.py",
        help="A Python file that defines stages of your own; may be given several times.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shared:
    """What `build` and `append` both take."""

    text_field: Annotated[
        str | None,
        typer.Option("--text-field", help="Field that holds the text.", show_default="text"),
    ] = None
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            help="Name of the documents in a mixture.",
            show_default="documents, or the dataset's only one",
        ),
    ] = None
    workers: Workers = None
    work: WorkFolder = None
    author: Author = None
    reason: Reason = ""
    max_quarantined: Annotated[
        float | None,
        typer.Option(
            "--max-quarantined",
            callback=share,
            help="Share of unreadable records that stops the build, 0 to 1.",
            show_default="0.001, or the recipe's",
        ),
    ] = None
    max_dropped: Annotated[
        float | None,
        typer.Option(
            "--max-dropped",
            callback=share,
            help="Share of a source's documents whose loss stops the build, 0 to 1.",
            show_default="0.9, or the recipe's",
        ),
    ] = None
    allow_damaged: Annotated[
        bool,
        typer.Option("--allow-damaged", help="Accept cut or damaged input files: exit 0, not 3."),
    ] = False
    stages: StageFiles = None
    sign_key: KeyToSign = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be read.")] = False
    quiet: Quiet = False
    as_json: AsJson = False

    @property
    def own(self) -> list[str]:
        """Folders that aren't input."""
        return [self.work] if self.work else []

    def request(
        self, inputs: list[str], *, tokenizer: str | None = None, eos: str | None = None
    ) -> Request:
        return Request(
            inputs=tuple(inputs),
            tokenizer=tokenizer,
            eos=eos,
            text_field=self.text_field,
            source=self.source,
            max_quarantined_fraction=self.max_quarantined,
            max_dropped_fraction=self.max_dropped,
            allow_damaged=self.allow_damaged,
            stages=tuple(self.stages or ()),
        )

    def options(self, listener: Progress) -> BuildOptions:
        return BuildOptions(
            workers=self.workers,
            work=self.work,
            author=user_or(self.author),
            reason=self.reason,
            progress=listener,
        )


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(init)
    app.command()(expanded(build))
    app.command()(expanded(append))


def init(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="Where to write it.", callback=file_name)
    ] = Path("recipe.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a commented starter recipe.

    For example: datapipe init recipe.yaml
    """
    if path.exists() and not force:
        raise UsageError(f"{path} exists and was left as it is; name another, or give --force")
    try:
        path.write_text(starter_recipe())
    except OSError as error:
        raise UsageError(
            f"{path} can't be written: {error.strerror}; name a file in a folder that can"
        ) from error
    hint = f"wrote {path}; edit it, then: datapipe build {path} --out DATASET"
    Output(as_json=as_json).result(
        {"recipe": str(path)}, lambda console: console.print(hint, markup=False)
    )


def build(
    inputs: Inputs,
    *,
    out: OutFolder = "dataset",
    tokenizer: TokenizerOption = None,
    eos: Eos = None,
    shared: _Shared,
) -> None:
    """Build a dataset from a recipe or from paths; on an existing one, its next version.

    For example: datapipe build crawl/ books.parquet -t tokenizer.json --out dataset
    """
    request = shared.request(inputs, tokenizer=tokenizer, eos=eos)
    if shared.dry_run:
        return _show_plan(request, None, own=[out, *shared.own], as_json=shared.as_json)
    _carry_out(lambda options: build_dataset(request, out=out, options=options), shared)


def append(dataset: PlainDataset, inputs: Inputs, *, shared: _Shared) -> None:
    """Add documents to a dataset as its next version; inputs that are in already are skipped.

    For example: datapipe append dataset more.jsonl --reason "crawl of May"
    """
    request = shared.request(inputs)
    if shared.dry_run:
        return _show_plan(request, dataset, own=shared.own, as_json=shared.as_json)
    _carry_out(lambda options: append_dataset(dataset, request, options=options), shared)


def _carry_out(make: Callable[[BuildOptions], BuildReport], shared: _Shared) -> None:
    signer = None if shared.sign_key is None else private_key(shared.sign_key)
    nothing = "nothing was committed; run the same command again"
    with progress(quiet=shared.quiet) as listener, noted(nothing):
        report = make(shared.options(listener))
    verb = "was committed" if report.created else "is there as before"
    done = f"version {report.version} of {report.dataset} {verb}"
    with noted(done):
        if signer is not None:  # before `_show`, which ends the command where input was damaged
            signed = sign_built(Repository(report.dataset).open(report.version), signer)
            done = f"{done} and signed with key {signed.key_id}"
            if not shared.quiet:
                say(done)
        _show(report, done, as_json=shared.as_json)


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
        say(note)


def _show(report: BuildReport, done: str, *, as_json: bool) -> None:
    data = report.to_json()
    Output(as_json=as_json).result(data, lambda console: _draw(console, data), done=done)
    for warning in report.warnings if report.is_complete else report.remarks:
        say(f"warning: {warning}")
    if not report.is_complete:
        say(report.incomplete)
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
    if data["special_text"]["documents"]:
        rows.append(("with text of special tokens", data["special_text"]["documents"]))
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
