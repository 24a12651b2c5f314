"""The documents and dropped rows of a version as pyarrow datasets: read lazily, never listed.

Which files there are is known from the shards table and the manifest, so making the dataset reads
no object but the shards table. Rows are read by ranges, so digests aren't checked on the way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from datapipe.dataset.index.covered import TableName
from datapipe.dataset.layout import TABLE_KINDS, docmap_path
from datapipe.dataset.tables import DOCMAP, DROPPED
from tiering.store.arrow import arrow_filesystem

if TYPE_CHECKING:
    from datapipe.dataset.reader import Dataset

__all__ = ["DOCUMENT_COLUMNS", "documents_of", "dropped_of"]

DOCUMENT_COLUMNS = pa.schema(
    [*DOCMAP, pa.field("source", pa.string()), pa.field("shard", pa.int32())]
)
"""Columns of a document: its docmap row, and where that is."""


def documents_of(dataset: Dataset, tables: Collection[TableName] | None = None) -> pads.Dataset:
    """Returns the documents of a version, in the order of sources, shards and tokens.

    Args:
        dataset: the version.
        tables: only docmaps of these; None: of all.
    """
    return _over(dataset, DOCUMENT_COLUMNS, _docmaps(dataset, tables))


def dropped_of(dataset: Dataset) -> pads.Dataset:
    """Returns the rows of the table `dropped`, without reading them."""
    files = dataset.manifest.files("dropped")
    kind = TABLE_KINDS["dropped"]
    return _over(dataset, DROPPED, ((kind.path(file.sha256), None) for file in files))


def _docmaps(
    dataset: Dataset, tables: Collection[TableName] | None
) -> Iterator[tuple[str, pc.Expression]]:
    for summary in dataset.sources:
        in_source = pc.field("source") == summary.name
        for number, sha256 in enumerate(dataset.shards(summary.name).docmap_sha256):
            if tables is not None and (summary.name, number) not in tables:
                continue
            shard = pa.scalar(number, pa.int32())
            yield docmap_path(sha256), in_source & (pc.field("shard") == shard)


def _over(
    dataset: Dataset, schema: pa.Schema, files: Iterator[tuple[str, pc.Expression | None]]
) -> pads.Dataset:
    names = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    reading = pads.ParquetFileFormat(
        read_options=pads.ParquetReadOptions(dictionary_columns=names),
        default_fragment_scan_options=pads.ParquetFragmentScanOptions(pre_buffer=True),
    )
    filesystem = arrow_filesystem(dataset.repository.store)
    fragments = [
        reading.make_fragment(path, filesystem, partition_expression=where) for path, where in files
    ]
    return pads.FileSystemDataset(fragments, schema, reading, filesystem)
