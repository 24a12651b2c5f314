"""The options that stand before a command, and the application that has them."""

from __future__ import annotations

from typing import Annotated

import typer

from datapipe._version import __version__

__all__ = ["bare_application"]


def bare_application() -> typer.Typer:
    """Returns the application, still without commands."""
    app = typer.Typer(
        name="datapipe",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    return app


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"datapipe {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks of errors; may stand anywhere.")
    ] = False,
) -> None:
    """Raw documents to versioned token shards to training batches, with lineage."""
