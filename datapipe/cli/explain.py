"""What a user reads of an error: one line with the remedy, and the exit code."""

from __future__ import annotations

from typing import Any

from datapipe.cli.messages import one_line
from datapipe.cli.signals import Interrupted
from tiering.errors import NoSpaceError, StoreURLError, TieringError, remedy_of

__all__ = ["explain", "is_help"]


def explain(error: BaseException) -> tuple[str, int]:
    """Returns the line and the exit code of whatever ended a command."""
    if isinstance(error, Interrupted | KeyboardInterrupt):
        return _interruption(error)
    if _is_usage(error):
        return _usage(error), 2
    text = one_line(str(error))
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
        return f"{_of_the_system(error)}; nothing half-written is visible; {remedy_of(error)}", 1
    kind = type(error).__name__
    return (
        f"{kind}: {text}. This is a fault of datapipe; please report it with what the same command "
        "prints behind `datapipe --debug`",
        1,
    )


def _of_the_system(error: OSError) -> str:
    if error.filename is None:
        return one_line(str(error))
    return one_line(f"{error.filename} can't be used: {error.strerror}")


def _interruption(error: Interrupted | KeyboardInterrupt) -> tuple[str, int]:
    notes = getattr(error, "__notes__", None) or ["run the same command again"]
    code = error.exit_code if isinstance(error, Interrupted) else 130
    return f"interrupted; {'; '.join(notes)}", code


def _is_usage(error: BaseException) -> bool:
    """Tells whether an error is typer's own; older ones take click's classes, newer ones don't."""
    return hasattr(error, "show") and hasattr(error, "format_message")


def is_help(error: Exception) -> bool:
    """Tells whether an error is typer's way of printing the help where no command is given."""
    return _is_usage(error) and type(error).__name__ == "NoArgsIsHelpError"


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "datapipe"
    return f"{one_line(error.format_message()).rstrip('.')}; see `{command} --help`"
