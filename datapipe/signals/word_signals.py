"""Signals from words one by one: their number, length, letters, signs and stop words."""

from __future__ import annotations

import numpy as np

from datapipe.documents.kernels import Array, kernel
from datapipe.documents.split import GAP_NOT_ONE_SPACE, GAP_PLAIN_SPACE, GAP_ROW, Split
from datapipe.signals.marks import (
    BULLET_TROVE,
    ENDS_DOTS,
    ENDS_ELLIPSIS,
    HAS_ALPHA,
    HAS_SYMBOL,
    HAS_WORD,
    IS_DOT,
    STARTS_ALNUM,
    STOP_FOLDED_SHIFT,
    STOP_SHIFT,
    Marks,
)

__all__ = ["english_signals", "plain_signals"]

_SPACED_DOTS = (0x2E, 0x20, 0x2E, 0x20, 0x2E)


@kernel
def _fraction(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


@kernel
def _bits_set(bits: int) -> int:
    count = 0
    while bits:
        count += bits & 1
        bits >>= 1
    return count


@kernel
def _spaced_ellipses(data: Array, start: int, end: int) -> int:
    """Returns how many ". . ." there are that don't overlap."""
    count, i = 0, start
    while i + len(_SPACED_DOTS) <= end:
        found = True
        for k in range(len(_SPACED_DOTS)):
            if data[i + k] != _SPACED_DOTS[k]:
                found = False
                break
        count += 1 if found else 0
        i += len(_SPACED_DOTS) if found else 1
    return count


@kernel
def _median(lengths: Array, words: int) -> float:
    """Returns the median word length from the numbers of words by length."""
    if words == 0:
        return 0.0
    low, high = (words - 1) // 2, words // 2
    seen, first = 0, -1
    for length in range(len(lengths)):
        seen += lengths[length]
        if first < 0 and seen > low:
            first = length
        if seen > high:
            return (first + length) / 2
    return 0.0


@kernel
def plain_signals(
    data: Array, offsets: Array, first: int, split: Split, marks: Marks, out: Array
) -> None:
    """Writes the signals of Family.PLAIN: a row a document, columns in their order."""
    longest = 0
    for kind in range(len(split.kinds.start)):
        longest = max(longest, split.kinds.num_chars[kind])
    lengths = np.zeros(longest + 1, np.int64)
    for document in range(len(split.doc_chars)):
        low, high = split.doc_words[document], split.doc_words[document + 1]
        words = high - low
        chars = alpha = symbols = stops = folded = counted = 0
        hashes = dots = ellipses = distinct = 0
        spaced = False
        top = 0
        for word in range(low, high):
            kind = split.word_kind[word]
            flags = marks.flags[kind]
            length = split.kinds.num_chars[kind]
            chars += length
            lengths[length] += 1
            top = max(top, length)
            alpha += 1 if flags & HAS_ALPHA else 0
            symbols += 1 if flags & HAS_SYMBOL else 0
            stops += 1 if (flags >> STOP_SHIFT) & 15 else 0
            number = (flags >> STOP_FOLDED_SHIFT) & 15
            if number:
                folded += 1
                distinct |= 1 << number
            hashes += marks.hashes[kind]
            dots += marks.dots[kind]
            ellipses += marks.ellipses[kind]
            counted += marks.counted[kind]
            if flags & STARTS_ALNUM and not split.word_gap[word] & GAP_PLAIN_SPACE:
                counted -= 1
            if flags & IS_DOT and not split.word_gap[word] & GAP_NOT_ONE_SPACE:
                spaced = True
        wide = 0
        if spaced:
            wide = _spaced_ellipses(data, offsets[first + document], offsets[first + document + 1])
        row = out[document]
        row[0], row[1] = words, chars
        row[2] = _fraction(chars, words)
        row[3] = _median(lengths[: top + 1], words)
        row[4] = _fraction(alpha, words)
        row[5] = _fraction(words - alpha, words)
        row[6] = _fraction(symbols, words)
        row[7], row[8], row[9] = stops, folded, _bits_set(distinct)
        row[10] = _fraction(hashes, words)
        row[11] = _fraction(dots + ellipses, words)
        row[12] = _fraction(hashes + dots + ellipses + wide, words)
        row[13] = counted
        lengths[: top + 1] = 0


@kernel
def english_signals(
    split: Split,
    marks: Marks,
    sequence: Array,
    starts: Array,
    chars: Array,
    english: Marks,
    out: Array,
) -> None:
    """Writes the signals of Family.TROVE.

    Args:
        split: the split.
        marks: of its kinds.
        sequence: int32, the English words.
        starts: int64 [documents + 1], where each document's begin.
        chars: int32, code points by kind of English word.
        english: marks of those kinds.
        out: float64, written to.
    """
    for document in range(len(split.doc_chars)):
        low, high = starts[document], starts[document + 1]
        alpha = plain = plain_chars = distinct = 0
        for word in range(low, high):
            kind = sequence[word]
            flags = english.flags[kind]
            alpha += 1 if flags & HAS_ALPHA else 0
            if flags & HAS_WORD:
                plain += 1
                plain_chars += chars[kind]
            number = (flags >> STOP_SHIFT) & 15
            if number:
                distinct |= 1 << number
        hashes = ellipses = bullets = trailing = 0
        for word in range(split.doc_words[document], split.doc_words[document + 1]):
            kind = split.word_kind[word]
            hashes += marks.hashes[kind]
            ellipses += marks.dots[kind] + marks.ellipses[kind]
            ends_row = word + 1 == split.doc_words[document + 1]
            ends_row = ends_row or split.word_gap[word + 1] & GAP_ROW != 0
            if ends_row and marks.flags[kind] & (ENDS_DOTS | ENDS_ELLIPSIS):
                trailing += 1
            if split.word_gap[word] & GAP_ROW and marks.flags[kind] & BULLET_TROVE:
                bullets += 1
        row = out[document]
        row[0], row[1] = high - low, plain
        row[2] = _fraction(plain_chars, plain)
        row[3], row[4] = _fraction(hashes, high - low), _fraction(ellipses, high - low)
        row[5] = _fraction(bullets, split.doc_rows[document])
        row[6] = _fraction(trailing, split.doc_rows[document])
        row[7] = _fraction(alpha, high - low)
        row[8] = _bits_set(distinct)
