"""YAML to plain values, with the line that each of them stands on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from datapipe.recipe.problems import shortened

__all__ = ["Place", "YamlDocument", "YamlProblem", "read_yaml"]

Place = tuple[str | int, ...]
"""Keys and positions that lead to a value, outermost first."""

_TAG = "tag:yaml.org,2002:"
_COLLECTIONS = frozenset({f"{_TAG}map", f"{_TAG}seq"})
_SCALARS = {
    f"{_TAG}null": "nothing",
    f"{_TAG}bool": "true or false",
    f"{_TAG}int": "an integer",
    f"{_TAG}float": "a number",
    f"{_TAG}binary": "base64",
    f"{_TAG}timestamp": "a date",
    f"{_TAG}str": "text",
}
"""What plain values are, by the tag that YAML gives them."""

_QUOTE = "if it is text, put it in quotes"

_MAX_VALUES = 100_000
"""Aliases of aliases multiply; no recipe comes near this."""


class YamlProblem(Exception):
    """The text isn't YAML as a recipe needs it; `line` counts from 1."""

    def __init__(self, problem: str, line: int, remedy: str = "correct that line") -> None:
        super().__init__(problem)
        self.line, self.remedy = line, remedy


@dataclass(slots=True)
class YamlDocument:
    """A value, and where its parts are written."""

    value: Any = None
    lines: dict[Place, int] = field(default_factory=dict)
    """From 1; of a mapping's value the line of its key."""

    def line(self, place: Place) -> int:
        """Returns the line of `place`, or of what it lies in."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read_yaml(text: str) -> YamlDocument:
    """Returns the one document of `text`.

    Raises:
        YamlProblem: not YAML, several documents, a key twice, a key that isn't text, an alias into
            itself.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlProblem(shortened(str(error.problem)), mark.line + 1 if mark else 1) from error
    except yaml.YAMLError as error:
        raise YamlProblem(str(error).split("\n", 1)[0], 1) from error
    except RecursionError as error:
        raise YamlProblem("it is nested too deep", 1) from error
    document = YamlDocument()
    if node is not None:
        document.lines[()] = node.start_mark.line + 1
        document.value = _Reader(text, document.lines).value(node, (), ())
    return document


class _Reader:
    def __init__(self, text: str, lines: dict[Place, int]) -> None:
        self._scalars = yaml.SafeLoader(text)
        self._lines = lines
        self._visited = 0

    def value(self, node: yaml.Node, place: Place, inside: tuple[yaml.Node, ...]) -> Any:
        if node in inside:
            raise YamlProblem("an alias contains itself", node.start_mark.line + 1)
        self._visited += 1
        if self._visited > _MAX_VALUES:
            raise YamlProblem(f"it has more than {_MAX_VALUES:,} values", node.start_mark.line + 1)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if node.tag not in _COLLECTIONS:
            raise _unknown_tag(node)
        inside = (*inside, node)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place, inside)
        return [self._item(child, (*place, i), inside) for i, child in enumerate(node.value)]

    def _item(self, node: yaml.Node, place: Place, inside: tuple[yaml.Node, ...]) -> Any:
        self._lines[place] = node.start_mark.line + 1
        return self.value(node, place, inside)

    def _mapping(
        self, node: yaml.MappingNode, place: Place, inside: tuple[yaml.Node, ...]
    ) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self._scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                raise YamlProblem("a key isn't text; put it in quotes", line)
            if key in values:
                raise YamlProblem(f"the key `{shortened(key)}` is there twice", line)
            self._lines[(*place, key)] = line
            values[key] = self.value(value_node, (*place, key), inside)
        return values

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag not in _SCALARS:
            raise _unknown_tag(node)
        try:
            return self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            problem = f"`{shortened(node.value)}` can't be read as {_SCALARS[node.tag]}"
            raise YamlProblem(problem, node.start_mark.line + 1, _QUOTE) from error


def _unknown_tag(node: yaml.Node) -> YamlProblem:
    line = node.start_mark.line + 1
    if node.tag == f"{_TAG}merge":
        return YamlProblem("`<<` merges nothing in a recipe", line, "write the keys out")
    if node.tag == f"{_TAG}value":
        return YamlProblem("`=` alone means nothing in a recipe", line, _QUOTE)
    tag = shortened(node.tag.replace(_TAG, "!!"))
    return YamlProblem(f"a recipe has no values of the tag {tag}", line, "leave the tag out")
