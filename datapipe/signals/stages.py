"""The stages of this folder, by the names that recipes give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from datapipe.documents import Stage
from datapipe.errors import RecipeError

__all__ = ["STAGES"]


def _quality(options: Mapping[str, Any]) -> Stage:
    # Numba takes half a second to load, which only builds that measure should pay.
    from datapipe.signals.quality import Quality, QualityOptions

    given = QualityOptions(profile=tuple(options["profile"]), thresholds=options["thresholds"])
    try:
        return Quality(given)
    except ValueError as error:
        raise RecipeError(f"stage `quality`: {error}.") from error


def _classifier(options: Mapping[str, Any]) -> Stage:
    from datapipe.signals.classifier import Classifier, ClassifierOptions

    return Classifier(ClassifierOptions(**options))


STAGES: Mapping[str, Callable[[Mapping[str, Any]], Stage]] = {
    "quality": _quality,
    "classifier": _classifier,
}
"""What makes a stage from its options, which are those of the recipe."""
