"""Packages that only some inputs need."""

from __future__ import annotations

from importlib.util import find_spec

from datapipe.errors import InputError

__all__ = ["need_package"]


def need_package(name: str, what: str) -> None:
    """Raises InputError with the remedy if a package that reads `what` isn't installed."""
    if find_spec(name) is None:
        raise InputError(
            f"{what} can't be read without the package {name}, which isn't installed: "
            "pip install 'datapipe-train[build]'"
        )
