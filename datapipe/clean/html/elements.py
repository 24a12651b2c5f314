"""What the structure of a page depends on: which elements are void, which end by themselves, ...

By the HTML standard's chapter on parsing, as far as nesting goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "FOREIGN",
    "FORMATTING",
    "GROUP",
    "LAST",
    "LIST",
    "PASSED",
    "RAW",
    "SCOPE",
    "SPECIAL",
    "STOP",
    "TABLE",
    "VOID",
    "name_table",
]

VOID = 1
"""Holds nothing, or is there once whatever the page says."""
FORMATTING = 2
"""Is opened again by the parser where another end tag closed it."""
STOP = 4
"""What begins inside ends nothing outside."""
SCOPE = 8
"""End tags inside close nothing outside."""
TABLE = 16
"""Nor do those of parts of tables."""
LIST = 32
"""Indents what it holds."""
RAW = 64
"""Holds characters alone, up to its own end tag."""
FOREIGN = 128
"""SVG and MathML: RAW holds no more than others, and tags can close themselves."""
SPECIAL = 256
"""The end tag of an element that isn't closes nothing around one that is."""
LAST = 512
"""Its end tag closes it only where it holds nothing that must be closed by a tag."""
HTML = 1024
"""Ends SVG and MathML, or holds HTML in them."""
PASSED = 2048
"""Is SPECIAL, but items of lists look beyond it for an item to end."""
GROUP = 4096
"""Times a number: an element ends by itself where one of the same number begins."""

_KINDS: tuple[tuple[int, str], ...] = (
    (VOID, "area base br col embed hr img input link meta param source track wbr keygen frame"),
    (VOID, "html head body frameset"),
    (FORMATTING, "a b big code em font i nobr s small strike strong tt u"),
    (LAST, "form"),
    (PASSED, "address div p"),
    (STOP, "button ul ol dl select ruby"),
    (STOP | SCOPE, "applet marquee object svg math td th caption"),
    (STOP | SCOPE | TABLE, "table template"),
    (FOREIGN, "svg math"),
    (LIST, "ul ol"),
    (RAW, "script style textarea title xmp iframe noembed noframes"),
    (SPECIAL, "address applet article aside blockquote button caption center colgroup dd details"),
    (SPECIAL, "dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header"),
    (SPECIAL, "hgroup li listing main marquee menu nav noscript object ol p plaintext pre search"),
    (SPECIAL, "section select summary table tbody td template tfoot th thead tr ul svg math"),
    (SPECIAL, "desc foreignobject mi mo mn ms mtext annotation-xml"),
    (HTML, "span sub sup var ruby"),
    (GROUP * 1, "p"),
    (GROUP * 2, "li"),
    (GROUP * 3, "dt dd"),
    (GROUP * 4, "td th"),
    (GROUP * 5, "tr"),
    (GROUP * 6, "thead tbody tfoot colgroup caption"),
    (GROUP * 7, "option optgroup"),
    (GROUP * 8, "rt rp rb rtc"),
)

_OFFSET = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)


def name_table() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Returns the FNV-1a hashes of all names, ascending, and what each of them is."""
    kinds: dict[int, int] = {}
    for kind, name in _named():
        kinds[_hash(name)] = kinds.get(_hash(name), 0) | kind
    hashes = sorted(kinds)
    return np.array(hashes, np.uint64), np.array([kinds[h] for h in hashes], np.int64)


def _named() -> Iterator[tuple[int, str]]:
    for kind, names in _KINDS:
        for name in names.split():
            yield kind, name


def _hash(name: str) -> int:
    value: Any = _OFFSET
    with np.errstate(over="ignore"):
        for byte in name.encode():
            value = (value ^ np.uint64(byte)) * _PRIME
    return int(value)
