"""Options that many commands share."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

from datapipe.errors import UsageError
from tiering.store import has_secret, looks_like_url, printable_urls

__all__ = [
    "AcceptRollback",
    "AsJson",
    "Author",
    "DatasetArgument",
    "DryRun",
    "OutFolder",
    "PlainDataset",
    "Quiet",
    "Reason",
    "Runs",
    "WorkFolder",
    "Yes",
    "count",
    "file_name",
    "is_local",
    "local_folder",
    "place",
    "places",
    "recorded_text",
    "share",
    "user_or",
]

_MAX_COUNT = (1 << 53) - 1  # JSON has no larger numbers

_SCHEMES = (
    "a local path, file:///PATH, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"
)
_UNFIT = {
    "memory": "what is in memory is gone with the command",
    "http": "web servers can't be listed or written",
    "https": "web servers can't be listed or written",
}


def place(given: str | None) -> str | None:
    """Returns where something is kept, a path or URL, as it was given.

    Raises:
        UsageError: it is empty, or no place where the command line can keep anything.
    """
    if given is None:
        return None
    if not given.strip():
        raise UsageError(f"{given!r} names no place; nothing was done; give {_SCHEMES}")
    scheme = given.partition("://")[0].lower() if "://" in given else ""
    if scheme in _UNFIT:
        raise UsageError(
            f"{scheme}:// can't hold a dataset: {_UNFIT[scheme]}; nothing was done; give {_SCHEMES}"
        )
    return given


AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]


def places(given: list[str] | None) -> list[str]:
    """Returns several places, each checked as `place` does."""
    return [place(one) or one for one in given or ()]


def share(given: float | None) -> float | None:
    """Returns a share of 1. Raises: UsageError: it isn't one; typer's bounds let NaN through."""
    if given is not None and not 0 <= given <= 1:
        raise UsageError(f"{given} isn't a share; nothing was done; give a number from 0 to 1")
    return given


def count(given: int | None) -> int | None:
    """Returns a number of something. Raises: UsageError: larger than any can be."""
    if given is not None and given > _MAX_COUNT:
        raise UsageError(f"the number {str(given)[:40]} is too large; give {_MAX_COUNT} or less")
    return given


def file_name(given: Path | None) -> Path | None:
    """Returns the path of a file or folder. Raises: UsageError: it is blank, or a URL."""
    if given is None:
        return None
    if not str(given).strip():
        raise UsageError(f"{str(given)!r} names no file; nothing was done; give a path")
    if not is_local(str(given)):
        raise UsageError(_not_local(str(given), "file"))
    return given


def recorded_text(given: str | None) -> str | None:
    """Returns what is to be recorded. Raises: UsageError: it has a URL with a password or token."""
    if given is not None and has_secret(given):
        raise UsageError(
            f"{printable_urls(given)!r} was given with a password or token in its URL, and would "
            "be recorded; nothing was done; leave that part out"
        )
    return given


def local_folder(given: str | None) -> str | None:
    """Returns the path of a folder on this machine. Raises: UsageError: it is blank, or a URL."""
    if given is not None and not given.strip():
        raise UsageError(f"{given!r} names no folder; nothing was done; give a path")
    if given is not None and not is_local(given):
        raise UsageError(_not_local(given, "folder"))
    return given


def _not_local(given: str, what: str) -> str:
    # No more of a URL is repeated: it may hold credentials.
    return (
        f"what begins with {given.partition(':')[0]}: is no {what} of this machine; nothing was "
        "done; give a path (./ before it makes one of such a name)"
    )


def is_local(path: str) -> bool:
    """Returns whether a path is no URL, nor what `Path` or a slip leaves of one."""
    return not looks_like_url(path)


DatasetArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATASET[@VERSION]",
        help="A dataset's folder or URL; @3, @TAG, @DIGEST or @2026-11-30T12:00 for another "
        "version than the latest.",
        callback=place,
    ),
]
PlainDataset = Annotated[
    str,
    typer.Argument(metavar="DATASET", help="A dataset's folder or URL.", callback=place),
]
OutFolder = Annotated[
    str, typer.Option("--out", "-o", help="The dataset's folder or URL.", callback=place)
]
WorkFolder = Annotated[
    str | None,
    typer.Option(
        "--work",
        help="Folder or URL for unfinished work.",
        show_default="_work in the dataset",
        callback=place,
    ),
]
Runs = Annotated[
    str | None,
    typer.Option("--runs", help="Where runs are kept.", show_default="the dataset", callback=place),
]
Author = Annotated[
    str | None,
    typer.Option(
        "--author",
        help="Who; stands in the log.",
        show_default="the user's name",
        callback=recorded_text,
    ),
]
Reason = Annotated[
    str, typer.Option("--reason", "-m", help="Why; stands in the log.", callback=recorded_text)
]
AcceptRollback = Annotated[
    bool,
    typer.Option(
        "--accept-rollback",
        help="What is there now is right, even if versions that you saw before are gone.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Really do what can't be undone.")]


def user_or(given: str | None) -> str:
    """Returns the author that was given, or else the user's name."""
    if given is not None:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""
