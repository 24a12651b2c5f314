"""Lines on standard error, and text that is safe to show on a terminal."""

from __future__ import annotations

import re
import sys
import warnings
from contextlib import suppress

__all__ = ["one_line", "printable", "say", "say_warnings"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Returns text with control characters, but tabs and line ends, as `\x1b`."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """Returns text as one printable line."""
    return printable(" ".join(text.split()))


def say(message: str) -> None:
    """Writes a line to standard error, if that can be written to."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"datapipe: {one_line(message)}\n")
        sys.stderr.flush()


def say_warnings() -> None:
    """From now on the library's warnings are lines like others, without a place in the code."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        say(f"warning: {message}")

    warnings.showwarning = show
