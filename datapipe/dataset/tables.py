"""The Arrow schemas of a dataset's tables, and the row classes that are written into them.

Column order is part of the format. Hashes are raw bytes, digests of objects are raw 32-byte
SHA-256. `docs/format.md` describes every column.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = [
    "DETAILS",
    "DOCMAP",
    "DROPPED",
    "HASH_BYTES",
    "INPUTS",
    "QUARANTINE",
    "SHARDS",
    "SIGNALS",
    "SIGNAL_TYPES",
    "SIGNATURES",
]

HASH_BYTES = 16
"""Documents are identified and compared on 128 bits, never on 64."""

_HASH = pa.binary(HASH_BYTES)
_SHA256 = pa.binary(32)
_NAME = pa.dictionary(pa.int32(), pa.string())

_ORIGIN = [
    pa.field("source_file", _NAME, nullable=False),  # relative to its input's root
    pa.field("source_offset", pa.int64(), nullable=False),  # byte in the stream; Parquet: row group
    pa.field("source_length", pa.int64(), nullable=False),  # bytes; Parquet: row in the group
]

DOCMAP = pa.schema(
    [
        pa.field("doc_id", _HASH, nullable=False),
        pa.field("content_hash", _HASH, nullable=False),
        pa.field("token_start", pa.int64(), nullable=False),
        pa.field("num_tokens", pa.int64(), nullable=False),
        pa.field("text_bytes", pa.int64(), nullable=False),  # UTF-8 bytes of the cleaned text
        *_ORIGIN,
        pa.field("record_id", pa.string()),  # the input's own id of the record
        pa.field("url_hash", pa.uint64()),
        pa.field("domain", _NAME),
        pa.field("licence", _NAME),
        pa.field("language", _NAME),
        pa.field("crawled_at", pa.timestamp("s", tz="UTC")),
    ]
)
"""One row a document of one shard, in token order."""

DROPPED = pa.schema(
    [
        pa.field("doc_id", _HASH, nullable=False),
        pa.field("content_hash", _HASH, nullable=False),
        pa.field("source", _NAME, nullable=False),
        *_ORIGIN,
        pa.field("record_id", pa.string()),
        pa.field("url_hash", pa.uint64()),
        pa.field("stage", _NAME, nullable=False),
        pa.field("rule", _NAME, nullable=False),
        pa.field("value", pa.float64()),
        pa.field("threshold", pa.float64()),
        pa.field("survivor", _HASH),  # doc_id kept in its place
        pa.field("similarity", pa.float64()),
    ]
)
"""One row a document that a stage removed, ordered by (source, file, offset, length)."""

QUARANTINE = pa.schema(
    [
        pa.field("source", _NAME, nullable=False),
        *_ORIGIN,
        pa.field("error", _NAME, nullable=False),  # the class that is counted: "invalid_json", ...
        pa.field("detail", pa.string(), nullable=False),
        pa.field("raw", pa.binary(), nullable=False),  # the record's bytes as read
    ]
)
"""One row a record that could not be read, ordered like DROPPED; stored as JSON lines."""

INPUTS = pa.schema(
    [
        pa.field("source", _NAME, nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("format", _NAME, nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("sha256", _SHA256, nullable=False),
        pa.field("num_records", pa.int64(), nullable=False),
        pa.field("num_blank_lines", pa.int64(), nullable=False),
        pa.field("truncated", pa.bool_(), nullable=False),  # the file ends in the middle
        pa.field("fields", _NAME, nullable=False),  # canonical JSON: where text, id, ... stood
        pa.field("licence", _NAME),  # as given for the file's documents
    ]
)
"""One row an input file, ordered by (source, file)."""

SIGNATURES = pa.schema(
    [
        pa.field("key", _HASH, nullable=False),  # BLAKE2b-128 of the text that was compared
        pa.field("doc_id", _HASH, nullable=False),
    ]
)
"""What exact deduplication compared, one row a kept document, ascending by key."""

SIGNALS = pa.schema(
    [
        pa.field("doc_id", _HASH, nullable=False),
        pa.field("source", _NAME, nullable=False),
    ]
)
"""What stages measured, one row a document that a measuring stage saw, ascending by doc_id.

Behind these columns every file has its own, one a signal, of SIGNAL_TYPES and named
"stage.signal"; null where a document didn't come to that stage.
"""

SIGNAL_TYPES = (pa.bool_(), pa.int64(), pa.float64(), pa.string())

SHARDS = pa.schema(
    [
        pa.field("source", _NAME, nullable=False),
        pa.field("number", pa.int32(), nullable=False),  # in its source, from 0, never renumbered
        pa.field("num_tokens", pa.int64(), nullable=False),
        pa.field("num_documents", pa.int64(), nullable=False),
        pa.field("raw_sha256", _SHA256, nullable=False),
        pa.field("stored_sha256", _SHA256, nullable=False),
        pa.field("stored_bytes", pa.int64(), nullable=False),
        pa.field("docmap_sha256", _SHA256, nullable=False),
    ]
)
"""What order and tier need, one row a token shard, ordered by (source, number)."""

DETAILS = pa.schema(
    [
        pa.field("source", _NAME, nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        pa.field("birth_sha256", _SHA256, nullable=False),  # raw_sha256 when first written
        pa.field("docmap_logical_sha256", _SHA256, nullable=False),
        pa.field("text_bytes", pa.int64(), nullable=False),  # UTF-8 bytes of the cleaned texts
        pa.field("block_checksums", pa.list_(pa.uint64()), nullable=False),
    ]
)
"""The rest about a shard, same rows as SHARDS."""
