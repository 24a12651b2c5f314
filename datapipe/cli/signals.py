"""SIGINT, SIGTERM and SIGHUP as one exception, so that whatever runs is left in order.

The default of the last two ends a process without `finally`: bars stay open, workers and
semaphores stay behind.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupted", "catch_signals", "ignore_signals", "noted"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REPEATS_SECONDS = 5.0
"""`timeout` and impatient people send a signal twice; leaving in order takes less than this."""
_AGAIN_SECONDS = 0.02


class Interrupted(BaseException):
    """A signal asks the command to end; its notes say what that leaves.

    Not a KeyboardInterrupt, which typer turns into an exit before it can be explained.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def exit_code(self) -> int:
        """128 + the signal's number, as shells have it."""
        return 128 + self.number


class _Handler:
    """Raises at the first signal, and again at one that comes much later."""

    def __init__(self) -> None:
        self._raised: float | None = None

    def __call__(self, number: int, _: FrameType | None) -> None:
        now = time.monotonic()
        if self._raised is not None and now - self._raised < _REPEATS_SECONDS:
            return
        self._raised = now
        raise Interrupted(number)

    def again(self, error: Interrupted) -> None:
        """Repeats a signal whose exception came up where Python drops exceptions."""
        self._raised = None
        threading.Timer(_AGAIN_SECONDS, os.kill, (os.getpid(), error.number)).start()


def catch_signals() -> Callable[[], None]:
    """Raises `Interrupted` in this thread, the main one, when a signal comes from now on.

    A signal that is ignored, as `nohup` and background jobs have it, stays ignored.

    Returns:
        What brings the handlers back that there were.
    """
    if threading.current_thread() is not threading.main_thread():
        return _nothing
    handler = _Handler()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    caught = {n: found for n, found in before.items() if found is not signal.SIG_IGN}
    unraisable = sys.unraisablehook

    def hook(found: sys.UnraisableHookArgs) -> None:
        if isinstance(found.exc_value, Interrupted):
            handler.again(found.exc_value)
        else:
            unraisable(found)

    def restore() -> None:
        for number, found in caught.items():
            signal.signal(number, found)
        sys.unraisablehook = unraisable

    sys.unraisablehook = hook
    for number in caught:
        signal.signal(number, handler)
    return restore


def _nothing() -> None:
    pass


@contextmanager
def noted(standing: str) -> Iterator[None]:
    """Says of an interruption inside what it leaves, unless something further inside said it."""
    try:
        yield
    except (Interrupted, KeyboardInterrupt) as interruption:
        if not getattr(interruption, "__notes__", None):
            interruption.add_note(standing)
        raise


def ignore_signals() -> None:
    """Ignores the signals from now on: the command is over, only the process isn't."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
