"""Lines on standard error, and text that is safe to show on a terminal."""

from __future__ import annotations

import re
import sys
import traceback
import warnings
from contextlib import suppress

from tiering.printable import printable_urls

__all__ = ["one_line", "printable", "say", "say_traceback", "say_warnings"]

_CUT_VALUE = re.compile(r", input_value=.*?(?=, input_type=)")
"""What pydantic shows of a value: cut in its middle, so no URL can be known in it any more."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Returns text with control characters, but tabs and line ends, as `\x1b`."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """Returns text as one printable line, without secrets of URLs."""
    return printable(" ".join(printable_urls(text).split()))


def say(message: str) -> None:
    """Writes a line to standard error, if that can be written to."""
    _write(f"datapipe: {one_line(message)}\n")


def say_traceback(error: BaseException) -> None:
    """Writes where an error was raised and what caused it, without secrets of URLs."""
    text = "".join(traceback.format_exception(error))
    _write(printable(printable_urls(_CUT_VALUE.sub("", text))))


def _write(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def say_warnings() -> None:
    """From now on the library's warnings are lines like others, without a place in the code."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        say(f"warning: {message}")

    warnings.showwarning = show
