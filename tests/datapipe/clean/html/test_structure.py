from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")
tree = pytest.importorskip("resiliparse.parse.html")

from datapipe.clean.html import structure  # noqa: E402

ODD = {
    "closed": "<div>" * 300 + "x" + "</div>" * 300,
    "unclosed": "<div>" * 300,
    "end tag of an element outside of one": "<span><div></span>" * 300,
    "form": "<form><div></form>" * 300,
    "cell": "<div><table><td></div></table>" * 300,
    "list": "<li><ul></li>" * 300,
    "body": "<body><div></body>" * 300,
    "comment": "<div><!--</div>-->" * 300,
    "script": "<div><script></div></script>" * 300,
    "svg that ended": "<svg><div/>" + "<div/>" * 300,
    "svg's title": "<svg><title>" + "<div>" * 300,
    "svg's cdata": "<div><svg><![CDATA[></div>]]></svg>" * 300,
    "cdata outside": "<svg><div><![CDATA[>" + "<div>" * 300 + "]]>",
    "style in svg": "<svg><foreignObject><p></p></foreignObject><style>" + "<div>" * 300,
    "formatting": "".join(f"<div><b x={i}></div>" for i in range(300)),
    "formatting around": "<b><div></b>" * 300,
    "template": "<template></div>" * 300,
    "attributes": "<p " + " ".join(f"a{i}=1" for i in range(300)) + ">",
    "paragraph": "<p><div></p>" * 300,
    "item": "<li><h1>" * 300,
    "quotes": '<p title=\'>"\' alt="<div>" x=<div>y',
}


def measured(html: str, most_depth: int = 5000) -> Any:
    texts = pa.array(["<b>", html], pa.large_string()).slice(1)
    return structure.measure(texts, np.array([0]), most_depth=most_depth)[0]


def tree_depth(html: str) -> int:
    deepest, nodes = 0, [(tree.HTMLTree.parse(html).document, 0)]
    while nodes:
        node, depth = nodes.pop()
        deepest = max(deepest, depth)
        child = node.first_child
        while child is not None:
            nodes.append((child, depth + 1))
            child = child.next_sibling
    return deepest


@pytest.mark.parametrize("html", ODD.values(), ids=ODD)
def test_no_parser_builds_a_deeper_tree_than_was_measured(html: str) -> None:
    assert measured(html)[structure.DEPTH] >= tree_depth(html) - 4  # html, body, text, tbody


_TAGS = "div p span b i li ul ol table tr td th a form h1 svg math title style select option dd"
_SOUP = st.lists(
    st.sampled_from([f"<{name}>" for name in _TAGS.split()])
    | st.sampled_from([f"</{name}>" for name in _TAGS.split()])
    | st.sampled_from(["x", "<br>", "<!--", "-->", "<!x>", "<![CDATA[", "]]>", "<foo/>"]),
    max_size=12,
)


@settings(max_examples=60)
@given(parts=_SOUP)
def test_repeated_tag_soup_is_no_deeper_than_measured(parts: list[str]) -> None:
    html = "".join(parts) * 40
    assert tree_depth(html) <= 4 * measured(html)[structure.DEPTH] + 20


def test_the_walk_ends_at_the_limit() -> None:
    assert measured("<div>" * 1000, most_depth=11).tolist() == [11, 0, 12, 0, 66]


@pytest.mark.parametrize(
    ("html", "column", "expected"),
    [
        ("<p a b=1 c='2' d=\"3\" e = 4/>", structure.ATTRIBUTES, 5),
        ("<table>" + "<tr><td>x" * 100, structure.NODES, 201),
        ("<ul><li>a<ul><li>b<br>c", structure.INDENT, 2 + 2 + 4 + 4),
        ("<div><p>a<p>b</div><br>", structure.PATHS, 0 + 1 + 2 + 0),
        ("a < b <3 </ <!", structure.NODES, 0),
        ("", structure.DEPTH, 0),
    ],
)
def test_what_is_counted(html: str, column: int, expected: int) -> None:
    assert measured(html)[column] == expected
