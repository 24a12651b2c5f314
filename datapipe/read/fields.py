"""Where a record's text and attributes stand in it: dotted paths into nested objects."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from datapipe.errors import InputError

__all__ = ["FieldMap", "FieldPath", "lookup", "parse_path"]

FieldPath = tuple[str, ...]
"""The keys that lead to a field, outermost first."""

@dataclass(frozen=True, kw_only=True, slots=True)
class FieldMap:
    """Which field is which; `a.b` is `b` inside `a`, `a\\.b` is a key with a dot in its name."""

    text: str = "text"
    """The document. The only one that every record must have."""
    id: str = "id"
    """The input's own id of the record; anything but a string is kept as its JSON text."""
    url: str = "url"
    """Where it was found; anything but a string counts as absent."""
    date: str = "date"
    """When it was found or written, ISO 8601; anything else counts as absent."""
    language: str = "language"
    """Its language; anything but a string counts as absent."""

    def paths(self) -> dict[str, FieldPath]:
        """Returns the path of each of text, id, url, date and language."""
        return {field.name: parse_path(getattr(self, field.name)) for field in fields(self)}


def parse_path(dotted: str) -> FieldPath:
    """Returns the keys of a dotted path. Raises: InputError: a key is empty."""
    keys = tuple(re.sub(r"\\(.)", r"\1", key) for key in re.split(r"(?<!\\)\.", dotted))
    if not all(keys):
        raise InputError(
            f"`{dotted}` isn't the path of a field: a key is empty; write keys with dots between "
            "them, and `\\.` for a dot inside a key."
        )
    return keys


def lookup(record: object, path: FieldPath) -> object:
    """Returns what stands at `path`; None where a key is missing or holds no object."""
    for key in path:
        if not isinstance(record, dict):
            return None
        record = record.get(key)
    return record
