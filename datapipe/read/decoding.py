"""Decoding many lines of JSON quickly: typed, only the fields that are asked for.

Measured on the books, poetry, manual pages and kernel documentation of the tests (MB/s of JSONL on
one core, decoding only): msgspec to typed fields 1120, 497, 492, 889; orjson to dicts 1018, 197,
518, 891; the standard library 498, 75, 306, 415. msgspec passes over the fields that nobody asked
for, and has the exact text of numbers. Both refuse what RFC 8259 refuses, except that msgspec
doesn't look at the UTF-8 of what it passes over: callers check that for whole blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from datapipe.read.records import json_text, parse_json
from datapipe.recipe import FieldPath, Fields

__all__ = ["FieldDecoder", "field_decoder"]

Getter: TypeAlias = Callable[[Any], Any]
_Tree: TypeAlias = dict[str, Any]
_ATTRIBUTES = ("id", "url", "date", "language")


class FieldDecoder:
    """Decodes lines to opaque records and gives the columns of many of them.

    With `any_type`, attributes may be of any type; without, a record with a number for an id is
    refused, and decoding is quicker.
    """

    def __init__(self, paths: Mapping[str, FieldPath], *, any_type: bool) -> None:
        self._any_type = any_type
        tree = _tree(paths, Raw if any_type else str)
        self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(
            _struct(tree, paths["text"])
        ).decode
        self._getters = {name: _getter(tree, path) for name, path in paths.items()}

    def texts(self, records: list[Any]) -> list[str]:
        """Returns each record's text."""
        return list(map(self._getters["text"], records))

    def attributes(self, records: list[Any], name: str) -> list[str | None]:
        """Returns each record's `id`, `url`, `date` or `language`."""
        values = list(map(self._getters[name], records))
        if self._any_type:
            return [_attribute(value, keep_all=name == "id") for value in values]
        return values


def field_decoder(fields: Fields, *, any_type: bool = False) -> FieldDecoder | None:
    """Returns a decoder; None where one field is asked for as an object and as a string."""
    try:
        return FieldDecoder(fields.paths(), any_type=any_type)
    except _ConflictError:
        return None


class _ConflictError(Exception):
    pass


def _tree(paths: Mapping[str, FieldPath], kind: type) -> _Tree:
    tree: _Tree = {}
    for name in (*_ATTRIBUTES, "text"):
        node = tree
        for key in paths[name][:-1]:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                raise _ConflictError
        if isinstance(node.get(paths[name][-1]), dict):
            raise _ConflictError
        node[paths[name][-1]] = str if name == "text" else kind
    return tree


def _struct(tree: _Tree, text: FieldPath) -> type[Any]:
    """Returns a msgspec type with fields f0, f1, ...; the text is required, all else optional."""
    fields = [
        (f"f{i}", *_typed(key, node, text[1:] if text[:1] == (key,) else None))
        for i, (key, node) in enumerate(tree.items())
    ]
    return msgspec.defstruct("Fields", fields, kw_only=True, gc=False)


def _typed(key: str, node: Any, text: FieldPath | None) -> tuple[Any, Any]:
    kind = _struct(node, text or ()) if isinstance(node, dict) else node
    if text is not None:
        return kind, msgspec.field(name=key)
    if kind is Raw:
        return Raw, msgspec.field(name=key, default=Raw())
    return kind | None, msgspec.field(name=key, default=None)


def _getter(tree: _Tree, path: FieldPath) -> Getter:
    names = []
    for key in path:
        names.append(f"f{list(tree).index(key)}")
        tree = tree[key]
    if len(names) == 1:
        return attrgetter(names[0])
    return lambda record: _descend(record, names)


def _descend(record: Any, names: list[str]) -> Any:
    for name in names:
        if record is None:
            return None
        record = getattr(record, name)
    return record


def _attribute(value: Raw | str | None, *, keep_all: bool) -> str | None:
    if not isinstance(value, Raw):
        return value
    data = bytes(value)
    if data in (b"", b"null"):
        return None
    if data[:1] == b'"':
        return msgspec.json.decode(data, type=str)
    return json_text(parse_json(data)) if keep_all else None
