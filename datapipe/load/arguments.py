"""Checks of single arguments: each returns the value as it is used, or says what is allowed."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Real
from typing import TypeVar

from datapipe.errors import UsageError
from datapipe.order import MAX_JSON_INTEGER, Phase

__all__ = [
    "check_choice",
    "check_integer",
    "check_mixture",
    "check_place",
    "check_ranges",
    "check_text",
    "nearest",
]

_Choice = TypeVar("_Choice", bound=str)

_SHOWN = 80


def check_integer(name: str, value: object, *, least: int, most: int = MAX_JSON_INTEGER) -> int:
    """Returns an integer of any library as Python's. Raises: UsageError."""
    number = _integer(value)
    if number is None or not least <= number <= most:
        raise UsageError(f"{name}={_shown(value)}: it is an integer from {least} to {most}")
    return number


def check_choice(name: str, value: object, *, allowed: Sequence[_Choice]) -> _Choice:
    """Returns one of some words. Raises: UsageError, which names the nearest."""
    for word in allowed:
        if isinstance(value, str) and value == word:
            return word
    meant = nearest(value, allowed)
    raise UsageError(f"{name}={_shown(value)}: it is one of {', '.join(allowed)}{meant}")


def check_text(name: str, value: object) -> str:
    """Returns a text that isn't empty. Raises: UsageError."""
    if not isinstance(value, str) or not value:
        raise UsageError(f"{name}={_shown(value)}: it is a text of at least one character")
    return str(value)


def check_place(name: str, value: object, *, what: str = "a URL or path") -> str:
    """Returns a URL or path as text. Raises: UsageError, which says what it may be."""
    place = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(place, str) or not place:
        raise UsageError(f"{name}={_shown(value)}: it is {what}")
    return str(place)


def check_ranges(name: str, value: object) -> tuple[tuple[int, int], ...]:
    """Returns ranges [g0, g1) of sample numbers. Raises: UsageError."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise UsageError(f"{name}={_shown(value)}: it is a list of ranges (g0, g1)")
    return tuple(_range(f"{name}[{number}]", item) for number, item in enumerate(value))


def check_mixture(value: object) -> tuple[Phase, ...] | None:
    """Returns the phases of a mixture, None where there is none. Raises: UsageError."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return (Phase(0, _weights(value)),)
    phases = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
    if not phases or not all(isinstance(phase, Phase) for phase in phases):
        raise UsageError(
            f"mixture={_shown(value)}: it is {{source: weight}} or a list of Phase, at least one; "
            "None reads all sources in proportion to their size"
        )
    return phases


def nearest(value: object, known: Iterable[str]) -> str:
    """Returns the end of a message that names the word which was probably meant, else ''."""
    near = get_close_matches(value, list(known), n=1) if isinstance(value, str) else []
    return f"; did you mean {near[0]}?" if near else ""


def _weights(weights: Mapping[object, object]) -> dict[str, float]:
    checked = {}
    for source, weight in weights.items():
        name = check_text("the name of a source in mixture", source)
        is_number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not is_number or not math.isfinite(weight) or weight < 0:  # type: ignore[arg-type,operator]
            raise UsageError(
                f"mixture gives {name} the weight {_shown(weight)}: it is a finite number, 0 or "
                "more"
            )
        checked[name] = float(weight)  # type: ignore[arg-type]
    if not any(checked.values()):
        raise UsageError(
            f"mixture={_shown(weights)} has no positive weight: nothing could be drawn; give at "
            "least one source a weight above 0, or None to read all in proportion to their size"
        )
    return checked


def _range(name: str, item: object) -> tuple[int, int]:
    try:
        pair = list(item)  # type: ignore[call-overload]
    except TypeError:
        pair = []
    numbers = [_integer(number) for number in pair]
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
        raise UsageError(f"{name}={_shown(item)}: it is a pair of sample numbers (g0, g1)")
    first, end = numbers[0], numbers[1]
    if not 0 <= first <= end <= MAX_JSON_INTEGER:
        raise UsageError(
            f"{name}={_shown(item)}: it is (g0, g1) with 0 <= g0 <= g1 <= {MAX_JSON_INTEGER}"
        )
    return first, end


def _integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def _shown(value: object) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
