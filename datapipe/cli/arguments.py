"""Options that many commands share."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

__all__ = [
    "AsJson",
    "Author",
    "DatasetArgument",
    "PlainDataset",
    "Quiet",
    "Reason",
    "Yes",
    "user_or",
]

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]
DatasetArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATASET[@VERSION]",
        help="A dataset's folder; @3, @TAG, @DIGEST or @2026-11-30T12:00 for another version "
        "than the latest.",
    ),
]
PlainDataset = Annotated[str, typer.Argument(metavar="DATASET", help="A dataset's folder.")]
Author = Annotated[str | None, typer.Option("--author", help="Who; stands in the log.")]
Reason = Annotated[str, typer.Option("--reason", "-m", help="Why; stands in the log.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Really do what can't be undone.")]


def user_or(given: str | None) -> str:
    """Returns the author that was given, or else the user's name."""
    if given is not None:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""
