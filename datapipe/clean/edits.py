"""Stages that look at one text after the other: each text becomes another, or goes for a reason."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from datapipe.clean.changes import Removal, replaced, without
from datapipe.documents import StageResult, with_values

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["Drop", "Edit", "EditStage", "edit_texts"]

Options = TypeVar("Options", bound="DataclassInstance")


class Drop(NamedTuple):
    """Why a document goes."""

    rule: str
    value: float | None = None
    threshold: float | None = None


Edit: TypeAlias = Callable[[str], str | Drop]
"""Takes a text; returns it (itself, if nothing changes), another one, or why it goes."""


def edit_texts(
    batch: pa.RecordBatch, edit: Edit, *, stage: str, candidates: pa.Array | None = None
) -> StageResult:
    """Returns what `edit` makes of the texts of a batch.

    Args:
        batch: documents.
        edit: what is done to each.
        stage: who does it.
        candidates: which documents may need it, bool; the others pass unread. None: all.
    """
    texts = batch.column("text")
    rows = np.arange(batch.num_rows)
    if candidates is not None:
        rows = np.flatnonzero(candidates.to_numpy(zero_copy_only=False))
    changed: dict[int, str] = {}
    removals = []
    for row in rows.tolist():
        text = texts[row].as_py()
        edited = edit(text)
        if isinstance(edited, Drop):
            removals.append(Removal(row, *edited))
        elif edited is not text and edited != text:
            changed[row] = edited
    batch = with_values(batch, "text", replaced(texts, list(changed), list(changed.values())))
    return StageResult(*without(batch, removals, stage=stage))


class EditStage(ABC, Generic[Options]):
    """A stage that edits one text after the other; a subclass says how.

    Args:
        options: what it does; None: `default`.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    default: Options

    def __init__(self, options: Options | None = None) -> None:
        self._options: Options = options or self.default

    @property
    def options(self) -> Mapping[str, object]:
        """All options, as JSON values."""
        return asdict(self._options)

    def apply(self, batch: pa.RecordBatch) -> StageResult:
        """Returns the documents with what is left of their texts."""
        return edit_texts(batch, self._edited, stage=self.name)

    @abstractmethod
    def _edited(self, text: str) -> str | Drop:
        """See `Edit`."""
