"""What pydantic finds wrong, in words that say what to write instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from datapipe.errors import RecipeError
from tiering.store import printable_urls

__all__ = ["reason_of", "refusing", "shortened", "shown_value"]

_REASONS = {
    "string_too_short": "it is empty; leave it out, or give it a value",
    "too_short": "it is empty; list at least one",
}
_LONGEST_SHOWN = 80


def reason_of(problem: Mapping[str, Any]) -> str:
    """Returns what is wrong with a value, without its place."""
    found = _REASONS.get(problem["type"])
    message: str = problem["msg"].removeprefix("Value error, ")
    return found or message.replace("Input should", "it should", 1)


def shown_value(given: object) -> str:
    """Returns a value as messages show it, or nothing where it is a whole mapping or list."""
    if not isinstance(given, str | int | float):
        return ""
    return shortened(repr(given))


def shortened(text: str) -> str:
    """Returns what a message shows of a text that a recipe gives: its beginning, if it is long."""
    text = printable_urls(text)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}... ({len(text):,})"


@contextmanager
def refusing(names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turns pydantic's error about values that stand in no file into one of ours.

    Args:
        names: what the caller calls a key, where that differs.

    Raises:
        RecipeError: with the first wrong value.
    """
    try:
        yield
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        keys = [key for key in problem["loc"] if isinstance(key, str)]
        key = keys[-1] if keys else "recipe"
        shown = shown_value(problem["input"])
        raise RecipeError(
            f"{(names or {}).get(key, key)}{shown and f' {shown}'}: {reason_of(problem)}"
        ) from error
