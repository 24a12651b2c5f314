"""Header fields as WARC and HTTP write them: `Name: value`, a line each."""

from __future__ import annotations

import re

__all__ = ["HeaderFields"]

_FIELD = re.compile(rb"^([^:\r\n]+):[ \t]*([^\r\n]*)", re.MULTILINE)
_FOLDED = re.compile(rb"\r?\n[ \t]+")


class HeaderFields:
    """The fields of one header; of several of one name the first counts."""

    __slots__ = ("_values",)

    def __init__(self, data: bytes) -> None:
        """`data` is the header, its first line left out."""
        if b"\n " in data or b"\n\t" in data:
            data = _FOLDED.sub(b" ", data)
        self._values: dict[bytes, bytes] = {
            name.strip().lower(): value for name, value in reversed(_FIELD.findall(data))
        }

    def get(self, name: bytes, default: str = "") -> str:
        """Returns the value of the field that is called `name`, in lower case.

        UTF-8, or Latin-1 where it isn't that.
        """
        value = self._values.get(name)
        if value is None:
            return default
        try:
            return value.strip().decode()
        except UnicodeDecodeError:
            return value.strip().decode("latin-1")

    def __contains__(self, name: bytes) -> bool:
        return name in self._values
