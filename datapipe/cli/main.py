"""The application: commands, and what errors become."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, NoReturn

import typer

from datapipe._version import __version__
from datapipe.cli.output import stderr_console
from tiering.errors import NoSpaceError, StoreURLError, TieringError

__all__ = ["application", "main"]

INTERRUPTED = 130  # 128 + SIGINT, as shells have it

_HOMES = {
    "demo": "demo",
    "init": "build",
    "build": "build",
    "append": "build",
    "show": "inspect",
    "log": "versions",
    "diff": "versions",
    "tag": "versions",
    "gc": "garbage",
    "hold": "garbage",
    "verify": "inspect",
    "read": "inspect",
    "lineage": "lineage",
    "tokenizer": "tokenizer",
}
"""Command -> the module that has it, in the order of the help."""


def application(words: Sequence[str]) -> typer.Typer:
    """Returns the application with the commands that `words` may mean.

    The engine's libraries take half a second to import, so only the module of the command that
    is named is loaded; for help, or a name that isn't known, all are.
    """
    app = typer.Typer(
        name="datapipe",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for module in _modules(words):
        import_module(f"datapipe.cli.{module}").register(app)
    return app


def _modules(words: Sequence[str]) -> list[str]:
    first = words[0] if words else ""
    if first == "--version":
        return []
    return [_HOMES[first]] if first in _HOMES else list(dict.fromkeys(_HOMES.values()))


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"datapipe {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Raw documents to versioned token shards to training batches, with lineage."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits: 0 done, 1 failed, 2 wrong usage, 3 partly done."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    sys.exit(_run([word for word in words if word != "--debug"], debug=debug))


def _run(words: list[str], *, debug: bool) -> int:
    command = typer.main.get_command(application(words))
    try:
        return int(command.main(words, prog_name="datapipe", standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        return _say(
            "interrupted; what is finished is kept. Run the same command again to go on",
            INTERRUPTED,
        )
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if _is_usage(error):
            error.show()  # type: ignore[attr-defined]
            return 2
        if debug:
            raise
        return _say(*_explain(error))


def _is_usage(error: Exception) -> bool:
    """Tells whether an error is typer's own; older ones take click's classes, newer ones don't."""
    return hasattr(error, "show") and hasattr(error, "format_message")


def _explain(error: Exception) -> tuple[str, int]:
    """Returns the one line that a user reads of an error, and the exit code."""
    text = " ".join(str(error).split())
    code = getattr(error, "exit_code", None)  # datapipe's and the tokenizers' errors have one
    if isinstance(code, int):
        return text, code
    if isinstance(error, NoSpaceError):
        return f"{text}. Free some space and run the same command again: it goes on where it was", 3
    if isinstance(error, StoreURLError):
        return text, 2
    if isinstance(error, TieringError):
        return text, 1
    if isinstance(error, OSError):
        return f"{text}; nothing half-written is visible", 1
    kind = type(error).__name__
    return f"{kind}: {text}. This is a fault of datapipe; --debug shows where", 1


def _say(message: str, code: int) -> int:
    stderr_console().print(f"datapipe: {message}", markup=False)
    return code
