"""The stage `classifier`: the score that a fastText model of yours gives a text.

Models made with fastText's `supervised` command, such as those that tell text worth learning from.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from datapipe.documents import StageResult, Threshold, dropped_rows
from datapipe.errors import InputError, MissingExtraError

__all__ = ["Classifier", "ClassifierOptions"]

_PREFIX = "__label__"
_RULE = "low_score"
_SIGNAL = "classifier.score"


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifierOptions:
    """Which model, and what is wanted of it."""

    model: str
    """Its file, .bin or .ftz."""
    label: str
    """The label whose score counts, with or without "__label__"."""
    min_score: float | None = None
    """A document with a lower score leaves, 0..1; None: the score is only kept as a signal."""


class Classifier:
    """Measures the probability of a label, and drops documents for which it is low.

    Line feeds are spaces to the model. The same text always gets the same score.

    Raises:
        MissingExtraError: fastText's predictor isn't installed.
        InputError: the file is no such model, or doesn't have the label.
    """

    name = "classifier"
    version = 1

    def __init__(self, options: ClassifierOptions) -> None:
        self._options = options
        self._model = _model(options.model)
        self._label = _PREFIX + options.label.removeprefix(_PREFIX)
        known = {label for _, label in self._model.predict("\n", -1, 0.0, "strict")}
        known |= {label for _, label in self._model.predict("a\n", -1, 0.0, "strict")}
        if known and self._label not in known:
            names = sorted(label.removeprefix(_PREFIX) for label in known)
            raise InputError(
                f"the model {options.model} of the stage classifier has no label "
                f"{options.label!r}; it has {', '.join(names[:20])}"
                f"{', ...' if len(names) > 20 else ''}; name one of them in the recipe"
            )

    @property
    def options(self) -> Mapping[str, object]:
        """All options, as JSON values."""
        return asdict(self._options)

    @property
    def thresholds(self) -> Mapping[str, Threshold]:
        """What its rule compares with what."""
        least = self._options.min_score
        return {} if least is None else {_RULE: Threshold(_SIGNAL, least)}

    def apply(self, batch: pa.RecordBatch) -> StageResult:
        """Returns the documents whose score isn't low; the signal is the score."""
        texts = batch.column("text").to_pylist()
        scores = np.array([self._score(text) for text in texts], dtype=np.float64)
        signals = pa.record_batch({"doc_id": batch.column("doc_id"), _SIGNAL: pa.array(scores)})
        least = self._options.min_score
        low = scores < least if least is not None else np.zeros(len(scores), dtype=np.bool_)
        dropped = dropped_rows(
            batch.filter(pa.array(low)),
            stage=self.name,
            rule=_RULE,
            value=pa.array(scores[low]),
            threshold=least,
        )
        return StageResult(batch.filter(pa.array(~low)), dropped, signals)

    def _score(self, text: str) -> float:
        found = self._model.predict(text.replace("\n", " ") + "\n", -1, 0.0, "strict")
        return next((min(score, 1.0) for score, label in found if label == self._label), 0.0)


@lru_cache(maxsize=4)
def _model(path: str) -> Any:
    try:
        fasttext: Any = importlib.import_module("fasttext")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "the stage classifier needs the package fasttext-predict, which isn't installed; "
            "nothing was built; pip install 'datapipe-train[build]'"
        ) from error
    try:
        return fasttext.load_model(str(Path(path).expanduser())).f
    except (ValueError, RuntimeError, MemoryError, OSError) as error:
        raise InputError(
            f"{path} isn't a fastText model ({error}), which the stage classifier needs; name a "
            ".bin or .ftz file that fastText wrote"
        ) from error
