"""Seals: a JSON object that holds, in one of its fields, the SHA-256 of all its other fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datapipe.dataset.hashing import canonical_json, sha256_hex

__all__ = ["check_seal", "seal_of"]


def seal_of(fields: Mapping[str, Any], *, name: str) -> str:
    """Returns the SHA-256, in hex, of the canonical JSON of all fields but `name`."""
    return sha256_hex(canonical_json({key: fields[key] for key in fields if key != name}))


def check_seal(fields: Mapping[str, Any], *, name: str) -> None:
    """Returns if the field `name` is the seal of the others. Raises: ValueError: it isn't."""
    stated, found = fields.get(name), seal_of(fields, name=name)
    if stated != found:
        raise ValueError(f"{name} is {stated}, its fields give {found}")
