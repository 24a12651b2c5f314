"""Progress of long work, as events: the work says what it did, whoever listens draws it."""

from __future__ import annotations

from typing import Protocol

__all__ = ["NO_PROGRESS", "Progress"]


class Progress(Protocol):
    """Listens to long work; called from one thread only."""

    def begin(self, phase: str, total: int, unit: str) -> None:
        """A phase starts: `total` units of work (0: unknown), counted in `unit` ("bytes", ...)."""

    def advance(self, amount: int) -> None:
        """`amount` more units of the phase are done."""

    def end(self) -> None:
        """The phase is over."""

    def note(self, message: str) -> None:
        """Something the user should know now, one line."""


class _Silent:
    def begin(self, phase: str, total: int, unit: str) -> None: ...

    def advance(self, amount: int) -> None: ...

    def end(self) -> None: ...

    def note(self, message: str) -> None: ...


NO_PROGRESS: Progress = _Silent()
"""Listens and says nothing."""
