"""The stage `line_rules`: lines go for rules of one's own, and for common boilerplate."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from datapipe.clean.edits import Drop, EditStage
from datapipe.errors import InputError

__all__ = ["LineRules", "LineRulesOptions"]

_BOILERPLATE = (
    *("skip to content", "skip to main content", "skip to navigation", "back to top"),
    *("all rights reserved", "accept all cookies", "we use cookies", "this site uses cookies"),
    *("cookie settings", "privacy policy", "terms of service", "terms of use"),
    *(
        "terms and conditions",
        "powered by wordpress",
        "enable javascript",
        "javascript is disabled",
    ),
    *("subscribe to our newsletter", "sign up for our newsletter", "share on facebook"),
    *("share on twitter", "tweet this", "pin it", "click here to", "log in to reply"),
    *("your email address will not be published", "required fields are marked"),
)
_MOST_BOILERPLATE_WORDS = 15
"""A longer line may be about it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LineRulesOptions:
    """Which lines go; a number of 0 turns its rule off."""

    min_words: int = 0
    min_chars: int = 0
    max_chars: int = 0
    ends: Sequence[str] = ()
    """Lines end with one of these; none: with anything."""
    containing: Sequence[str] = ()
    """Lines with one of these go, whatever its case."""
    boilerplate: bool = True
    """Short lines with phrases of navigation, cookies, sharing and copyright go."""
    block_lines: str | None = None
    """A file of lines that go, compared stripped."""
    max_removed_fraction: float = 1.0
    """Of a document's characters; more, and the document goes."""


class LineRules(EditStage[LineRulesOptions]):
    """Takes out lines by simple rules; lines stand between line feeds, and blank ones stay."""

    name = "line_rules"
    version = 1
    default = LineRulesOptions()

    def __init__(self, options: LineRulesOptions | None = None) -> None:
        super().__init__(options)
        blocked = self._options.block_lines
        self._blocked = _lines(blocked) if blocked is not None else frozenset()
        self._ends = tuple(self._options.ends)
        self._containing = _any_of(self._options.containing)
        self._boilerplate = _any_of(_BOILERPLATE if self._options.boilerplate else ())

    @property
    def options(self) -> Mapping[str, object]:
        """All options, as JSON values."""
        return {**super().options, "ends": [*self._ends]}

    def _edited(self, text: str) -> str | Drop:
        lines = text.split("\n")
        kept = [line for line in lines if self._stays(line)]
        if len(kept) == len(lines):
            return text
        edited = "\n".join(kept)
        removed = 1 - len(edited) / len(text)
        if removed > self._options.max_removed_fraction:
            return Drop("removed_characters", removed, self._options.max_removed_fraction)
        return edited

    def _stays(self, line: str) -> bool:
        options, bare = self._options, line.strip()
        if not bare:
            return True
        if len(bare) < options.min_chars or 0 < options.max_chars < len(bare):
            return False
        if self._ends and not bare.endswith(self._ends):
            return False
        if bare in self._blocked:
            return False
        if options.min_words and len(bare.split()) < options.min_words:
            return False
        lower = bare.lower()
        if self._containing and self._containing.search(lower):
            return False
        return not (
            self._boilerplate
            and self._boilerplate.search(lower)
            and len(bare.split()) <= _MOST_BOILERPLATE_WORDS
        )


def _any_of(phrases: Sequence[str]) -> re.Pattern[str] | None:
    if not phrases:
        return None
    return re.compile("|".join(re.escape(phrase.lower()) for phrase in phrases))


def _lines(path: str) -> frozenset[str]:
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the file {path} of line_rules can't be read: {error}; nothing was built; give a file "
            "of UTF-8 text, one line each"
        ) from error
    return frozenset(line.strip() for line in text.split("\n") if line.strip())
