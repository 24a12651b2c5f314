"""`datapipe show`, `verify`, `read`: looking at what is there."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from datapipe.cli.arguments import (
    AcceptRollback,
    AsJson,
    DatasetArgument,
    Quiet,
    count,
    place,
    share,
)
from datapipe.cli.output import Output, table
from datapipe.cli.progress import progress
from datapipe.cli.signing import KeyOfSigner, KeyToCheck, public_key, show_signer
from datapipe.dataset import (
    Dataset,
    VerifyReport,
    check_signature,
    check_signers,
    list_signers,
    open_dataset,
    summarize,
    verify_reference,
)
from datapipe.errors import DamagedError, UsageError
from datapipe.lineage import read_documents, read_sample

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(show)
    app.command()(verify)
    app.command()(read)


def show(
    dataset: DatasetArgument,
    key: KeyOfSigner = None,
    accept_rollback: AcceptRollback = False,
    as_json: AsJson = False,
) -> None:
    """Show what a version holds: sources, tokens, counts, digests; and who signed it.

    For example: datapipe show dataset@3
    """
    verifier = public_key(key)
    opened = open_dataset(dataset, accept_rollback=accept_rollback)
    signers = check_signers(opened, list_signers(opened), key=verifier)
    data = {**summarize(opened), "signers": [msgspec.to_builtins(signer) for signer in signers]}

    def draw(console: Console) -> None:
        console.print(f"{data['dataset']} version {data['version']}", markup=False)
        columns = ["source", "shards", "documents", "tokens", "text_bytes"]
        console.print(table(columns, [[source[c] for c in columns] for source in data["sources"]]))
        counts = data["documents"]
        console.print()
        console.print(table(["records", "count"], _count_rows(counts)))
        console.print()
        facts = {
            "manifest": data["manifest"],
            "logical": data["logical"],
            "content": data["content"],
        }
        for name, value in {**facts, **data["tokenizer"]}.items():
            console.print(f"{name:<10} {value}", markup=False)
        for signer in data["signers"]:
            console.print(show_signer(signer, key=verifier), markup=False)

    Output(as_json=as_json).result(data, draw)


def _count_rows(counts: dict[str, Any]) -> list[tuple[str, int]]:
    rows = [("in", counts["in"]), ("kept", counts["kept"])]
    rows += [(f"dropped: {rule}", count) for rule, count in counts["dropped"].items()]
    rows += [(f"quarantined: {error}", count) for error, count in counts["quarantined"].items()]
    return rows


def verify(
    dataset: DatasetArgument,
    sample: Annotated[
        float,
        typer.Option(
            "--sample", help="Share of the shards to read, 0 to 1; tables are all.", callback=share
        ),
    ] = 1.0,
    repair_from: Annotated[
        str | None,
        typer.Option(
            "--repair-from",
            metavar="COPY",
            help="Another copy of the dataset: what is damaged or missing is fetched from there.",
            callback=place,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", "-j", min=1, max=1024, help="Threads.", show_default="all cores"),
    ] = None,
    key: KeyToCheck = None,
    accept_rollback: AcceptRollback = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Check every digest of a version, from its log entry down to blocks of tokens.

    For example: datapipe verify dataset@release-1 --sample 0.1
    """
    verifier = public_key(key)
    with progress(quiet=quiet) as listener:
        opened, report = verify_reference(
            dataset,
            repair_from=repair_from,
            sample=sample,
            accept_rollback=accept_rollback,
            on_open=lambda version: verifier and check_signature(version, verifier),
            progress=listener,
            workers=workers,
        )
    data = {
        "dataset": opened.url,
        "version": opened.version,
        "objects": report.objects,
        "bytes": report.bytes,
        "signed_with": None if verifier is None else verifier.key_id,
        "problems": list(report.problems),
        "repaired": {
            "objects": len(report.repaired),
            "bytes": sum(item.num_bytes for item in report.repaired),
            "items": [msgspec.to_builtins(item) for item in report.repaired],
        },
    }
    Output(as_json=as_json).result(data, lambda console: _draw_verified(console, data, sample))
    if report.problems:
        raise _damaged(opened, report, copy=repair_from)


def _draw_verified(console: Console, data: dict[str, Any], sample: float) -> None:
    for item in data["repaired"]["items"]:
        console.print(f"repaired {item['path']}: {item['problem']}", markup=False)
    for problem in data["problems"]:
        console.print(problem, markup=False)
    if data["repaired"]["objects"]:
        repaired = data["repaired"]
        console.print(f"{repaired['objects']:,} objects, {repaired['bytes']:,} bytes repaired")
    if data["signed_with"]:
        console.print(f"signed with key {data['signed_with']}", markup=False)
    verdict = "damaged" if data["problems"] else "every digest is right"
    console.print(
        f"version {data['version']}: {data['objects']:,} objects, {data['bytes'] / 1e6:,.1f} MB "
        f"checked: {verdict}{_extent(sample)}",
        markup=False,
    )


def _damaged(dataset: Dataset, report: VerifyReport, *, copy: str | None) -> DamagedError:
    count = len(report.problems)
    problems = f"{count} problem{'s' if count > 1 else ''}"
    if copy is not None:
        return DamagedError(
            f"{problems} of {dataset.url} version {dataset.version} remain, the first: "
            f"{report.problems[0]}. Name another copy with --repair-from, or build again from the "
            f"inputs (`datapipe rebuild {dataset.url}@{dataset.version}` tells if they are there)"
        )
    return DamagedError(
        f"{problems} in {report.objects:,} objects of {dataset.url} version {dataset.version}, the "
        f"first: {report.problems[0]}. Run `datapipe verify {dataset.url}@{dataset.version} "
        "--repair-from COPY` to fetch what is damaged from another copy, or build again from the "
        "inputs"
    )


def _extent(sample: float) -> str:
    """Returns what a verdict leaves open where not every shard was read."""
    if sample == 1:
        return ""
    return "; no shard was read" if sample == 0 else f"; about {sample:.3%} of the shards were read"


def read(
    dataset: DatasetArgument,
    doc: Annotated[
        str | None, typer.Option("--doc", help="A document's id, or its record id.")
    ] = None,
    head: Annotated[
        int | None,
        typer.Option(
            "--head", min=1, callback=count, help="The first N documents.", show_default="1"
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            min=0,
            callback=count,
            help="Sample G of the order of a run, from 0; needs --run.",
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", help="The run whose order --sample counts in.")
    ] = None,
    source: Annotated[str | None, typer.Option("--source", help="Only this source.")] = None,
    accept_rollback: AcceptRollback = False,
    as_json: AsJson = False,
) -> None:
    """Print documents or samples as text, decoded from their tokens.

    For example: datapipe read dataset --head 3, or --sample 41 --run my-run
    """
    if sum(value is not None for value in (doc, head, sample)) > 1:
        raise UsageError(
            "--doc, --head and --sample say different things to print; give one of them"
        )
    if sample is not None and run is None:
        raise UsageError("--sample counts in the order of a run; name it with --run")
    if run is not None and sample is None:
        raise UsageError("--run only says what --sample counts in; give --sample, or leave it out")
    opened = open_dataset(dataset, accept_rollback=accept_rollback)
    if sample is not None and run is not None:
        found = [read_sample(opened, sample, run=run)]
    else:
        found = read_documents(opened, doc=doc, head=head or 1, source=source)

    def draw(console: Console) -> None:
        for item in found:
            head_line = ", ".join(
                f"{k} {v}"
                for k, v in item.items()
                if k != "text" and isinstance(v, str | int | float)
            )
            console.print(f"--- {head_line}", markup=False, style="dim")
            console.print(item["text"], markup=False)

    Output(as_json=as_json).result(found, draw)
