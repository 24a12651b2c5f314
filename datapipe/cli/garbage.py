"""`datapipe gc` and `datapipe hold`: freeing what nobody needs, and keeping what somebody does."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from datapipe.cli.arguments import (
    AsJson,
    Author,
    DryRun,
    PlainDataset,
    Quiet,
    Reason,
    Yes,
    places,
    user_or,
)
from datapipe.cli.output import Output, cell_text, table
from datapipe.cli.progress import progress
from datapipe.cli.versions import existing, utc
from datapipe.dataset import (
    Collector,
    Garbage,
    LogEntry,
    Swept,
    drop_hold,
    hold_version,
    list_holds,
    retire_versions,
)
from datapipe.dataset.runs import RunStore
from datapipe.errors import UsageError
from datapipe.observe import Progress

__all__ = ["parse_duration", "register"]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d|w)?")
_LONGEST_SECONDS = 100 * 365 * 86_400
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(gc)
    app.command()(hold)


def parse_duration(text: str) -> float:
    """Returns "90", "30m", "24h", "7d" as seconds. Raises: UsageError: not a duration."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} isn't a duration; give one such as 0, 30m, 24h, 7d or 4w")
    seconds = float(match[1]) * _SECONDS[match[2] or "s"]
    if seconds > _LONGEST_SECONDS:
        raise UsageError(f"{text[:40]!r} is longer than a hundred years; give less")
    return seconds


def gc(
    dataset: PlainDataset,
    grace: Annotated[
        str,
        typer.Option("--grace", help="What is younger stays, and what is marked waits so long."),
    ] = "24h",
    retire_older_than: Annotated[
        str | None,
        typer.Option(
            "--retire-older-than",
            help="Give up versions that are older, but not the newest nor those that a tag, a "
            "hold or a run needs.",
        ),
    ] = None,
    runs: Annotated[
        list[str] | None,
        typer.Option(
            "--runs",
            help="Where runs are recorded beside the dataset; repeatable.",
            callback=places,
        ),
    ] = None,
    author: Author = None,
    reason: Reason = "",
    yes: Yes = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Free what no version needs: mark it, and with --yes delete what was marked before.

    For example: datapipe gc dataset --dry-run, then --yes, and --yes again when the grace
    period is over
    """
    repository = existing(dataset)
    if retire_older_than is not None and not (yes or dry_run):
        raise UsageError(
            "--retire-older-than gives versions up for good and needs --yes; nothing was done; "
            "--dry-run shows which"
        )
    run_stores = [RunStore.at(url) for url in runs or ()]
    collector = Collector(repository, grace_seconds=parse_duration(grace), runs=run_stores)
    now, retiring = time.time(), list[LogEntry]()
    if retire_older_than is not None:
        age = parse_duration(retire_older_than)
        retiring = collector.retirable(older_than_seconds=age, time_seconds=now)
        if not dry_run:
            why = reason or f"older than {retire_older_than}"
            retire_versions(
                repository.store, retiring, author=user_or(author), reason=why, time_seconds=now
            )
    retired = [entry.version for entry in retiring]
    with progress(quiet=quiet) as listener:
        garbage = _find(collector, retired, listener, mark=not dry_run)
        swept = _sweep(collector, listener) if yes and not dry_run else None
    data = _report(garbage, swept, retired=retired, dry_run=dry_run)
    Output(as_json=as_json).result(data, lambda console: _draw(console, data))


def _find(
    collector: Collector, retired: Sequence[int], listener: Progress, *, mark: bool
) -> Garbage:
    listener.begin("find garbage", 0, "objects")
    garbage = collector.find(without=retired)
    listener.advance(len(garbage.objects))
    listener.end()
    if mark:
        collector.mark(garbage)
    return garbage


def _sweep(collector: Collector, listener: Progress) -> Swept:
    listener.begin("delete", 0, "objects")
    swept = collector.sweep()
    listener.advance(swept.objects)
    listener.end()
    return swept


def _report(
    garbage: Garbage, swept: Swept | None, *, retired: list[int], dry_run: bool
) -> dict[str, Any]:
    folders = garbage.by_folder().items()
    return {
        "garbage": {
            "objects": len(garbage.objects),
            "bytes": garbage.num_bytes,
            "folders": {name: {"objects": n, "bytes": size} for name, (n, size) in folders},
        },
        "writers": garbage.transactions,
        "kept": {str(version): reasons for version, reasons in garbage.kept.items()},
        "retired": retired,
        "deleted": {
            "objects": swept.objects,
            "bytes": swept.num_bytes,
            "spared": swept.spared,
            "waiting": swept.waiting,
        }
        if swept is not None
        else None,
        "dry_run": dry_run,
    }


def _draw(console: Console, data: Mapping[str, Any]) -> None:
    garbage, deleted = data["garbage"], data["deleted"]
    if garbage["objects"]:
        rows = [
            (name, found["objects"], found["bytes"] / 1e6)
            for name, found in garbage["folders"].items()
        ]
        console.print(table(["garbage", "objects", "MB"], rows))
    console.print(f"garbage: {garbage['objects']:,} objects, {garbage['bytes'] / 1e6:,.2f} MB")
    if data["retired"]:
        verb = "would be retired" if data["dry_run"] else "retired"
        console.print(f"{verb}: versions {', '.join(map(str, data['retired']))}")
    needed = {v: why for v, why in data["kept"].items() if why != ["not retired"]}
    for version, why in needed.items():
        console.print(f"version {version} stays: {cell_text(', '.join(why))}", markup=False)
    if data["writers"]:
        console.print(f"{data['writers']} writers are at work: what is younger than them stays")
    if deleted is not None:
        console.print(
            f"deleted: {deleted['objects']:,} objects, {deleted['bytes'] / 1e6:,.2f} MB; "
            f"{deleted['spared']:,} spared, {deleted['waiting']:,} wait for their time"
        )
    elif data["dry_run"]:
        console.print("nothing was changed (dry run)")
    else:
        console.print("marked; after the grace period `datapipe gc --yes` deletes it")


def hold(
    dataset: PlainDataset,
    version: Annotated[
        str | None,
        typer.Argument(
            metavar="VERSION",
            help="A number, tag, digest or time; none: the newest, if --reason is given; else all "
            "holds are listed.",
        ),
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Drop the hold of this version.")] = False,
    author: Author = None,
    reason: Reason = "",
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Keep a version, with a reason, until the hold is dropped; or list what is held.

    For example: datapipe hold dataset 3 --reason "model M was trained on it"
    """
    repository = existing(dataset)
    if version is None and drop:
        raise UsageError(
            "--drop needs the version whose hold is to be dropped; nothing was changed; "
            f"`datapipe hold {repository.url}` lists them"
        )
    if version is None and not reason:
        held = list_holds(repository.store)
    elif drop:
        if not (yes or dry_run):
            raise UsageError(
                "dropping a hold needs --yes; nothing was changed; --dry-run shows which it is"
            )
        number = repository.open(version).version
        held = [drop_hold(repository.store, number, dry_run=dry_run)]
    else:
        held = [
            hold_version(
                repository.open(version),
                author=user_or(author),
                reason=reason,
                time_seconds=time.time(),
                dry_run=dry_run,
            )
        ]
    data = [msgspec.to_builtins(found) for found in held]

    def draw(console: Console) -> None:
        rows = [(h.version, h.author, h.reason, utc(h.time_seconds)) for h in held]
        console.print(table(["version", "author", "reason", "time"], rows))
        if version is not None or reason:
            done = "dropped" if drop else "held"
            console.print("nothing was changed (dry run)" if dry_run else done)

    Output(as_json=as_json).result(data, draw)
