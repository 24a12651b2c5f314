"""The stage `c4_lines`: the line rules of C4."""

from __future__ import annotations

import re
from dataclasses import dataclass

from datapipe.clean.edits import Drop, EditStage

__all__ = ["C4Lines", "C4LinesOptions"]

_ENDS = (".", "?", "!", '"', "'")
_POLICIES = re.compile(
    "terms of use|privacy policy|cookie policy|uses cookies|use of cookies|use cookies"
)
_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")


@dataclass(frozen=True, kw_only=True, slots=True)
class C4LinesOptions:
    """Which rules apply; 0 turns one with a number off."""

    terminal_punctuation: bool = True
    """Lines end with one of . ? ! " ' and not with an ellipsis."""
    min_words: int = 3
    """Of a line."""
    max_word_chars: int = 1000
    """Of each word of a line."""
    citations: bool = True
    """[1], [edit] and [citation needed] are taken out of lines."""
    javascript: bool = True
    """Lines with the word go."""
    policies: bool = True
    """Lines about cookies, privacy and terms of use go."""
    lorem_ipsum: bool = True
    """Documents with it go."""
    curly_brackets: bool = True
    """Documents with { go."""


class C4Lines(EditStage[C4LinesOptions]):
    """Keeps the lines that look like sentences; drops what is filler, code, or left without a line.

    Lines are those of `str.splitlines`, stripped; words what white space separates, before
    citations go. A line goes for the first of: a long word, its end, few words; then one that is
    left may drop the document, or goes for javascript or a policy. How many sentences a document
    needs is said by a quality profile.
    """

    name = "c4_lines"
    version = 1
    default = C4LinesOptions()

    def _edited(self, text: str) -> str | Drop:
        kept = []
        blank_goes = self._options.terminal_punctuation or self._options.min_words > 0
        for whole in text.splitlines():
            bare = whole.strip()
            if blank_goes and not bare:
                continue
            line = self._kept(bare)
            if isinstance(line, Drop):
                return line
            if line is not None:
                kept.append(line)
        edited = "\n".join(kept).strip()
        return edited or Drop("no_lines")

    def _kept(self, line: str) -> str | Drop | None:
        """Returns what stays of a line, None for nothing."""
        options = self._options
        words = line.split()
        longest = options.max_word_chars
        if longest and len(line) > longest and any(len(word) > longest for word in words):
            return None
        if options.citations and "[" in line:
            line = _CITATION.sub("", line)
        if options.terminal_punctuation and (not line.endswith(_ENDS) or line.endswith("...")):
            return None
        if len(words) < options.min_words:
            return None
        lower = line.lower()
        if options.lorem_ipsum and "lorem ipsum" in lower:
            return Drop("lorem_ipsum")
        if options.javascript and "javascript" in lower:
            return None
        if options.curly_brackets and "{" in line:
            return Drop("curly_bracket")
        if options.policies and _POLICIES.search(lower):
            return None
        return line
