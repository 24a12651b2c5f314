"""All rows of a version's documents as Arrow streams, for engines that pull."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa

from datapipe.dataset.ahead import read_ahead
from datapipe.dataset.document_tables import read_table
from datapipe.dataset.documents import DOCUMENT_COLUMNS
from datapipe.dataset.index.covered import TableName, missing
from datapipe.dataset.reader import Dataset
from datapipe.dataset.tables import DROPPED
from datapipe.errors import DatapipeError

__all__ = ["TableStream", "documents_stream", "dropped_stream"]

_ROWS_AT_ONCE = 1 << 17


def documents_stream(
    dataset: Dataset, *, tables: Collection[TableName] | None = None
) -> TableStream:
    """Returns all documents, or those of some docmaps, with their source and shard."""
    names = [name for name in missing(dataset.manifest, ()).names() if name.source is not None]
    kept = [name for name in names if tables is None or name in tables]
    return TableStream(dataset, kept, DOCUMENT_COLUMNS)


def dropped_stream(dataset: Dataset) -> TableStream:
    """Returns the rows of the table `dropped`."""
    files = range(len(dataset.manifest.files("dropped")))
    return TableStream(dataset, [TableName(None, number) for number in files], DROPPED)


class TableStream:
    """Rows of tables by the Arrow C stream interface; may be read any number of times.

    Names are plain strings in it. Whoever pulls may be on any thread.

    Args:
        dataset: the version.
        tables: whose rows.
        schema: of the rows; `source` and `shard` are those of the table.
    """

    def __init__(self, dataset: Dataset, tables: Collection[TableName], schema: pa.Schema) -> None:
        self._dataset, self._tables = dataset, tables
        self.schema = pa.schema([_plain(field) for field in schema])
        """Of the rows."""
        self.failure: DatapipeError | None = None
        """What ended the last reading."""
        self._unread: frozenset[str] = frozenset()

    def leave_null(self, unread: Collection[str]) -> None:
        """Gives null for these columns from now on, because nobody will look at them."""
        self._unread = frozenset(unread)

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = pa.RecordBatchReader.from_batches(self.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for table in read_ahead(self._stretches(), self._read):
                yield from table.to_batches()
        except DatapipeError as error:
            self.failure = error
            raise

    def _stretches(self) -> Iterator[tuple[TableName, range]]:
        for name in self._tables:
            for start in range(0, self._num_rows(name), _ROWS_AT_ONCE):
                yield name, range(start, start + _ROWS_AT_ONCE)

    def _num_rows(self, name: TableName) -> int:
        if name.source is None:
            return self._dataset.manifest.files("dropped")[name.number].rows
        return int(self._dataset.shards(name.source).num_documents[name.number])

    def _read(self, place: tuple[TableName, range]) -> pa.Table:
        name, rows = place
        given = {"source": name.source, "shard": name.number} if name.source is not None else {}
        wanted = [c for c in self.schema.names if c not in given and c not in self._unread]
        # Some column must be read: it has the number of rows.
        table = read_table(self._dataset, name, wanted or ["source_length"], rows)
        columns = [
            table.column(field.name).cast(field.type)
            if field.name in wanted
            else pa.repeat(pa.scalar(given.get(field.name), field.type), table.num_rows)
            for field in self.schema
        ]
        return pa.table(columns, schema=self.schema)


def _plain(field: pa.Field) -> pa.Field:
    is_name = pa.types.is_dictionary(field.type)
    return pa.field(field.name, field.type.value_type if is_name else field.type)
