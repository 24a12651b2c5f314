"""Rows of the dropped table, made from the documents that a stage removes."""

from __future__ import annotations

import pyarrow as pa

from datapipe.dataset.tables import DROPPED
from datapipe.documents.batch import named
from datapipe.documents.urls import url_hashes

__all__ = ["dropped_rows"]

_CARRIED = (
    "doc_id",
    "content_hash",
    "source",
    "source_file",
    "source_offset",
    "source_length",
    "record_id",
)


def dropped_rows(
    removed: pa.RecordBatch,
    *,
    stage: str,
    rule: str,
    value: pa.Array | None = None,
    threshold: float | None = None,
    survivor: pa.Array | None = None,
    similarity: pa.Array | None = None,
) -> pa.Table:
    """Returns the DROPPED rows of `removed`, in its order.

    Args:
        removed: documents, as DOCUMENTS.
        stage: who removes them.
        rule: why.
        value: what was measured of each.
        threshold: what it was compared with.
        survivor: doc_id of the document that stays in the place of each.
        similarity: of each to its survivor, 0..1.
    """
    rows = removed.num_rows
    columns = {name: removed.column(name) for name in _CARRIED}
    columns["url_hash"] = url_hashes(removed.column("url"))
    columns["stage"], columns["rule"] = named(stage, rows), named(rule, rows)
    given = {"value": value, "survivor": survivor, "similarity": similarity}
    columns |= {name: column for name, column in given.items() if column is not None}
    if threshold is not None:
        columns["threshold"] = pa.array([threshold] * rows, pa.float64())
    arrays = [
        columns[column.name].cast(column.type)
        if column.name in columns
        else pa.nulls(rows, column.type)
        for column in DROPPED
    ]
    return pa.Table.from_arrays(arrays, schema=DROPPED)
