"""Dropping documents in which there is nothing to see."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from datapipe.documents import StageResult, dropped_rows

__all__ = ["DropEmpty"]

_INVISIBLE = (
    r"\pZ\p{Cc}\p{Cf}"  # white space, control and format characters
    r"\x{034F}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{2065}\x{2800}\x{3164}"
    r"\x{FE00}-\x{FE0F}\x{FFA0}\x{FFF0}-\x{FFF8}\x{E0000}-\x{E0FFF}"  # others without ink
)
_VISIBLE = f"[^{_INVISIBLE}]"


class DropEmpty:
    """Drops documents without one visible character.

    Invisible are white space, control characters, Unicode's default ignorable characters (zero
    width, joiners, directions, variation selectors, fillers, tags) and the empty Braille pattern.
    """

    name = "drop_empty"
    version = 1

    @property
    def options(self) -> Mapping[str, object]:
        """It has none."""
        return {}

    def apply(self, batch: pa.RecordBatch) -> StageResult:
        """Returns the documents that stay, in order, and the DROPPED rows of the others."""
        visible = pc.match_substring_regex(batch.column("text"), _VISIBLE)
        if visible.true_count == len(visible):
            return StageResult(batch, _rows(batch.slice(0, 0)))
        return StageResult(batch.filter(visible), _rows(batch.filter(pc.invert(visible))))


def _rows(removed: pa.RecordBatch) -> pa.Table:
    return dropped_rows(removed, stage=DropEmpty.name, rule="empty")
