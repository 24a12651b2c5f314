"""Kinds of personal data that other packages bring along: entry points of `datapipe.pii`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from typing import Any

from datapipe.clean.pii.finders import Finder, Span
from datapipe.errors import FailedError, UsageError

__all__ = ["GROUP", "load_plugin", "plugin_version"]

GROUP = "datapipe.pii"


def load_plugin(name: str) -> Finder:
    """Returns the finder that an installed package brings along.

    Its entry point is a function of a text that yields (start, end) in code points; an attribute
    `may_hold` of it, if there is one, is an RE2 pattern that every text with a hit matches.

    Raises:
        UsageError: no package has it, or several have.
    """
    try:
        find = _entry_point(name).load()
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"the entry point {name} of {GROUP} can't be loaded: {type(error).__name__}: {error}; "
            "nothing was built; correct the package that brings it along"
        ) from error
    if not callable(find):
        raise UsageError(
            f"the entry point {name} of {GROUP} isn't a function of a text; nothing was built; "
            "correct the package that brings it along"
        )
    return Finder(str(getattr(find, "may_hold", "(?s).")), _checked(name, find))


def plugin_version(name: str) -> str:
    """Returns the package that brings a finder along, and its version."""
    distribution = _entry_point(name).dist
    return f"{distribution.name} {distribution.version}" if distribution else ""


def _entry_point(name: str) -> metadata.EntryPoint:
    found = list(metadata.entry_points(group=GROUP, name=name))
    if len(found) != 1:
        known = sorted({entry.name for entry in metadata.entry_points(group=GROUP)})
        there = f"there are {', '.join(known)}" if known else "there are none"
        raise UsageError(
            f"{len(found)} installed packages bring along {name!r} for the stage pii ({there}); "
            f"nothing was built; install one with an entry point {name} of the group {GROUP}"
        )
    return found[0]


def _checked(name: str, find: Callable[[str], Iterable[Any]]) -> Callable[[str], Iterator[Span]]:
    def found_in(text: str) -> list[Any]:
        try:
            return list(find(text))
        except Exception as error:
            raise FailedError(
                f"the finder {name} of {GROUP} failed: {type(error).__name__}: {error}; nothing "
                "was committed; correct it"
            ) from error

    def checked(text: str) -> Iterator[Span]:
        for found in found_in(text):
            try:
                start, end = found
                fits = 0 <= start < end <= len(text)
            except (TypeError, ValueError):
                fits = False
            if not fits:
                raise FailedError(
                    f"the finder {name} of {GROUP} found {found!r} in a text of {len(text):,} "
                    "characters, which is no place in it; nothing was committed; correct it"
                )
            yield int(start), int(end)

    return checked
