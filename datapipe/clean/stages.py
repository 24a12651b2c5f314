"""What a stage is, and which stage a name in a recipe means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import pyarrow as pa

from datapipe.clean.drop_empty import DropEmpty
from datapipe.clean.normalize import Normalize, NormalizeOptions

__all__ = ["Stage", "document_stage", "is_document_stage"]


class Stage(Protocol):
    """Looks at documents one at a time; the same batch always gives the same result."""

    @property
    def name(self) -> str:
        """Its name in recipes and in the dropped table."""

    @property
    def version(self) -> int:
        """Grows whenever the same document may get another result."""

    @property
    def options(self) -> Mapping[str, object]:
        """All its options, as JSON values."""

    def apply(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Table]:
        """Returns the documents that stay, in order, and the DROPPED rows of the others."""


_STAGES: Mapping[str, Callable[[Mapping[str, object]], Stage]] = {
    "normalize": lambda options: Normalize(NormalizeOptions(**options)),  # type: ignore[arg-type]
    "drop_empty": lambda _: DropEmpty(),
}


def is_document_stage(name: str) -> bool:
    """Tells whether `name` is a stage that looks at one document at a time."""
    return name in _STAGES


def document_stage(name: str, options: Mapping[str, object]) -> Stage:
    """Returns the stage that a recipe calls `name`; names and options are those of the recipe."""
    return _STAGES[name](options)
