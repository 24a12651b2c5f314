"""What the stages measured of the documents of a batch, side by side in one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Signals", "join_measured"]


class Signals:
    """The signals of one batch, gathered stage by stage."""

    def __init__(self) -> None:
        self._documents: pa.RecordBatch | None = None
        self._columns: dict[str, pa.Array] = {}

    def add(self, batch: pa.RecordBatch, measured: pa.RecordBatch | None) -> None:
        """Takes what a stage measured of `batch`, which is what came to it."""
        if measured is None or not batch.num_rows:
            return
        if self._documents is None:  # stages only take documents out: nobody joins later
            self._documents = batch.select(["doc_id", "source"])
        ids = self._documents.column("doc_id")
        places = pc.index_in(ids, value_set=measured.column("doc_id"))
        for name in measured.schema.names:
            if name != "doc_id":
                self._columns[name] = measured.column(name).take(places)

    def table(self) -> Iterator[pa.Table]:
        """Yields one table of all that was measured, if anything was."""
        if self._documents is not None and self._columns:
            names = [*self._documents.schema.names, *self._columns]
            columns = [*self._documents.columns, *self._columns.values()]
            table = pa.table(columns, names=names)
            place = names.index("source")
            yield table.set_column(place, "source", table["source"].cast(pa.string()))


def join_measured(tables: Sequence[pa.Table]) -> pa.Table:
    """Returns the rows of all tables, each with the signals of all."""
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks()
