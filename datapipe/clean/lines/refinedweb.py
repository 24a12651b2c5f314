"""The stage `refinedweb_lines`: the line-wise corrections of RefinedWeb."""

from __future__ import annotations

import re
from dataclasses import dataclass

from datapipe.clean.edits import Drop, EditStage

__all__ = ["RefinedWebLines", "RefinedWebLinesOptions"]

_COUNTER = re.compile(
    r"\W*\d[\d.,]*\s*[kmb]?\s+(?:like|share|comment|retweet|repost|quote|bookmark|upvote|downvote|"
    r"download|view|follower|following|subscriber|repl(?:y|ie))s?\W*",
    re.IGNORECASE,
)
_ASCII_CAPITALS = bytes(range(ord("A"), ord("Z") + 1))
_SHORT_LINE_WORDS = 10
_PHRASES = re.compile(
    r"\A\W*sign[- ]in\b\W*|\s*\bread more\b\W*\Z|\b\d*\s*items? in (?:your )?cart\b", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RefinedWebLinesOptions:
    """How much may go."""

    max_uppercase_fraction: float = 0.5
    """Of a line's characters; more, and the line goes."""
    max_removed_fraction: float = 0.05
    """Of a document's words; more, and the document goes."""


class RefinedWebLines(EditStage[RefinedWebLinesOptions]):
    """Takes out lines that are headings in capitals, numbers, counters or single words.

    In lines of up to 10 words "sign in" at the start, "read more" at the end and "items in cart"
    go as well. Lines are what stands between line feeds, words what white space separates; blank
    lines stay.
    """

    name = "refinedweb_lines"
    version = 1
    default = RefinedWebLinesOptions()

    def _edited(self, text: str) -> str | Drop:
        lines = text.split("\n")
        kept = [line for line in map(self._kept, lines) if line is not None]
        if kept == lines:
            return text
        words, left = len(text.split()), sum(len(line.split()) for line in kept)
        removed = (words - left) / words if words else 0.0
        if removed > self._options.max_removed_fraction:
            return Drop("removed_words", removed, self._options.max_removed_fraction)
        return "\n".join(kept)

    def _kept(self, line: str) -> str | None:
        words = line.split()
        if not words:
            return line
        bare = line.strip()
        if (
            len(words) == 1
            or (bare[0].isnumeric() and bare.replace(" ", "").isnumeric())
            or _capitals(bare) > self._options.max_uppercase_fraction * len(bare)
            or _COUNTER.fullmatch(bare)
        ):
            return None
        if len(words) > _SHORT_LINE_WORDS or not _PHRASES.search(line):
            return line
        return _PHRASES.sub("", line).strip() or None


def _capitals(line: str) -> int:
    if line.isascii():  # ten times as fast
        return len(line) - len(line.encode().translate(None, _ASCII_CAPITALS))
    return sum(map(str.isupper, line))
