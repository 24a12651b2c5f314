"""Words of every script: Unicode's default word boundaries, without what isn't a word.

A word is what UAX #29 leaves together if it begins with a letter or digit: letters with their
marks, numbers with the signs inside them ("3.14"), "can't", "e.g". Where scripts write no spaces,
Han ideographs and Hiragana are a word each, Katakana a word a run, and Thai, Lao, Khmer, Myanmar
and their kin a word a letter with its marks. White space always ends a word. The classes are
worked out from general categories: this is the annex without its emoji rules.
"""

from __future__ import annotations

import numpy as np

from datapipe.documents.characters import (
    ALNUM,
    WB_EXTEND,
    WB_JOIN,
    WB_KATAKANA,
    WB_LETTER,
    WB_MID_BOTH,
    WB_MID_LETTER,
    WB_MID_NUMBER,
    WB_NUMBER,
    WB_SHIFT,
)
from datapipe.documents.kernels import Array, Integer, kernel
from datapipe.documents.split import code_point_at

__all__ = ["cut_unicode"]


@kernel
def _next_class(data: Array, i: int, end: int, classes: Array) -> Integer:
    """Returns the class of the next character that isn't a mark, -1 at the end."""
    while i < end:
        c, i = code_point_at(data, i)
        found = classes[c] >> WB_SHIFT
        if found != WB_EXTEND:
            return np.int64(found)
    return -1


@kernel
def _joined(before: int, here: int, behind: int, between: int) -> bool:
    """Tells whether no word ends between the classes `before` and `here`.

    Args:
        before: class of the character in front.
        here: class of the character behind.
        behind: class of the next one.
        between: class of the one in front of `before`.
    """
    letters = before == WB_LETTER
    numbers = before == WB_NUMBER
    if (letters or numbers) and (here in (WB_LETTER, WB_NUMBER)):
        return True
    if here == WB_JOIN:
        return letters or numbers or before in (WB_KATAKANA, WB_JOIN)
    if before == WB_JOIN:
        return here in (WB_LETTER, WB_NUMBER, WB_KATAKANA)
    if before == WB_KATAKANA:
        return here == WB_KATAKANA
    if letters and (here in (WB_MID_LETTER, WB_MID_BOTH)):
        return behind == WB_LETTER
    if numbers and (here in (WB_MID_NUMBER, WB_MID_BOTH)):
        return behind == WB_NUMBER
    if here == WB_LETTER and between == WB_LETTER:
        return before in (WB_MID_LETTER, WB_MID_BOTH)
    if here == WB_NUMBER and between == WB_NUMBER:
        return before in (WB_MID_NUMBER, WB_MID_BOTH)
    return False


@kernel
def cut_unicode(
    data: Array, start: int, end: int, classes: Array, starts: Array, ends: Array
) -> int:
    """Writes where the words within data[start:end] begin and end; returns how many there are.

    Args:
        data: uint8, the UTF-8 buffer.
        start: first byte of a run without white space.
        end: behind its last byte.
        classes: the table `character_classes()`.
        starts: int64, written to.
        ends: int64, written to.
    """
    count = 0
    word, i = start, start
    before: Integer = -1
    between: Integer = -1
    kept = False
    while i < end:
        at = i
        c, i = code_point_at(data, i)
        here: Integer = np.int64(classes[c] >> WB_SHIFT)
        if at == start:
            before, kept = here, classes[c] & ALNUM != 0
            continue
        if here == WB_EXTEND:
            continue
        middle = here in (WB_MID_LETTER, WB_MID_BOTH, WB_MID_NUMBER)
        behind = _next_class(data, i, end, classes) if middle else -1
        if not _joined(before, here, behind, between):
            if kept:
                starts[count], ends[count] = word, at
                count += 1
            word, kept = at, classes[c] & ALNUM != 0
            between = -1
        else:
            between = before
        before = here
    if kept:
        starts[count], ends[count] = word, end
        count += 1
    return count
