"""Deciding from signals alone: which documents stay, and the first rule that others fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.signals.profiles import Filter, Rule

__all__ = ["COLUMN", "Decisions", "decide", "decide_again", "rules_of"]

COLUMN = "quality."
"""What the names of columns with signals begin with."""


class Decisions(NamedTuple):
    """What becomes of each document."""

    rules: tuple[Rule, ...]
    failed: npt.NDArray[np.int64]
    """int64 [documents]: which of `rules` it fails first, -1 if it stays."""


def rules_of(filters: Iterable[Filter]) -> tuple[Rule, ...]:
    """Returns the rules of some filters in order."""
    return tuple(rule for found in filters for rule in found.rules)


def decide(
    rules: Sequence[Rule], signals: Mapping[str, npt.NDArray[np.float64]], documents: int
) -> Decisions:
    """Returns the first rule that each document fails; NaN fails none."""
    failed = np.full(documents, -1, dtype=np.int64)
    for number, rule in enumerate(rules):
        failed[(failed < 0) & rule.failing(signals[rule.signal])] = number
    return Decisions(tuple(rules), failed)


def decide_again(table: pa.Table | pa.RecordBatch, filters: Iterable[Filter]) -> Decisions:
    """Returns the decisions that filters would make, from stored signals, without any text.

    Documents that left before a signal was measured have none and pass its rules: thresholds can
    be tightened exactly; loosened ones bring back documents of which later filters know nothing.

    Args:
        table: columns named "quality." and the signal, as a build keeps them.
        filters: for example those of a profile with other thresholds.

    Raises:
        KeyError: the table lacks a signal.
    """
    rules = rules_of(filters)
    names = {rule.signal for rule in rules}
    values = {name: _floats(table.column(COLUMN + name)) for name in names}
    return decide(rules, values, table.num_rows)


def _floats(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.float64]:
    return np.asarray(column.to_pylist(), dtype=np.float64)
