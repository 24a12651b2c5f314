"""Where a record's text and attributes stand in it: dotted paths into nested objects."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

__all__ = ["FieldPath", "Fields", "parse_path"]

FieldPath = tuple[str, ...]
"""The keys that lead to a field, outermost first."""


def parse_path(dotted: str) -> FieldPath:
    """Returns the keys of a dotted path. Raises: ValueError: a key is empty."""
    keys = tuple(re.sub(r"\\(.)", r"\1", key) for key in re.split(r"(?<!\\)\.", dotted))
    if not all(keys):
        raise ValueError(
            "not the path of a field: write keys with dots between them, and `\\.` for a dot "
            "inside a key"
        )
    return keys


def _checked(dotted: str) -> str:
    parse_path(dotted)
    return dotted


Dotted = Annotated[str, AfterValidator(_checked)]


class Fields(BaseModel):
    """Which field is which; `a.b` is `b` inside `a`, `a\\.b` is a key with a dot in its name."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    text: Dotted = "text"
    """The document. The only one that every record must have."""
    id: Dotted = "id"
    """The input's own id of the record; anything but a string is kept as its JSON text."""
    url: Dotted = "url"
    """Where it was found; anything but a string counts as absent."""
    date: Dotted = "date"
    """When it was found or written, ISO 8601; anything else counts as absent."""
    language: Dotted = "language"
    """Its language; anything but a string counts as absent."""

    def paths(self) -> dict[str, FieldPath]:
        """Returns the path of each of text, id, url, date and language."""
        return {name: parse_path(getattr(self, name)) for name in type(self).model_fields}
