"""One line of JSON to one record, or to the reason why it isn't one: slow, exact and complete.

This decides what is a record; `decoding` is quick and agrees with it wherever it gives an answer.
JSON is RFC 8259: NaN and Infinity aren't numbers. Of keys that are there twice the last counts.
Numbers are never converted, so their size doesn't matter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from datapipe.read.fields import lookup
from datapipe.recipe import FieldPath

__all__ = [
    "MAX_DEPTH",
    "Record",
    "RecordError",
    "is_too_deep",
    "json_text",
    "may_be_deep",
    "parse_json",
    "read_record",
]

MAX_DEPTH = 256
"""Deeper nesting is refused: decoders differ in what they survive, so the limit is ours."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)


class Number(str):
    """A number as it is written."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What is taken from one record."""

    text: str
    id: str | None
    url: str | None
    date: str | None
    language: str | None


class RecordError(Exception):
    """A line isn't a record; `error` is the class that is counted. Never leaves the package."""

    def __init__(self, error: str, detail: str) -> None:
        super().__init__(detail)
        self.error = error
        self.detail = detail


def read_record(line: bytes, paths: Mapping[str, FieldPath]) -> Record:
    """Returns the record that `line` holds, without a byte order mark.

    Args:
        line: one line, not blank.
        paths: where text, id, url, date and language stand.

    Raises:
        RecordError: it holds none.
    """
    value = parse_json(line)
    if not isinstance(value, dict):
        raise RecordError("not_an_object", f"the record is {_kind(value)}, not an object")
    text = lookup(value, paths["text"])
    name = ".".join(paths["text"])
    if text is None:
        raise RecordError("text_missing", f"the record has no `{name}`, or it is null")
    if type(text) is not str:
        raise RecordError("text_not_string", f"`{name}` is {_kind(text)}, not a string")
    return Record(
        text=_well_formed(text, name),
        id=attribute(value, paths["id"], keep_all=True),
        url=attribute(value, paths["url"]),
        date=attribute(value, paths["date"]),
        language=attribute(value, paths["language"]),
    )


def attribute(record: object, path: FieldPath, *, keep_all: bool = False) -> str | None:
    """Returns the string at `path`; of other values the JSON text with `keep_all`, else None."""
    value = lookup(record, path)
    if value is None or (type(value) is not str and not keep_all):
        return None
    text = value if type(value) is str else json_text(value)
    return _well_formed(text, ".".join(path))


def parse_json(line: bytes) -> object:
    """Returns the value that `line` is; its numbers are `Number`. Raises: RecordError."""
    if is_too_deep(line):
        raise RecordError("too_deep", f"the record is nested more than {MAX_DEPTH} levels deep")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise RecordError(
            "invalid_utf8",
            f"byte {error.start} of the record, 0x{line[error.start]:02x}, isn't UTF-8",
        ) from error
    try:
        return json.loads(
            text, parse_int=Number, parse_float=Number, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        place = f"at character {error.pos} of {len(text)}"
        raise RecordError("invalid_json", f"{error.msg} {place}") from error
    except RecursionError as error:
        raise RecordError("too_deep", "the record is nested too deep") from error


def may_be_deep(lines: bytes) -> bool:
    """Tells whether one of some lines might be too deep; cheap, by counting brackets."""
    expected = lines.count(b"\n{") + lines.startswith(b"{")
    return lines.count(b"[") + lines.count(b"{") - expected >= MAX_DEPTH


def is_too_deep(line: bytes) -> bool:
    """Tells whether `line` is nested more than MAX_DEPTH levels deep; brackets in strings aside."""
    if len(line) <= MAX_DEPTH or not may_be_deep(line):
        return False
    return _depth(line) > MAX_DEPTH


def json_text(value: object) -> str:
    """Returns the compact JSON of what `parse_json` returned, numbers as they were written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(map(json_text, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(k)}:{json_text(v)}" for k, v in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _depth(line: bytes) -> int:
    depth = deepest = 0
    for match in _STRING_OR_BRACKET.finditer(line):
        token = match[0][:1]
        depth += (token in b"[{") - (token in b"]}")
        deepest = max(deepest, depth)
    return deepest


def _refuse_constant(name: str) -> NoReturn:
    raise RecordError("invalid_json", f"{name} isn't JSON")


def _well_formed(text: str, name: str) -> str:
    found = _SURROGATE.search(text)
    if found:
        raise RecordError(
            "lone_surrogate",
            f"`{name}` holds half of a surrogate pair, \\u{ord(found[0]):04x}, at {found.start()}",
        )
    return text


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, Number):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"
