"""The stage `classifier`: the score that a fastText model of yours gives a text.

Models made with fastText's `supervised` command, such as those that tell text worth learning from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from datapipe.documents import StageResult, Threshold, dropped_rows
from datapipe.documents.label_scores import LABEL_PREFIX, Scores, label_scores
from datapipe.errors import InputError, MissingExtraError

__all__ = ["Classifier", "ClassifierOptions"]

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
        self._scores = _model(options.model)
        self._label = options.label.removeprefix(LABEL_PREFIX)
        known = {*self._scores(""), *self._scores("a")}
        if known and self._label not in known:
            names = sorted(known)
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
        scores = np.array(
            [self._scores(text).get(self._label, 0.0) for text in texts], dtype=np.float64
        )
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


@lru_cache(maxsize=4)
def _model(path: str) -> Callable[[str], Scores]:
    try:
        local = str(Path(path).expanduser())
        return label_scores(local, stage=Classifier.name, package="fasttext-predict")
    except MissingExtraError:
        raise
    except (ValueError, RuntimeError, MemoryError, OSError) as error:
        raise InputError(
            f"{path} isn't a fastText model ({error}), which the stage classifier needs; name a "
            ".bin or .ftz file that fastText wrote"
        ) from error
