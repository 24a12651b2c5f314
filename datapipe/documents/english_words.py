"""Words as spaCy's rules for English take them: marks apart, contractions in two.

A run without white space loses the marks in front of and behind it, one after another; whatever is
a case of its own (`english_rules`) stays whole or falls into its parts; what is left is one word if
it looks like a web address, else it falls apart at signs between letters or digits. At the end
neighbours that make up a case together become that case, as in "nice:)".
"""

from __future__ import annotations

import numpy as np

from datapipe.documents.characters import (
    ALNUM,
    CURRENCY,
    EN_ICON,
    EN_LOWER,
    EN_POINT,
    EN_PREFIX,
    EN_QUOTE,
    EN_SUFFIX,
    EN_UPPER,
)
from datapipe.documents.english_rules import WORD_COLUMN
from datapipe.documents.kernels import Array, Integer, kernel
from datapipe.documents.split import code_point_at, word_hash

__all__ = ["cut_english", "rule_table"]

_LETTER = EN_LOWER | EN_UPPER
_DOT, _PLUS, _MINUS, _COMMA, _STAR, _CARET = 0x2E, 0x2B, 0x2D, 0x2C, 0x2A, 0x5E
_COLON, _LESS, _EQUALS, _MORE, _SLASH, _DOLLAR, _AT = 0x3A, 0x3C, 0x3D, 0x3E, 0x2F, 0x24, 0x40
_ELLIPSIS, _EN_DASH, _EM_DASH, _TILDE, _DEGREE = 0x2026, 0x2013, 0x2014, 0x7E, 0xB0
_APOSTROPHE, _CURLY = 0x27, 0x2019
_MOST_PARTS = 8
_TABLE = 4096
_SIZE, _IS_UNIT, _PARTS = 1, 2, 3


@kernel
def rule_table(rows: Array) -> Array:
    """Returns the rows of `EnglishRules` where their hashes say; other rows are zero."""
    table = np.zeros((_TABLE, rows.shape[1]), np.uint8)
    for row in range(len(rows)):
        hashed = word_hash(rows[row], WORD_COLUMN, WORD_COLUMN + rows[row, _SIZE])
        slot = np.int64(hashed & np.uint64(_TABLE - 1))
        while table[slot, 0]:
            slot = (slot + 1) & (_TABLE - 1)
        table[slot] = rows[row]
    return table


@kernel
def _rule(data: Array, start: int, end: int, rules: Array, begins: Array, unit: bool) -> Integer:
    """Returns which row is the case (or unit) data[start:end], -1 if none."""
    count = end - start
    if count <= 0 or count >= begins.shape[1]:
        return -1
    if not begins[1 if unit else 0, count, data[start]]:
        return -1
    slot = np.int64(word_hash(data, start, end) & np.uint64(_TABLE - 1))
    while rules[slot, 0]:
        same = rules[slot, _SIZE] == count and (rules[slot, _IS_UNIT] != 0) == unit
        for i in range(count if same else 0):
            if rules[slot, WORD_COLUMN + i] != data[start + i]:
                same = False
                break
        if same:
            return slot
        slot = (slot + 1) & (_TABLE - 1)
    return -1


@kernel
def _before(data: Array, start: int, i: int) -> int:
    """Returns where the character that ends at byte i begins; i at the start."""
    if i <= start:
        return i
    i -= 1
    while i > start and data[i] & 0xC0 == 0x80:
        i -= 1
    return i


@kernel
def _is_digit(c: int) -> bool:
    return 0x30 <= c <= 0x39


@kernel
def _prefix_end(data: Array, start: int, end: int, classes: Array) -> int:
    """Returns where the mark in front of data[start:end] ends; start if there is none."""
    if start >= end:
        return start
    c, i = code_point_at(data, start)
    if c == _DOT:
        while i < end and data[i] == _DOT:
            i += 1
        return i if i - start > 1 else start
    if c == _PLUS:
        signs = i < end and 0x30 <= data[i] <= 0x39
        return start if signs else i
    if classes[c] & (EN_PREFIX | EN_ICON | CURRENCY):
        return i
    if (c == 0x43 or c == 0x41) and i < end and data[i] == _DOLLAR:
        return i + 1
    if c == 0x55 and i + 1 < end and data[i] == 0x53 and data[i + 1] == _DOLLAR:
        return i + 2
    return start


@kernel
def _unit_start(data: Array, start: int, end: int, rules: Array, begins: Array) -> int:
    """Returns where the unit behind a number at the end of data[start:end] begins, else end."""
    i = end
    while i > start and end - i <= 12 and not _is_digit(data[i - 1]):
        i -= 1
    if (
        i > start
        and i < end
        and _is_digit(data[i - 1])
        and _rule(data, i, end, rules, begins, True) >= 0
    ):
        return i
    return end


@kernel
def _suffix_start(
    data: Array, start: int, end: int, classes: Array, rules: Array, begins: Array
) -> int:
    """Returns where the mark behind data[start:end] begins; end if there is none."""
    if start >= end:
        return end
    last = _before(data, start, end)
    c, _ = code_point_at(data, last)
    first = end
    if c == _DOT:
        i = last
        while i > start and data[i - 1] == _DOT:
            i -= 1
        if i < last:
            return i
        if last == start:
            return end
        front = _before(data, start, last)
        p, _ = code_point_at(data, front)
        if _is_digit(p) or classes[p] & (EN_LOWER | EN_POINT):
            return last
        if front > start:
            q, _ = code_point_at(data, _before(data, start, front))
            if classes[p] & EN_UPPER and classes[q] & EN_UPPER:
                return last
            if q == _DEGREE and (p == 0x46 or p == 0x43 or p == 0x4B):
                return last
        return end
    if (c == 0x73 or c == 0x53) and last > start:
        front = _before(data, start, last)
        p, _ = code_point_at(data, front)
        if p in (_APOSTROPHE, _CURLY):
            return front
    if classes[c] & (EN_SUFFIX | EN_ICON):
        return last
    if last > start and _is_digit(data[last - 1]) and (c == _PLUS or classes[c] & CURRENCY):
        return last
    first = _unit_start(data, start, end, rules, begins)
    return first


@kernel
def _in_host(data: Array, i: int) -> tuple[int, int]:
    """Returns 1 for a character of a host's label, 2 for one inside of it only, 0 for others."""
    c, after = code_point_at(data, i)
    if _is_digit(c) or 0x41 <= c <= 0x5A or 0x61 <= c <= 0x7A or 0xA1 <= c <= 0xFFFF:
        return 1, after
    if c == _MINUS or c == 0x5F:
        return 2, after
    return 0, after


@kernel
def _host_matches(data: Array, start: int, end: int, classes: Array) -> bool:
    """Tells whether data[start:end] is a host name, perhaps with port and path."""
    i, label, labels, top_chars = start, 0, 0, 0
    top, edge = True, False
    while i < end:
        if data[i] == _DOT:
            if label == 0 or not edge:
                return False
            labels += 1
            label, top, top_chars = 0, True, 0
            i += 1
            continue
        found, after = _in_host(data, i)
        if found == 0 or (found == 2 and label == 0):
            break
        c, _ = code_point_at(data, i)
        top = top and classes[c] & EN_LOWER != 0
        edge = found == 1
        label += 1
        top_chars += 1
        if label > 64:
            return False
        i = after
    if labels == 0 or not top or top_chars < 2 or top_chars > 63:
        return False
    if i < end and data[i] == _COLON:
        i += 1
        digits = 0
        while i < end and _is_digit(data[i]):
            digits += 1
            i += 1
        if digits < 2 or digits > 5:
            return False
    return i == end or data[i] == _SLASH or data[i] == 0x3F or data[i] == 0x23


@kernel
def _is_scheme(data: Array, start: int, end: int, classes: Array) -> bool:
    i = start
    while i < end:
        c, i = code_point_at(data, i)
        joins = c == 0x5F or c in (_PLUS, _MINUS, _DOT)
        if not joins and not classes[c] & ALNUM:
            return False
    return True


@kernel
def _is_scheme_end(data: Array, start: int, i: int, end: int) -> bool:
    inside = i + 2 < end and i - start >= 2
    return inside and data[i + 1] == _SLASH and data[i + 2] == _SLASH


@kernel
def _is_address(data: Array, start: int, end: int, classes: Array) -> bool:
    """Tells whether data[start:end] looks like a URL, a host or an e-mail address."""
    dotted, scheme, at = False, start, -1
    for i in range(start, end):
        if data[i] == _DOT:
            dotted = True
        elif data[i] == _AT:
            at = i
        elif scheme == start and data[i] == _COLON and _is_scheme_end(data, start, i, end):
            scheme = i + 3
    if not dotted:
        return False
    if _host_matches(data, start, end, classes):
        return True
    named = scheme > start and _is_scheme(data, start, scheme - 3, classes)
    if named and _host_matches(data, scheme, end, classes):
        return True
    return at > start and _host_matches(data, at + 1, end, classes)


@kernel
def _hyphen_end(data: Array, i: int, end: int, classes: Array) -> int:
    """Returns where the hyphen or dash at i ends if a letter follows, else i."""
    c, after = code_point_at(data, i)
    most = 3 if c == _MINUS else 2 if c == _EM_DASH else 1
    if c != _MINUS and c != _EM_DASH and c != _EN_DASH and c != _TILDE:
        return i
    length = after - i
    for _ in range(most):
        if after >= end:
            return i
        behind, _ = code_point_at(data, after)
        if classes[behind] & _LETTER:
            return after
        if behind != c:
            return i
        after += length
    return i


@kernel
def _infix_end(data: Array, i: int, end: int, prev: int, classes: Array) -> int:
    """Returns where the sign at i ends that parts what is around it; i if there is none.

    prev is the code point in front, 0 if there is none.
    """
    c, after = code_point_at(data, i)
    behind = 0
    if after < end:
        behind, _ = code_point_at(data, after)
    if c == _DOT:
        if behind == _DOT:
            while after < end and data[after] == _DOT:
                after += 1
            return after
        apart = classes[prev] & (EN_LOWER | EN_QUOTE) and classes[behind] & (EN_UPPER | EN_QUOTE)
        return after if apart else i
    if c == _ELLIPSIS or classes[c] & EN_ICON:
        return after
    signed = c in (_PLUS, _MINUS, _STAR, _CARET)
    if signed and _is_digit(prev) and (_is_digit(behind) or behind == _MINUS):
        return after
    if c == _COMMA:
        return after if classes[prev] & _LETTER and classes[behind] & _LETTER else i
    if not (classes[prev] & _LETTER or _is_digit(prev)):
        return i
    if c in (_COLON, _LESS, _MORE, _EQUALS, _SLASH):
        return after if classes[behind] & _LETTER else i
    return _hyphen_end(data, i, end, classes)


@kernel
def _cut_inside(
    data: Array, start: int, end: int, classes: Array, starts: Array, ends: Array, count: int
) -> int:
    """Writes the parts of data[start:end] between signs, and the signs."""
    word, i, prev = start, start, 0
    while i < end:
        after = _infix_end(data, i, end, prev, classes)
        if after == i:
            prev, i = code_point_at(data, i)
            continue
        if i > start:
            if i > word:
                starts[count], ends[count] = word, i
                count += 1
            starts[count], ends[count] = i, after
            count += 1
            word = after
        prev, _ = code_point_at(data, _before(data, start, after))
        i = after
    if word < end:
        starts[count], ends[count] = word, end
        count += 1
    return count


@kernel
def _all_letters(data: Array, start: int, end: int) -> bool:
    for i in range(start, end):  # noqa: SIM110, generators don't compile
        if not 0x61 <= data[i] | 0x20 <= 0x7A:
            return False
    return True


@kernel
def _cut_case(number: int, start: int, rules: Array, starts: Array, ends: Array, count: int) -> int:
    """Writes the parts of a case."""
    at: Integer = start
    for part in range(rules[number, _PARTS]):
        size: Integer = np.int64(rules[number, 4 + part])
        starts[count], ends[count] = at, at + size
        at += size
        count += 1
    return count


@kernel
def cut_english(
    data: Array,
    start: int,
    end: int,
    classes: Array,
    rules: Array,
    begins: Array,
    starts: Array,
    ends: Array,
    tail: Array,
) -> int:
    """Writes where the words within data[start:end] begin and end; returns how many there are.

    Args:
        data: uint8, the UTF-8 buffer.
        start: first byte of a run without white space.
        end: behind its last byte.
        classes: the table `character_classes()`.
        rules: `rule_table(english_rules().rows)`.
        begins: `english_rules().begins`.
        starts: int64, written to; room for the run's bytes.
        ends: int64, written to.
        tail: int64, scratch; room for the run's bytes.
    """
    count = tails = 0
    number = _rule(data, start, end, rules, begins, False)
    if number < 0 and _all_letters(data, start, end):
        starts[0], ends[0] = start, end
        return 1
    bottom, whole = start, end
    while bottom < whole and number < 0:
        front = _prefix_end(data, bottom, whole, classes)
        if front > bottom:
            number = _rule(data, front, whole, rules, begins, False)
            if number >= 0:
                starts[count], ends[count] = bottom, front
                count, bottom = count + 1, front
                break
        back = _suffix_start(data, front, whole, classes, rules, begins)
        if back < whole:
            number = _rule(data, bottom, back, rules, begins, False)
            if number >= 0:
                tail[tails] = whole
                tails, whole = tails + 1, back
                break
        if front == bottom and back == whole:
            break
        if front > bottom:
            starts[count], ends[count] = bottom, front
            count, bottom = count + 1, front
        if back < whole:
            tail[tails] = whole
            tails, whole = tails + 1, back
        number = _rule(data, bottom, whole, rules, begins, False)
    if number >= 0:
        count = _cut_case(number, bottom, rules, starts, ends, count)
    elif bottom < whole:
        if _is_address(data, bottom, whole, classes):
            starts[count], ends[count] = bottom, whole
            count += 1
        else:
            count = _cut_inside(data, bottom, whole, classes, starts, ends, count)
    at = whole
    while tails > 0:
        tails -= 1
        starts[count], ends[count] = at, tail[tails]
        at = tail[tails]
        count += 1
    return _merged(data, rules, begins, starts, ends, tail, count) if count > 1 else count


@kernel
def _merged(
    data: Array,
    rules: Array,
    begins: Array,
    starts: Array,
    ends: Array,
    found: Array,
    count: int,
) -> int:
    """Puts cases in the place of neighbours that make them up, longest first."""
    found[:count] = -1
    merges = False
    for length in range(min(count, _MOST_PARTS), 1, -1):
        for i in range(count - length + 1):
            if found[i] != -1 or found[i + length - 1] != -1:
                continue
            number = _rule(data, starts[i], ends[i + length - 1], rules, begins, False)
            if number < 0 or rules[number, _PARTS] > length:
                continue
            merges = True
            found[i] = number
            found[i + 1 : i + length] = -2
    if not merges:
        return count
    kept = 0
    for i in range(count):
        if found[i] == -1:
            starts[kept], ends[kept] = starts[i], ends[i]
            kept += 1
        elif found[i] >= 0:
            kept = _cut_case(found[i], starts[i], rules, starts, ends, kept)
    return kept
