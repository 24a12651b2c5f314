# mypy: disable-error-code="no-untyped-def, no-untyped-call"
"""How deep, long and tangled the tags of a page are, seen before any parser builds a tree.

Parsers of HTML take time that grows with the square of some of these: 100,000 nested <div>, one tag
of 40,000 attributes. One walk over the bytes follows the rules of nesting so far that what it
finds is, within a few elements, not less than what a parser will build. 300 to 550 MB/s.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.clean.html.elements import (
    FOREIGN,
    FORMATTING,
    GROUP,
    LAST,
    LIST,
    PASSED,
    RAW,
    SCOPE,
    SPECIAL,
    STOP,
    TABLE,
    VOID,
    name_table,
)
from datapipe.documents.kernels import kernel

__all__ = ["ATTRIBUTES", "DEPTH", "INDENT", "NODES", "PATHS", "measure"]

Array: TypeAlias = npt.NDArray[Any]

DEPTH, ATTRIBUTES, NODES, INDENT, PATHS = range(5)
"""Columns of what `measure` returns."""

_HASHES, _KINDS = name_table()
_OFFSET = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_PARAGRAPH, _ITEM, _TERM = 1, 2, 3  # groups of elements
_FIRST_PART, _LAST_PART = 4, 6  # of tables
_SAME_OPEN = 3  # the parser opens no more than three equal formatting elements again


def measure(texts: pa.Array, rows: Array, *, most_depth: int) -> Array:
    """Returns int64 [rows, 5] of pages: DEPTH, ATTRIBUTES of one tag, NODES, INDENT and PATHS.

    NODES: elements. INDENT: characters that lists put in front of lines. PATHS: the depths of all
    elements added up. Where DEPTH reaches
    `most_depth` the walk ends, so the others count up to there.
    """
    found = np.zeros((len(rows), 5), np.int64)
    if len(rows):
        _, offsets, data = texts.buffers()
        starts = np.frombuffer(offsets, np.int64, len(texts) + 1, texts.offset * 8)
        values = np.frombuffer(data or b"", np.uint8)
        names, openings = (
            np.zeros((2, most_depth + 1), np.uint64),
            np.zeros((2, most_depth + 1), np.uint64),
        )
        lists = np.zeros(most_depth + 1, np.int64)
        _measure_all(
            values, starts, rows, found, names, openings, lists, _HASHES, _KINDS, most_depth
        )
    return found


@kernel
def _measure_all(data, starts, rows, found, names, openings, lists, hashes, kinds, most_depth):
    for place in range(len(rows)):
        start, end = starts[rows[place]], starts[rows[place] + 1]
        _measure(data, start, end, found[place], names, openings, lists, hashes, kinds, most_depth)


@kernel
def _kind(hashes, kinds, name):
    low, high = 0, len(hashes)
    while low < high:
        middle = (low + high) // 2
        if hashes[middle] < name:
            low = middle + 1
        else:
            high = middle
    return kinds[low] if low < len(hashes) and hashes[low] == name else 0


@kernel
def _is_space(byte):
    return byte == 32 or 9 <= byte <= 13


@kernel
def _is_letter(byte):
    return 65 <= byte <= 90 or 97 <= byte <= 122


@kernel
def _read_name(data, i, end):
    """Returns the hash of the tag's name from i on, in lower case, and where it ends."""
    value = _OFFSET
    while i < end and not _is_space(data[i]) and data[i] != 47 and data[i] != 62:
        byte = data[i]
        if 65 <= byte <= 90:
            byte += 32
        value = (value ^ np.uint64(byte)) * _PRIME
        i += 1
    return value, i


@kernel
def _read_attributes(data, i, end):
    """Returns the number of attributes, whether the tag closes itself, and where it has ended."""
    count = 0
    closes = False
    while i < end:
        byte = data[i]
        if byte == 62:
            return count, closes, i + 1
        if byte == 47 or _is_space(byte):
            closes = byte == 47
            i += 1
            continue
        closes = False
        count += 1
        i += 1
        while i < end and not (_is_space(data[i]) or data[i] in (47, 61, 62)):
            i += 1
        j = i
        while j < end and _is_space(data[j]):
            j += 1
        if j < end and data[j] == 61:
            i = j + 1
            while i < end and _is_space(data[i]):
                i += 1
            if i < end and (data[i] == 34 or data[i] == 39):
                quote = data[i]
                i += 1
                while i < end and data[i] != quote:
                    i += 1
                i += 1
            else:
                while i < end and not _is_space(data[i]) and data[i] != 62:
                    i += 1
    return count, closes, end


@kernel
def _behind(data, i, end, a, b):
    """Returns the place behind the next `a b >` or, where a is 0, behind the next `>`."""
    while i < end:
        if data[i] == 62 and (a == 0 or (data[i - 1] == b and data[i - 2] == a)):
            return i + 1
        i += 1
    return end


@kernel
def _behind_comment(data, i, end):
    """Returns the place behind the comment whose `<!--` ends at i."""
    if i < end and data[i] == 62:
        return i + 1
    if i + 1 < end and data[i] == 45 and data[i + 1] == 62:
        return i + 2
    start = i
    while i < end:
        if data[i] == 62 and i - 2 >= start:
            if data[i - 1] == 45 and data[i - 2] == 45:
                return i + 1
            if i - 3 >= start and data[i - 1] == 33 and data[i - 2] == 45 and data[i - 3] == 45:
                return i + 1
        i += 1
    return end


@kernel
def _raw_end(data, i, end, name):
    """Returns where the end tag of `name` begins."""
    while i + 2 < end:
        if data[i] == 60 and data[i + 1] == 47 and _is_letter(data[i + 2]):
            found, _ = _read_name(data, i + 2, end)
            if found == name:
                return i
        i += 1
    return end


@kernel
def _remember(names, openings, lost, name, opening):
    """Adds a formatting element that the parser will open again; returns how many these are."""
    same = 0
    for k in range(lost):
        if openings[1, k] == opening:
            same += 1
    if same >= _SAME_OPEN or lost >= names.shape[1]:
        return lost
    names[1, lost], openings[1, lost] = name, opening
    return lost + 1


@kernel
def _begun(hashes, kinds, names, open_, group):
    """Returns where on the stack the element is that ends because one of its group begins.

    -1: there is none; -2: there is no table that a part of tables could be in.
    """
    in_table = not _FIRST_PART <= group <= _LAST_PART
    for k in range(open_ - 1, -1, -1):
        other = _kind(hashes, kinds, names[0, k])
        if other // GROUP == group:
            return k
        in_table = in_table or other & TABLE != 0
        if other & TABLE or (other & STOP and not _FIRST_PART <= group <= _LAST_PART):
            return -1
        if group > _LAST_PART and not other // GROUP:
            return -1
        if other & SPECIAL and (
            group == _PARAGRAPH or (group in (_ITEM, _TERM) and not other & PASSED)
        ):
            return -1
    return -1 if in_table else -2


@kernel
def _ended(hashes, kinds, names, open_, name, kind):
    """Returns where on the stack the element is that an end tag closes; -1: it closes none."""
    group = kind // GROUP
    for k in range(open_ - 1, -1, -1):
        if names[0, k] == name:
            return k
        other = _kind(hashes, kinds, names[0, k])
        if other & TABLE:
            return -1
        if other & SCOPE and not (kind & TABLE or _FIRST_PART <= group <= _LAST_PART):
            return -1
        if other & STOP and group in (_PARAGRAPH, _ITEM):
            return -1
        if other & SPECIAL and (group == _PARAGRAPH or not kind & (SPECIAL | FORMATTING)):
            return -1
    return -1


@kernel
def _are_ended(hashes, kinds, names, start, end):
    """Tells whether all elements from `start` on end by themselves."""
    for k in range(start, end):  # noqa: SIM110 Numba knows no generators
        if not _kind(hashes, kinds, names[0, k]) // GROUP:
            return False
    return True


@kernel
def _forget(names, openings, lost, name):
    """Removes the last formatting element of a name; returns how many there are."""
    for j in range(lost - 1, -1, -1):
        if names[1, j] == name:
            for m in range(j, lost - 1):
                names[1, m], openings[1, m] = names[1, m + 1], openings[1, m + 1]
            return lost - 1
    return lost


@kernel
def _measure(data, i, end, found, names, openings, lists, hashes, kinds, most_depth):
    open_ = lost = 0  # elements on the stack, and formatting ones that will be opened again
    inside = 0  # SVG and MathML on the stack
    foreign = False  # whether tags close themselves
    frozen = i  # end tags before it may be characters: they close nothing
    while i < end:
        if data[i] != 60 or i + 1 >= end:
            i += 1
            continue
        byte = data[i + 1]
        start = i
        if _is_letter(byte):
            name, i = _read_name(data, i + 1, end)
            count, closes, i = _read_attributes(data, i, end)
            kind = _kind(hashes, kinds, name)
            found[ATTRIBUTES] = max(found[ATTRIBUTES], count)
            found[NODES] += 1 if kind & FORMATTING else 1 + lost
            found[PATHS] += open_ + lost
            if open_:
                found[INDENT] += 2 * lists[open_ - 1]
            if kind & FOREIGN:
                foreign = True
            elif kind:
                foreign = False
            if kind & VOID or (closes and foreign):
                continue
            if kind & RAW and inside:
                frozen = max(frozen, _raw_end(data, i, end, name))
            elif kind & RAW:
                i = _raw_end(data, i, end, name)
                continue
            if kind // GROUP:
                k = _begun(hashes, kinds, names, open_, kind // GROUP)
                if k == -2:
                    continue
                for j in range(k if k >= 0 else open_, open_):
                    if _kind(hashes, kinds, names[0, j]) & FORMATTING:
                        lost = _remember(names, openings, lost, names[0, j], openings[0, j])
                open_ = k if k >= 0 else open_
            if open_ + lost >= most_depth:
                found[DEPTH] = most_depth
                return
            opening = _OFFSET
            if kind & FORMATTING:
                for j in range(start, i):
                    opening = (opening ^ np.uint64(data[j])) * _PRIME
            names[0, open_], openings[0, open_] = name, opening
            lists[open_] = (lists[open_ - 1] if open_ else 0) + (1 if kind & LIST else 0)
            inside += 1 if kind & FOREIGN else 0
            open_ += 1
            found[DEPTH] = max(found[DEPTH], open_ + lost)
        elif byte == 47 and i + 2 < end and _is_letter(data[i + 2]):
            name, i = _read_name(data, i + 2, end)
            _, _, i = _read_attributes(data, i, end)
            if start < frozen:
                continue
            kind = _kind(hashes, kinds, name)
            k = _ended(hashes, kinds, names, open_, name, kind)
            if k < 0:
                found[NODES] += 1
                if kind & FORMATTING:
                    lost = _forget(names, openings, lost, name)
            elif kind & LAST and not _are_ended(hashes, kinds, names, k + 1, open_):
                continue
            elif kind & FORMATTING:
                open_ -= 1
                for j in range(k, open_):
                    names[0, j], openings[0, j] = names[0, j + 1], openings[0, j + 1]
                    lists[j] = lists[j + 1]
            else:
                for j in range(k, open_):
                    other = _kind(hashes, kinds, names[0, j])
                    inside -= 1 if other & FOREIGN else 0
                    if other & FORMATTING:
                        lost = _remember(names, openings, lost, names[0, j], openings[0, j])
                open_ = k
        elif byte == 33:
            if i + 3 < end and data[i + 2] == 45 and data[i + 3] == 45:
                i = _behind_comment(data, i + 4, end)
                continue
            if inside and i + 8 < end and data[i + 2] == 91 and data[i + 8] == 91:
                frozen = max(frozen, _behind(data, i + 9, end, 93, 93))
            i = _behind(data, i + 2, end, 0, 0)
        elif byte == 63 or byte == 47:
            i = _behind(data, i + 1, end, 0, 0)
        else:
            i += 1
