"""Options that many commands share."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["AsJson", "DatasetArgument", "Quiet"]

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]
DatasetArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATASET[@VERSION]",
        help="A dataset's folder; @3, @v3 or @DIGEST for another version than the latest.",
    ),
]
