"""`datapipe preview`: what a recipe would keep and drop, seen on a sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console

from datapipe.cli.arguments import AsJson, Quiet
from datapipe.cli.build import Eos, Inputs, StageFiles, TokenizerOption, Workers
from datapipe.cli.messages import printable, say
from datapipe.cli.output import Output, table
from datapipe.cli.progress import progress
from datapipe.engine import Request
from datapipe.engine.preview import (
    Example,
    PreviewOptions,
    PreviewReport,
    StageReport,
    preview_recipe,
)
from datapipe.errors import UsageError
from datapipe.recipe import parse_size

__all__ = ["register"]

_SHOWN = 100
"""Characters of an example's text."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(preview)


def preview(
    inputs: Inputs,
    tokenizer: TokenizerOption = None,
    eos: Eos = None,
    text_field: Annotated[
        str | None,
        typer.Option("--text-field", help="Field that holds the text.", show_default="text"),
    ] = None,
    sample: Annotated[
        str, typer.Option("--sample", metavar="SIZE", help="Text to read, such as 64MB.")
    ] = "16MB",
    examples: Annotated[
        int,
        typer.Option(
            "--examples", min=0, max=100, help="Documents to show on each side of a threshold."
        ),
    ] = 2,
    workers: Workers = None,
    stages: StageFiles = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Show what a recipe would keep and drop, and what it would take, on a sample; write nothing.

    For example: datapipe preview recipe.yaml --sample 64MB
    """
    request = Request(
        inputs=tuple(inputs),
        tokenizer=tokenizer,
        eos=eos,
        text_field=text_field,
        stages=tuple(stages or ()),
    )
    size = _size(sample)
    with progress(quiet=quiet) as listener:
        options = PreviewOptions(
            sample_bytes=size, examples=examples, workers=workers, progress=listener
        )
        report = preview_recipe(request, options=options)
    Output(as_json=as_json).result(report.to_json(), lambda console: _draw(console, report))
    for note in report.notes:
        say(note)


def _size(given: str) -> int:
    try:
        size = parse_size(given)
    except ValueError as error:
        raise UsageError(
            f"--sample {given!r} isn't a size: {error}; nothing was done; give one such as 16MB"
        ) from error
    if not isinstance(size, int) or size < 1:
        raise UsageError(
            f"--sample {given!r} isn't a size; nothing was done; give one such as 16MB"
        )
    return size


def _draw(console: Console, report: PreviewReport) -> None:
    columns = ["source", "documents", "MB", "share", "kept", "kept %"]
    columns += [] if report.estimate.tokens is None else ["tokens"]
    console.print(table(columns, _source_rows(report)))
    if report.stages:
        console.print()
        several = len(report.sources) > 1
        head = ["stage", "in", "kept", "kept %", "changed", "MB/s"]
        head += [f"kept % of {source.source}" for source in report.sources] if several else []
        console.print(table(head, [_stage_row(stage, report) for stage in report.stages]))
    for stage in report.stages:
        _draw_rules(console, stage)
    console.print()
    console.print(_estimated(report), markup=False)


def _source_rows(report: PreviewReport) -> Iterator[list[object]]:
    for source in report.sources:
        row: list[object] = [
            source.source,
            source.documents,
            source.text_bytes / 1e6,
            f"{source.fraction:.2%}",
            source.kept,
            _percent(source.documents, source.kept),
        ]
        yield row if source.tokens is None else [*row, source.tokens]


def _stage_row(stage: StageReport, report: PreviewReport) -> list[object]:
    row: list[object] = [
        stage.stage,
        stage.documents_in,
        stage.kept,
        _percent(stage.documents_in, stage.kept),
        stage.changed,
        stage.megabytes_per_second,
    ]
    if len(report.sources) > 1:
        for source in report.sources:
            row.append(_percent(*stage.kept_of_source.get(source.source, (0, 0))))
    return row


def _percent(came: int, stayed: int) -> str:
    return f"{stayed / came:.1%}" if came else "-"


def _draw_rules(console: Console, stage: StageReport) -> None:
    for rule in stage.rules.values():
        if not rule.dropped:
            continue
        share = _percent(stage.documents_in, rule.dropped)
        threshold = "" if rule.threshold is None else f", threshold {rule.threshold:g}"
        console.print()
        console.print(
            f"{stage.stage}.{rule.rule}: {rule.dropped:,} dropped ({share}){threshold}",
            markup=False,
            style="bold",
        )
        for verdict, examples in (("dropped", rule.examples_dropped), ("kept", rule.examples_kept)):
            for example in examples:
                console.print(f"  {verdict:<8}{_shown(example)}", markup=False)


def _shown(example: Example) -> str:
    value = "" if example.value is None else f"{example.value:<10.4g}"
    text = printable(example.text[:_SHOWN]).replace("\n", "\\n")
    return f"{value}{text}"


def _estimated(report: PreviewReport) -> str:
    found = report.estimate
    cores = f"{found.workers} worker{'s' if found.workers > 1 else ''}"
    line = (
        f"a build of all, if the rest is like the sample: about {found.documents:,} documents, "
        f"{_duration(found.seconds)} with {cores} beside reading and writing, "
        f"{found.memory_bytes / 1e9:.1f} GB of memory"
    )
    if found.tokens is None or found.disk_bytes is None:
        return line + " (give --tokenizer for tokens and disk)"
    return f"{line}, {found.tokens:,} tokens, {found.disk_bytes / 1e9:,.3f} GB on disk"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours:,} h {rest // 60} min" if hours else f"{rest // 60} min {rest % 60} s"
