"""Failures of libraries written in Rust: a panic isn't an Exception, and neither is Ctrl-C."""

from __future__ import annotations

__all__ = ["leave_interruptions"]


def leave_interruptions(error: BaseException) -> None:
    """Raises `error` again unless a library failed: with an Exception, or with a panic."""
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        raise error
