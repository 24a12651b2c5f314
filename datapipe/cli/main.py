"""The application: commands, and what errors become."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from datapipe.cli.explain import explain, is_help
from datapipe.cli.messages import say, say_traceback, say_warnings
from datapipe.cli.signals import Interrupted, catch_signals, ignore_signals, noted
from datapipe.cli.streams import is_output_flushed, own_streams
from datapipe.errors import UsageError

if TYPE_CHECKING:  # takes a tenth of a second, in which signals are caught already
    import typer

__all__ = ["application", "main"]

_HOMES = {
    "demo": "demo",
    "init": "build",
    "preview": "preview",
    "build": "build",
    "append": "build",
    "show": "inspect",
    "log": "versions",
    "diff": "versions",
    "tag": "versions",
    "index": "index",
    "gc": "garbage",
    "hold": "garbage",
    "key": "signing",
    "sign": "signing",
    "verify": "inspect",
    "rebuild": "rebuild",
    "read": "inspect",
    "export": "export",
    "sql": "sql",
    "lineage": "lineage",
    "tokenizer": "tokenizer",
}
"""Command -> the module that has it, in the order of the help."""


def application(words: Sequence[str]) -> typer.Typer:
    """Returns the application with the commands that `words` may mean.

    The engine's libraries take half a second to import, so only the module of the command that
    is named is loaded; for help, or a name that isn't known, all are.
    """
    app: typer.Typer = import_module("datapipe.cli.options").bare_application()
    for module in _modules(words):
        import_module(f"datapipe.cli.{module}").register(app)
    return app


def _modules(words: Sequence[str]) -> list[str]:
    first = words[0] if words else ""
    if first == "--version":
        return []
    return [_HOMES[first]] if first in _HOMES else list(dict.fromkeys(_HOMES.values()))


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits: 0 done, 1 failed, 2 wrong usage, 3 partly done.

    128 + the number of the signal that interrupted it. Without `arguments` they are the
    process's, and so are its streams and signals: streams may be closed or full, and no signal
    disturbs the exit.
    """
    is_process = arguments is None
    if is_process:
        own_streams()
        say_warnings()
    restore = catch_signals()
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        if is_process and not is_output_flushed():
            code = code or 1
    except Interrupted as late:  # while the outcome was being said
        code = late.exit_code
    finally:
        (ignore_signals if is_process else restore)()
    sys.exit(code)


def _run(words: list[str]) -> int:
    debug = "--debug" in words
    try:
        return _carry_out([word for word in words if word != "--debug"])
    except (Exception, Interrupted, KeyboardInterrupt) as error:
        if debug:
            say_traceback(error)
        message, code = explain(error)
        say(message)
        return code


def _carry_out(words: list[str]) -> int:
    """Runs the command that `words` are; returns its exit code."""
    _refuse_undecodable(words)
    with noted("nothing was done yet; run the same command again"):
        command = import_module("typer.main").get_command(application(words))
    try:
        return int(command.main(words, prog_name="datapipe", standalone_mode=False) or 0)
    except Exception as error:
        if not is_help(error):
            raise
        error.show()  # type: ignore[attr-defined]
        return 2


def _refuse_undecodable(words: Sequence[str]) -> None:
    """Raises: UsageError: a word isn't UTF-8, and paths and names are recorded as text."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"the argument {os.fsencode(word)!r} isn't UTF-8 text, so it can't be recorded; "
                "nothing was done. Rename the file or folder, or write the name in UTF-8"
            ) from error
