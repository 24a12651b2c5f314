"""The DocumentBatch: documents move as Arrow record batches of one schema, never as objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.dataset.tables import HASH_BYTES
from datapipe.documents.hashes import content_hashes, doc_ids

__all__ = ["DOCUMENTS", "batch_from_columns", "named", "with_values"]

_NAME = pa.dictionary(pa.int32(), pa.string())

DOCUMENTS = pa.schema(
    [
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("doc_id", pa.binary(HASH_BYTES), nullable=False),
        pa.field("content_hash", pa.binary(HASH_BYTES), nullable=False),
        pa.field("source", _NAME, nullable=False),
        pa.field("source_file", _NAME, nullable=False),
        pa.field("source_offset", pa.int64(), nullable=False),
        pa.field("source_length", pa.int64(), nullable=False),
        pa.field("record_id", pa.string()),
        pa.field("url", pa.string()),
        pa.field("licence", _NAME),
        pa.field("language", pa.string()),
        pa.field("crawled_at", pa.timestamp("s", tz="UTC")),
        pa.field("media_type", pa.string()),
    ]
)
"""Columns of a batch. `text` and `media_type` change from stage to stage; all others are set by the
reader.

content_hash: BLAKE2b-128 of the text as read. doc_id: BLAKE2b-128 of the hashed tuple (source,
source_file, source_offset, source_length, content_hash). source_offset and source_length: bytes in
the uncompressed stream; for Parquet the row group and the row in it. media_type: "text/html" where
the text is HTML source (XHTML too), "text/plain" where the input says so; null where it says
neither.
"""

Column: TypeAlias = pa.Array | Sequence[object] | None
"""An attribute of each document, or None where no document has it."""


def batch_from_columns(
    text: pa.Array | Sequence[str],
    *,
    source: str,
    source_file: str,
    offsets: npt.NDArray[np.int64] | Sequence[int],
    lengths: npt.NDArray[np.int64] | Sequence[int],
    record_id: Column = None,
    url: Column = None,
    licence: str | None = None,
    language: Column = None,
    crawled_at: Column = None,
    media_type: Column = None,
) -> pa.RecordBatch:
    """Returns a DOCUMENTS batch of one source and file, with hashes and identities worked out."""
    texts = _column(text, pa.large_string(), len(text))
    offset_column = np.asarray(offsets, dtype=np.int64)
    length_column = np.asarray(lengths, dtype=np.int64)
    hashes = content_hashes(texts)
    ids = doc_ids(
        hashes,
        source=source,
        source_file=source_file,
        offsets=offset_column,
        lengths=length_column,
    )
    rows = len(texts)
    columns = [
        texts,
        ids,
        hashes,
        named(source, rows),
        named(source_file, rows),
        pa.array(offset_column),
        pa.array(length_column),
        _column(record_id, pa.string(), rows),
        _column(url, pa.string(), rows),
        named(licence, rows),
        _column(language, pa.string(), rows),
        _column(crawled_at, pa.timestamp("s", tz="UTC"), rows),
        _column(media_type, pa.string(), rows),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=DOCUMENTS)


def named(name: str | None, rows: int) -> pa.DictionaryArray:
    """Returns a dictionary column that says `name` in every row; None is null."""
    if name is None:
        return pa.nulls(rows, _NAME)
    indices = pa.array(np.zeros(rows, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array([name], pa.string()))


def _column(values: Column, kind: pa.DataType, rows: int) -> pa.Array:
    if values is None:
        return pa.nulls(rows, kind)
    if isinstance(values, pa.Array):
        return values if values.type == kind else values.cast(kind)
    return pa.array(values, kind)


def with_values(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Returns the batch with another column `name`."""
    index = batch.schema.get_field_index(name)
    return batch.set_column(index, batch.schema.field(index), values)
