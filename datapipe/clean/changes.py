"""What stages share: new texts in a batch, and documents that go, each for a reason of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dataset.tables import DROPPED
from datapipe.documents import dropped_rows

__all__ = [
    "Removal",
    "measured",
    "nothing_dropped",
    "replaced",
    "without",
]


class Removal(NamedTuple):
    """One document that a stage takes out."""

    row: int
    rule: str
    value: float | None = None
    threshold: float | None = None


def replaced(texts: pa.Array, rows: Sequence[int], new: Sequence[str]) -> pa.Array:
    """Returns `texts` with those of some rows, ascending, taken from `new`; itself for no rows."""
    if not rows:
        return texts
    changed = pa.array(new, texts.type)
    if len(changed) == len(texts):
        return changed
    mask = np.zeros(len(texts), dtype=bool)
    mask[rows] = True
    return pc.replace_with_mask(texts, pa.array(mask), changed)


def nothing_dropped(batch: pa.RecordBatch) -> pa.Table:
    """Returns no DROPPED rows."""
    return dropped_rows(batch.slice(0, 0), stage="", rule="")


def without(
    batch: pa.RecordBatch, removals: Iterable[Removal], *, stage: str
) -> tuple[pa.RecordBatch, pa.Table]:
    """Returns the documents that stay and the DROPPED rows of the others, both in order."""
    removals = sorted(removals)
    if not removals:
        return batch, nothing_dropped(batch)
    reasons: dict[tuple[str, float | None], list[Removal]] = {}
    for removal in removals:
        reasons.setdefault((removal.rule, removal.threshold), []).append(removal)
    tables = [
        dropped_rows(
            batch.take(pa.array([removal.row for removal in group])),
            stage=stage,
            rule=rule,
            value=pa.array([removal.value for removal in group], pa.float64()),
            threshold=threshold,
        )
        for (rule, threshold), group in reasons.items()
    ]
    places = [removal.row for group in reasons.values() for removal in group]
    dropped = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    stays = np.ones(batch.num_rows, dtype=bool)
    stays[places] = False
    in_order = pa.array(np.argsort(places, kind="stable"))
    return batch.filter(pa.array(stays)), dropped.take(in_order).cast(DROPPED)


def measured(batch: pa.RecordBatch, **signals: pa.Array) -> pa.RecordBatch:
    """Returns what was measured of a batch; in names `__` stands for the dot of "stage.signal"."""
    names = ["doc_id", *(name.replace("__", ".", 1) for name in signals)]
    return pa.RecordBatch.from_arrays([batch.column("doc_id"), *signals.values()], names=names)
