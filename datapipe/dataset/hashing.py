"""Hashes of the format: BLAKE2b-128 of texts and of tuples of fields.

A tuple is hashed unambiguously: each field is preceded by its length as uint64 little-endian,
integers are int64 little-endian, text is UTF-8.
"""

from __future__ import annotations

import hashlib
import struct

from datapipe.dataset.tables import HASH_BYTES

__all__ = ["document_hash", "encoded_tuple", "hashed_tuple"]


def document_hash(text: bytes | memoryview) -> bytes:
    """Returns the BLAKE2b-128 of one text's UTF-8 bytes."""
    return hashlib.blake2b(text, digest_size=HASH_BYTES).digest()


def hashed_tuple(*fields: str | bytes | int) -> bytes:
    """Returns the BLAKE2b-128 of the fields, unambiguously encoded."""
    return document_hash(encoded_tuple(*fields))


def encoded_tuple(*fields: str | bytes | int) -> bytes:
    """Returns the bytes that `hashed_tuple` hashes; encodings of parts can be concatenated."""
    return b"".join(map(_encoded, fields))


def _encoded(field: str | bytes | int) -> bytes:
    if isinstance(field, int):
        return struct.pack("<Qq", 8, field)
    data = field.encode() if isinstance(field, str) else field
    return struct.pack("<Q", len(data)) + data
