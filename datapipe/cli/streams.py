"""The process's standard streams, where they are closed, full or gone.

Progress is worth no build: what standard error doesn't take is dropped. A result that standard
output doesn't take is an error, raised where it is printed.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["abandon_output", "is_output_flushed", "own_streams"]

_STDOUT, _STDERR = 1, 2


class _Forgiving(io.RawIOBase):
    """Standard error without its failures."""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return _STDERR

    def isatty(self) -> bool:
        return os.isatty(_STDERR)

    def write(self, data: Buffer) -> int:
        view = memoryview(data).cast("B")
        left = view
        with suppress(OSError):
            while left:
                left = left[os.write(_STDERR, left) :]
        return len(view)


def own_streams() -> None:
    """Makes the streams of this process safe to write to; to be called once, at its start."""
    _occupy_closed()
    if sys.stdout is None:
        sys.stdout = open(_STDOUT, "w", closefd=False)  # noqa: SIM115 - a descriptor
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Forgiving()), errors="backslashreplace", line_buffering=True
    )


def _occupy_closed() -> None:
    """Opens descriptors 0 to 2 where closed, lest a file that is opened later gets progress.

    For reading only: writing a result there fails, as it does on a closed descriptor.
    """
    descriptor = os.open(os.devnull, os.O_RDONLY)
    while descriptor <= _STDERR:
        os.set_inheritable(descriptor, True)
        descriptor = os.open(os.devnull, os.O_RDONLY)
    os.close(descriptor)


def is_output_flushed() -> bool:
    """Writes out what standard output holds; returns whether it took it, and drops it if not."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        abandon_output()
        return False
    return True


def abandon_output() -> None:
    """Drops what standard output still holds, lest the end of the process fails on it again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
