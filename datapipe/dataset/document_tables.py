"""The tables that have a row a document: docmaps and files of `dropped`, read by ranges.

Only the columns and row groups that are asked for are read, so digests aren't checked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from datapipe.dataset.index.covered import TableName
from datapipe.dataset.layout import TABLE_KINDS, docmap_path
from datapipe.dataset.objects import reading, to_repair
from datapipe.dataset.parquet import open_table, restore
from datapipe.dataset.reader import Dataset
from datapipe.dataset.tables import DOCMAP, DROPPED
from datapipe.errors import DamagedError
from tiering.store import ViewFile

__all__ = ["read_rows", "read_table", "table_path", "table_schema"]

_Numbers = npt.NDArray[np.int64]


def table_schema(name: TableName) -> pa.Schema:
    """Returns the columns of a table."""
    return DROPPED if name.source is None else DOCMAP


def table_path(dataset: Dataset, name: TableName) -> str:
    """Returns where a table is."""
    if name.source is None:
        return TABLE_KINDS["dropped"].path(dataset.manifest.files("dropped")[name.number].sha256)
    return docmap_path(dataset.shards(name.source).docmap_sha256[name.number])


def read_table(
    dataset: Dataset, name: TableName, columns: Sequence[str], rows: range | None = None
) -> pa.Table:
    """Returns columns of a table: of all rows, or of the row groups that begin in a range of rows.

    Raises:
        DamagedError: there is no such range, or the table can't be read.
    """
    path, schema = table_path(dataset, name), table_schema(name)
    with _opened(dataset, path, schema) as file:
        groups = None
        if rows is not None:
            starts = _bounds(file.metadata)
            groups = [n for n, start in enumerate(starts[:-1].tolist()) if start in rows]
            if rows.start >= starts[-1]:
                raise DamagedError(
                    f"{path} has {starts[-1]} rows, {dataset.url}@{dataset.version} has more in "
                    f"it; they can't be read; {to_repair(dataset.url, dataset.version)}"
                )
        return restore(file, schema, path=path, groups=groups, columns=columns)


def read_rows(dataset: Dataset, name: TableName, rows: Sequence[int]) -> pa.Table:
    """Returns some rows of a table; reads only the row groups that hold them.

    Raises:
        DamagedError: there is no such row, or the table can't be read.
    """
    path, schema = table_path(dataset, name), table_schema(name)
    with _opened(dataset, path, schema) as file:
        groups, places = _places(file.metadata, np.asarray(rows, dtype=np.int64))
        if len(groups) and groups[-1] == file.num_row_groups:
            raise DamagedError(
                f"an index of {dataset.url}@{dataset.version} names row {max(rows)} of {path}, "
                f"which it doesn't have; {to_repair(dataset.url, dataset.version)}"
            )
        return restore(file, schema, path=path, groups=groups.tolist()).take(places)


def _places(metadata: pq.FileMetaData, rows: _Numbers) -> tuple[_Numbers, _Numbers]:
    """Returns the row groups that hold some rows, and where these are in the groups together."""
    bounds = _bounds(metadata)
    groups, which = np.unique(np.searchsorted(bounds, rows, "right") - 1, return_inverse=True)
    held = np.append(np.diff(bounds), 0)[groups]
    before = np.cumsum(held) - held
    return groups, rows - bounds[groups][which] + before[which]


def _bounds(metadata: pq.FileMetaData) -> _Numbers:
    """Returns the first row of each row group, and the number of rows."""
    counts = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    return np.cumsum([0, *counts], dtype=np.int64)


@contextlib.contextmanager
def _opened(dataset: Dataset, path: str, schema: pa.Schema) -> Iterator[pq.ParquetFile]:
    store = dataset.repository.store
    with reading(store, path), ViewFile(store.open(path)) as view:
        yield open_table(view, schema, path=path)
