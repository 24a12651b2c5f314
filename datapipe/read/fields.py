"""Finding a field in a record that is in memory."""

from __future__ import annotations

from datapipe.recipe import FieldPath

__all__ = ["is_there", "lookup"]


def lookup(record: object, path: FieldPath) -> object:
    """Returns what stands at `path`; None where a key is missing or holds no object."""
    for key in path:
        if not isinstance(record, dict):
            return None
        record = record.get(key)
    return record


def is_there(record: object, path: FieldPath) -> bool:
    """Tells whether something stands at `path`, if only null."""
    for key in path:
        if not isinstance(record, dict) or key not in record:
            return False
        record = record[key]
    return True
