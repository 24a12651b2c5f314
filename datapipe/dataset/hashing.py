"""The hashes of the format: canonical JSON, SHA-256 of objects, hashed tuples, document hashes.

A hashed tuple is a sequence of fields, each preceded by its length as uint64 little-endian, so no
two different tuples have the same bytes. Text is UTF-8; integers, timestamps and booleans are
int64 little-endian, floats are IEEE 754 doubles little-endian; an absent field has the length
2**64 - 1 and no bytes. `rows.py` encodes whole tables the same way.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import rfc8785

from tiering.checksums import Buffer

__all__ = [
    "ABSENT",
    "Field",
    "canonical_json",
    "document_hash",
    "hashed_tuple",
    "sha256_hex",
]

Field = str | bytes | int | float | None
"""What a hashed tuple is made of."""

ABSENT = (1 << 64) - 1
"""The length that stands before a field that isn't there."""


def canonical_json(value: Any) -> bytes:
    """Returns `value` as RFC 8785 canonical JSON: equal values, equal bytes.

    Raises:
        ValueError: it holds a NaN, an integer beyond 2**53 or something that isn't JSON.
    """
    return rfc8785.dumps(value)


def sha256_hex(data: Buffer) -> str:
    """Returns the SHA-256 of `data` in lower-case hex: the name of an object with these bytes."""
    return hashlib.sha256(data).hexdigest()


def document_hash(text: bytes | memoryview) -> bytes:
    """Returns the BLAKE2b-128 of a text's UTF-8 bytes, 16 bytes."""
    return hashlib.blake2b(text, digest_size=16).digest()


def hashed_tuple(*fields: Field) -> bytes:
    """Returns the bytes of a tuple that are hashed, each field preceded by its length."""
    return b"".join(_with_length(field) for field in fields)


def _with_length(field: Field) -> bytes:
    if field is None:
        return struct.pack("<Q", ABSENT)
    data = _field_bytes(field)
    return struct.pack("<Q", len(data)) + data


def _field_bytes(field: str | bytes | int | float) -> bytes:
    if isinstance(field, str):
        return field.encode()
    if isinstance(field, int):
        return (field & ABSENT).to_bytes(8, "little")  # uint64 has the bits of its int64
    if isinstance(field, float):
        return struct.pack("<d", field)
    return bytes(field)
