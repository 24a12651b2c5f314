"""Progress on standard error: bars on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from datapipe import observe
from datapipe.cli.messages import one_line
from datapipe.cli.output import stderr_console

__all__ = ["progress"]

_SECONDS_BETWEEN_LINES = 10.0
_SCALES = {"bytes": (1e6, "MB"), "tokens": (1e6, "M tokens"), "documents": (1.0, "documents")}


@contextmanager
def progress(*, quiet: bool) -> Iterator[observe.Progress]:
    """Yields the listener that fits where standard error goes."""
    if quiet:
        yield observe.NO_PROGRESS
    elif sys.stderr.isatty():
        with _bars(stderr_console()) as bars:
            yield _Bars(bars)
    else:
        yield _Lines()


def _bars(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<16}"),
        BarColumn(bar_width=30),
        _Rate(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
    )


class _Rate(TextColumn):
    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        return Text(
            _amounts(task.completed, task.total or 0, task.elapsed or 0, task.fields["unit"])
        )


def _amounts(done: float, total: float, seconds: float, unit: str) -> str:
    scale, name = _SCALES.get(unit, (1.0, unit))
    digits = 0 if scale == 1.0 else 1
    of = f"/{total / scale:,.{digits}f}" if total else ""
    rate = f", {done / scale / seconds:,.{digits}f} {name}/s" if seconds > 0 and done else ""
    return f"{done / scale:,.{digits}f}{of} {name}{rate}"


class _Bars:
    """Draws a bar a phase."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task: TaskID | None = None

    def begin(self, phase: str, total: int, unit: str) -> None:
        self._task = self._bars.add_task(phase, total=total or None, unit=unit)

    def advance(self, amount: int) -> None:
        if self._task is not None:
            self._bars.advance(self._task, amount)

    def end(self) -> None:
        if self._task is not None:
            task = self._bars.tasks[self._task]
            self._bars.update(
                self._task, total=max(task.completed, 1), completed=max(task.completed, 1)
            )
            self._bars.stop_task(self._task)

    def note(self, message: str) -> None:
        self._bars.console.print(Text(one_line(message)))


class _Lines:
    """Writes a line when a phase ends, and now and then while it lasts."""

    def __init__(self) -> None:
        self._phase, self._unit, self._total, self._done = "", "", 0, 0
        self._started = self._last = 0.0

    def begin(self, phase: str, total: int, unit: str) -> None:
        self._phase, self._unit, self._total, self._done = phase, unit, total, 0
        self._started = self._last = time.monotonic()

    def advance(self, amount: int) -> None:
        self._done += amount
        if time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._write(self._total)

    def end(self) -> None:
        self._write(0)

    def note(self, message: str) -> None:
        sys.stderr.write(one_line(message) + "\n")

    def _write(self, total: int) -> None:
        self._last = time.monotonic()
        seconds = self._last - self._started
        amounts = _amounts(self._done, total, seconds, self._unit)
        sys.stderr.write(f"{self._phase}: {amounts if self._done else 'done'} ({seconds:.1f} s)\n")
