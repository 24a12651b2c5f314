"""The tables that have a row a document: docmaps and files of `dropped`, read by ranges.

Only the columns and row groups that are asked for are read, so digests aren't checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from datapipe.dataset.index.covered import TableName
from datapipe.dataset.layout import TABLE_KINDS, docmap_path
from datapipe.dataset.objects import reading, to_repair
from datapipe.dataset.parquet import DEFAULT_GROUP_ROWS, open_table, restore
from datapipe.dataset.reader import Dataset
from datapipe.dataset.tables import DOCMAP, DROPPED
from datapipe.errors import DamagedError
from tiering.store import ViewFile

__all__ = ["read_rows", "read_table", "table_path", "table_schema"]


def table_schema(name: TableName) -> pa.Schema:
    """Returns the columns of a table."""
    return DROPPED if name.source is None else DOCMAP


def table_path(dataset: Dataset, name: TableName) -> str:
    """Returns where a table is."""
    if name.source is None:
        return TABLE_KINDS["dropped"].path(dataset.manifest.files("dropped")[name.number].sha256)
    return docmap_path(dataset.shards(name.source).docmap_sha256[name.number])


def read_table(
    dataset: Dataset, name: TableName, columns: Sequence[str], groups: Sequence[int] | None = None
) -> pa.Table:
    """Returns columns of a table, of all row groups or of some. Raises: DamagedError."""
    path, schema = table_path(dataset, name), table_schema(name)
    store = dataset.repository.store
    with reading(store, path), ViewFile(store.open(path)) as view:
        file = open_table(view, schema, path=path)
        return restore(file, schema, path=path, groups=groups, columns=columns)


def read_rows(dataset: Dataset, name: TableName, rows: Sequence[int]) -> pa.Table:
    """Returns some rows of a table; reads only the row groups that hold them.

    Raises:
        DamagedError: there is no such row, or the table can't be read.
    """
    groups = sorted({row // DEFAULT_GROUP_ROWS for row in rows})
    starts = {group: place * DEFAULT_GROUP_ROWS for place, group in enumerate(groups)}
    table = read_table(dataset, name, table_schema(name).names, groups)
    places = [starts[row // DEFAULT_GROUP_ROWS] + row % DEFAULT_GROUP_ROWS for row in rows]
    if places and max(places) >= table.num_rows:
        raise DamagedError(
            f"an index of {dataset.url}@{dataset.version} names row {max(rows)} of "
            f"{table_path(dataset, name)}, which it doesn't have; "
            f"{to_repair(dataset.url, dataset.version)}"
        )
    return table.take(places)
