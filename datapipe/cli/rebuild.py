"""`datapipe rebuild`: does the recorded recipe still give what is recorded?"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from datapipe.cli.arguments import AsJson, DatasetArgument, Quiet, local_folder
from datapipe.cli.build import StageFiles, Workers
from datapipe.cli.output import Output
from datapipe.cli.progress import progress
from datapipe.dataset import open_dataset
from datapipe.engine.rebuild import RebuildOptions, RebuildReport, Verdict, rebuild_dataset
from datapipe.errors import FailedError

__all__ = ["register"]


_FAILED = {
    Verdict.DIFFERENT: "doesn't come out as recorded",
    Verdict.NOT_REBUILT: "can't be rebuilt",
}


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(rebuild)


def rebuild(
    dataset: DatasetArgument,
    inputs: Annotated[
        str | None,
        typer.Option(
            "--inputs",
            metavar="ROOT",
            help="Folder that holds the inputs now; nothing outside it is read.",
            show_default="where they were",
            callback=local_folder,
        ),
    ] = None,
    last_step: Annotated[
        bool,
        typer.Option(
            "--last-step", help="Only the version's own build or append, not those before it."
        ),
    ] = False,
    work: Annotated[
        str | None,
        typer.Option(
            "--work",
            help="Local folder for the rebuilt copy, which is removed at the end.",
            show_default="the system's for temporary files",
            callback=local_folder,
        ),
    ] = None,
    stages: StageFiles = None,
    allow_stage: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-stage",
            metavar="NAME",
            help="A stage that doesn't come with the program and may run, from --stages or an "
            "installed package; may be given several times.",
            show_default=False,
        ),
    ] = None,
    data_file: Annotated[
        list[str] | None,
        typer.Option(
            "--data-file",
            metavar="PATH",
            help="A file that a stage reads, such as a model; may be given several times.",
            show_default=False,
        ),
    ] = None,
    workers: Workers = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a version's recipe on its inputs again, and say whether the same comes out.

    For example: datapipe rebuild dataset@release-1 --inputs /archive/raw
    """
    opened = open_dataset(dataset)
    with progress(quiet=quiet) as listener:
        options = RebuildOptions(
            inputs=inputs,
            last_step=last_step,
            work=work,
            workers=workers,
            stages=tuple(stages or ()),
            allow_stages=tuple(allow_stage or ()),
            data_files=tuple(data_file or ()),
            progress=listener,
        )
        report = rebuild_dataset(opened, options=options)
    Output(as_json=as_json).result(report.to_json(), lambda console: _draw(console, report))
    said = _FAILED.get(report.verdict)
    if said is not None:
        step = report.steps[-1]
        raise FailedError(
            f"version {step.version} of {report.dataset} {said}: {step.reason}. The dataset itself "
            "was left as it is"
        )


def _draw(console: Console, report: RebuildReport) -> None:
    for step in report.steps:
        console.print(
            f"version {step.version} ({step.operation}, {step.num_inputs:,} inputs, "
            f"{step.bytes_in / 1e6:,.1f} MB): {step.verdict.value}"
            + (f": {step.reason}" if step.reason else ""),
            markup=False,
        )
    console.print(
        f"{report.dataset} version {report.version}: {report.verdict.value} "
        f"({report.seconds:.1f} s)",
        markup=False,
    )
