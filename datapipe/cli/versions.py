"""`datapipe log`, `diff`, `tag`: versions, their differences and their names."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console

from datapipe.cli.arguments import AsJson, Author, DryRun, PlainDataset, Reason, Yes, count, user_or
from datapipe.cli.output import Output, cell_text, table
from datapipe.cli.signing import KeyOfSigner, public_key, show_signer
from datapipe.dataset import (
    Repository,
    Tag,
    delete_tag,
    diff_versions,
    list_tags,
    read_tag,
    set_tag,
    version_history,
)
from datapipe.errors import UnknownReferenceError, UsageError

__all__ = ["existing", "register", "utc"]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(log)
    app.command()(diff)
    app.command()(tag)


def existing(dataset: str) -> Repository:
    """Returns a dataset's repository. Raises: UnknownReferenceError: there is none."""
    repository = Repository(dataset)
    if not repository.exists():
        raise UnknownReferenceError(f"there is no dataset at {repository.url}; check the path")
    return repository


def utc(seconds: float) -> str:
    """Returns a time for people, in UTC."""
    return f"{datetime.fromtimestamp(seconds, tz=UTC):%Y-%m-%d %H:%M:%S} UTC"


def log(
    dataset: PlainDataset,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, callback=count, help="Only the newest N versions."),
    ] = None,
    key: KeyOfSigner = None,
    as_json: AsJson = False,
) -> None:
    """List the versions: when, who, why, how much, their tags and who signed them.

    For example: datapipe log dataset --limit 5
    """
    verifier = public_key(key)
    entries = version_history(existing(dataset), newest=limit, key=verifier)

    def draw(console: Console) -> None:
        for entry in reversed(entries):
            signers = [f"    {show_signer(found, key=verifier)}" for found in entry["signers"]]
            console.print("\n".join([*_log_lines(entry), *signers]), markup=False)

    Output(as_json=as_json).result(entries, draw)


def _log_lines(entry: Mapping[str, Any]) -> list[str]:
    tags = f"  [{', '.join(entry['tags'])}]" if entry["tags"] else ""
    tags += "  (retired)" if entry["retired"] else ""
    author = f" by {cell_text(entry['author'])}" if entry["author"] else ""
    when = utc(entry["time_seconds"])
    lines = [f"version {entry['version']}  {when}  {entry['operation']}{author}{tags}"]
    if entry["reason"]:
        lines.append(f"    {cell_text(entry['reason'])}")
    lines += [f"    {_counted(entry['counts'])}", f"    manifest {entry['manifest']}"]
    return lines


_COUNTED = {
    "kept": "documents",
    "num_tokens": "tokens",
    "dropped": "dropped",
    "quarantined": "quarantined",
}


def _counted(counts: Mapping[str, Any] | None) -> str:
    if counts is None:
        return "its manifest is damaged: `datapipe verify` says how"
    change = counts["change"]
    return ", ".join(
        f"{counts[key]:,} {name}" + (f" ({change[key]:+,})" if change is not None else "")
        for key, name in _COUNTED.items()
    )


# -- diff


def diff(
    dataset: PlainDataset,
    before: Annotated[str, typer.Argument(metavar="A", help="A number, tag, digest or time.")],
    after: Annotated[str, typer.Argument(metavar="B", help="Likewise.")],
    documents: Annotated[
        bool, typer.Option("--documents", help="List the added and removed documents.")
    ] = False,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", "-n", min=1, callback=count, help="Documents shown as text; JSON has all."
        ),
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Show what version B has more or less than version A, by source, reason, licence, language.

    For example: datapipe diff dataset 2 3 --documents
    """
    repository = existing(dataset)
    data = diff_versions(
        repository.open(before), repository.open(after), documents=documents
    ).to_json()

    def draw(console: Console) -> None:
        console.print(
            f"{data['dataset']}: version {data['before']} to version {data['after']}", markup=False
        )
        _draw_amounts(console, "source", {k: v["change"] for k, v in data["sources"].items()})
        if data["reasons"]:
            rows = [(name, f"{row['change']:+,}") for name, row in data["reasons"].items()]
            console.print(table(["reason", "records"], rows))
        _draw_amounts(console, "licence", data["licences"])
        _draw_amounts(console, "language", data["languages"])
        shards = data["shards"]
        console.print(
            f"shards: {shards['shared']:,} shared, {shards['removed']:,} removed, "
            f"{shards['added']:,} added"
        )
        for name in ("added", "removed"):
            if name in data:
                _draw_documents(console, name, data[name], limit=limit)

    Output(as_json=as_json).result(data, draw)


def _draw_amounts(console: Console, name: str, amounts: Mapping[str, Mapping[str, int]]) -> None:
    if amounts:
        rows = [
            (key, *(f"{amount[column]:+,}" for column in ("documents", "tokens", "text_bytes")))
            for key, amount in amounts.items()
        ]
        console.print(table([name, "documents", "tokens", "text bytes"], rows))


def _draw_documents(console: Console, name: str, found: Mapping[str, Any], *, limit: int) -> None:
    documents = found["documents"]
    console.print(f"{name}: {len(documents):,} documents")
    if not documents:
        return
    other = "A" if name == "added" else "B"
    _draw_amounts(console, f"why not in {other}", found["by_reason"])
    columns = ["doc_id", "source", "source_file", "source_offset", "num_tokens", "reason"]
    rows = [[document[column] for column in columns] for document in documents[:limit]]
    console.print(table(columns, rows))
    if len(documents) > limit:
        console.print(f"and {len(documents) - limit:,} more; --limit or --json shows them")


# -- tag


def tag(
    dataset: PlainDataset,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The tag; without it all are listed.")
    ] = None,
    version: Annotated[
        str | None,
        typer.Argument(
            metavar="VERSION", help="A number, tag, digest or time.", show_default="latest"
        ),
    ] = None,
    release: Annotated[
        bool,
        typer.Option(
            "--release", help="Never to be moved; tags named release or release-... always are."
        ),
    ] = False,
    history: Annotated[bool, typer.Option("--history", help="Show all moves of the tag.")] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete the tag; the versions stay.")
    ] = False,
    author: Author = None,
    reason: Reason = "",
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """List tags, or make one name a version.

    For example: datapipe tag dataset prod 3 --reason "passed the evaluation"
    """
    repository = existing(dataset)
    if name is None:
        if history or delete or release:
            raise UsageError("name the tag: datapipe tag DATASET NAME ...")
        return _list_tags(repository, as_json=as_json)
    if history:
        return _show_moves(repository, name, as_json=as_json)
    words: dict[str, Any] = {
        "author": user_or(author),
        "reason": reason,
        "time_seconds": time.time(),
        "dry_run": dry_run,
    }
    if delete:
        _check_deletion(name, is_plain=version is None and not release, sure=yes or dry_run)
        done = delete_tag(repository.store, name, **words)
    else:
        done = set_tag(repository.open(version), name, release=release, **words)
    _show_tag(done, dry_run=dry_run, as_json=as_json)


def _check_deletion(name: str, *, is_plain: bool, sure: bool) -> None:
    if not is_plain:
        raise UsageError(
            "--delete takes only the tag's name; nothing was deleted; leave the version and "
            "--release out"
        )
    if not sure:
        raise UsageError(
            f"deleting tag {name} needs --yes; nothing was deleted; --dry-run shows what it names"
        )


def _list_tags(repository: Repository, *, as_json: bool) -> None:
    tags = [found.to_json() for found in list_tags(repository.store)]

    def draw(console: Console) -> None:
        columns = ["tag", "version", "release", "author", "reason", "time"]
        rows = [
            (
                *(found[key] for key in ("name", "version", "release")),
                *(found["moves"][-1][key] for key in ("author", "reason")),
                utc(found["moves"][-1]["time_seconds"]),
            )
            for found in tags
        ]
        console.print(table(columns, rows))

    Output(as_json=as_json).result(tags, draw)


def _show_moves(repository: Repository, name: str, *, as_json: bool) -> None:
    found = read_tag(repository.store, name) if "/" not in name else None
    if found is None:
        raise UnknownReferenceError(
            f"{repository.url} never had a tag {name!r}; `datapipe tag {repository.url}` lists them"
        )
    data = found.to_json()

    def draw(console: Console) -> None:
        columns = ["version", "author", "reason", "time"]
        rows = [
            (move["version"], move["author"], move["reason"], utc(move["time_seconds"]))
            for move in data["moves"]
        ]
        console.print(table(columns, rows))

    Output(as_json=as_json).result(data, draw)


def _show_tag(found: Tag, *, dry_run: bool, as_json: bool) -> None:
    data = {**found.to_json(), "dry_run": dry_run}
    what = f"names version {found.version}" if found.version else "is deleted"
    would = "; nothing was changed (dry run)" if dry_run else ""
    kind = "release" if found.release else "tag"
    Output(as_json=as_json).result(
        data, lambda console: console.print(f"{kind} {found.name} {what}{would}", markup=False)
    )
