"""What a stage is: it takes a batch of documents and gives back a batch, and what left it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import pyarrow as pa

__all__ = ["Stage", "StageResult", "Threshold", "thresholds_of"]


class StageResult(NamedTuple):
    """What a stage made of one batch."""

    batch: pa.RecordBatch
    """The documents that stay, in order, as DOCUMENTS."""
    dropped: pa.Table
    """The DROPPED rows of the others; `dropped_rows` makes them."""
    signals: pa.RecordBatch | None = None
    """What was measured of every document that came in, kept or dropped, in their order: `doc_id`
    and a column a signal, named "stage.signal". None: nothing."""


class Threshold(NamedTuple):
    """What a rule compares a signal with."""

    signal: str
    """Its column in `StageResult.signals`."""
    value: float


class Stage(Protocol):
    """Looks at documents one at a time; the same document always gives the same result."""

    @property
    def name(self) -> str:
        """Its name in recipes and in the dropped table."""

    @property
    def version(self) -> int:
        """Grows whenever the same document may get another result."""

    @property
    def options(self) -> Mapping[str, object]:
        """All its options, as JSON values."""

    def apply(self, batch: pa.RecordBatch) -> StageResult:
        """Returns what stays, what leaves and why, and what was measured."""


def thresholds_of(stage: Stage) -> Mapping[str, Threshold]:
    """Returns the thresholds of a stage by rule: its attribute `thresholds`, if it has one."""
    found: Mapping[str, Threshold] = getattr(stage, "thresholds", {})
    return found
