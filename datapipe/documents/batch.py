"""The DocumentBatch: documents move as Arrow record batches of one schema, never as objects."""

from __future__ import annotations

import pyarrow as pa

from datapipe.dataset.tables import HASH_BYTES

__all__ = ["DOCUMENTS"]

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
    ]
)
"""Columns of a batch. `text` changes from stage to stage; all others are set by the reader.

content_hash: BLAKE2b-128 of the text as read. doc_id: BLAKE2b-128 of the hashed tuple (source,
source_file, source_offset, source_length, content_hash). source_offset and source_length: bytes in
the uncompressed stream; for Parquet the row group and the row in it.
"""
