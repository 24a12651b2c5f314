"""What a fastText model makes of texts: the score of each of its labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from datapipe.documents.libraries import optional_library

__all__ = ["LABEL_PREFIX", "Scores", "label_scores"]

LABEL_PREFIX = "__label__"

Scores: TypeAlias = Mapping[str, float]
"""Score of every label that isn't out of the question, best first, without LABEL_PREFIX."""


def label_scores(path: str, *, stage: str, package: str) -> Callable[[str], Scores]:
    """Returns what gives a text's scores; line feeds are spaces to the model.

    Args:
        path: the model's file.
        stage: who needs it.
        package: what brings the library.

    Raises:
        MissingExtraError: the library isn't installed.
        ValueError, RuntimeError, MemoryError, OSError: the file is no model.
    """
    library = optional_library("fasttext", stage=stage, package=package, extra="build")
    model: Any = library.load_model(path).f

    def scores(text: str) -> Scores:
        predicted = model.predict(text.replace("\n", " ") + "\n", -1, 0.0, "strict")
        return {label.removeprefix(LABEL_PREFIX): min(score, 1.0) for score, label in predicted}

    return scores
