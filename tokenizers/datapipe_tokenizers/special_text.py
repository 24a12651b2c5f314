"""Literal text of special tokens in documents: which documents have it.

Every document is looked through, so the search has to be cheaper than encoding: one regular
expression of what the names begin with (0.4 GB/s, 10 GB/s where all begin alike, as with "<|"),
and the names themselves only in the texts that it finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["SPECIAL_TEXT", "SpecialText"]

SPECIAL_TEXT = ("text", "special", "error")
"""What the literal text of a special token in a document is: ordinary text (the default); that
token, except the one that closes documents, which stays text; an error."""

_SHARED = 4  # characters; names that share fewer are looked for one by one


class SpecialText:
    """Finds the texts that hold one of `names`."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted({name for name in names if name})
        self._pattern = "|".join(map(re.escape, _beginnings(self._names)))

    def rows(self, texts: pa.LargeStringArray) -> npt.NDArray[np.int64]:
        """Returns which texts hold a name, ascending."""
        if not self._names:
            return np.empty(0, dtype=np.int64)
        found = pc.match_substring_regex(texts, self._pattern)
        maybe: npt.NDArray[np.int64] = np.flatnonzero(found.to_numpy(zero_copy_only=False))
        held = [self._holds(texts[row].as_py()) for row in maybe.tolist()]
        return maybe[np.array(held, dtype=np.bool_)]

    def first(self, text: str) -> str:
        """Returns the name that `text` holds first, the longest of those at one place."""
        held = [(text.find(name), -len(name), name) for name in self._names if name in text]
        return min(held)[2]

    def _holds(self, text: str) -> bool:
        return any(name in text for name in self._names)


def _beginnings(names: list[str]) -> list[str]:
    """Returns few strings of which every one of the sorted `names` begins with one."""
    found: list[str] = []
    for name in names:
        if found and name.startswith(found[-1][:_SHARED]) and len(found[-1]) >= _SHARED:
            found[-1] = _common(found[-1], name)
        else:
            found.append(name)
    return found


def _common(a: str, b: str) -> str:
    pairs = enumerate(zip(a, b, strict=False))
    return a[: next((place for place, (x, y) in pairs if x != y), min(len(a), len(b)))]
