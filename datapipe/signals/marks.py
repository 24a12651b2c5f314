"""What there is to know of a word alone: worked out once for each distinct word."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from datapipe.documents.characters import (
    ALNUM,
    ALPHA,
    PUNCTUATION,
    SENTENCE_END,
    TERMINAL,
    TROVE_PUNCTUATION,
)
from datapipe.documents.kernels import Array, Integer, kernel
from datapipe.documents.split import code_point_at

__all__ = [
    "BULLET_DCLM",
    "BULLET_TROVE",
    "ENDS_DOTS",
    "ENDS_ELLIPSIS",
    "ENDS_TERMINAL",
    "HAS_ALPHA",
    "HAS_SYMBOL",
    "HAS_WORD",
    "IS_DOT",
    "IS_PUNCTUATION",
    "IS_SENTENCE_END",
    "STARTS_ALNUM",
    "STOP_FOLDED_SHIFT",
    "STOP_SHIFT",
    "Marks",
    "mark_words",
]


HAS_ALPHA = 1
HAS_WORD = 1 << 1
"""A character outside of datatrove's punctuation."""
HAS_SYMBOL = 1 << 2
"""A hash or an ellipsis."""
BULLET_TROVE = 1 << 3
BULLET_DCLM = 1 << 4
ENDS_DOTS = 1 << 5
ENDS_ELLIPSIS = 1 << 6
ENDS_TERMINAL = 1 << 7
IS_SENTENCE_END = 1 << 8
IS_PUNCTUATION = 1 << 9
STARTS_ALNUM = 1 << 10
IS_DOT = 1 << 11
STOP_SHIFT = 16
"""From this bit on: number of the stop word, from 1; upper and lower case differ."""
STOP_FOLDED_SHIFT = 20
"""From this bit on: the same without regard to case."""

_HASH, _DOT, _ELLIPSIS, _BULLET, _DISC = 0x23, 0x2E, 0x2026, 0x2022, 0x25CF
_DASH, _STAR, _CASE = 0x2D, 0x2A, 0x20
# the be to of and that have with: each as its bytes, first one highest
_STOP_WORDS = (0x746865, 0x6265, 0x746F, 0x6F66, 0x616E64, 0x74686174, 0x68617665, 0x77697468)


class Marks(NamedTuple):
    """The marks of words, by the numbers of their kinds."""

    flags: Array
    """uint32: the bits above."""
    hashes: Array
    """int32: how many "#"."""
    dots: Array
    """int32: how many "..." that don't overlap."""
    ellipses: Array
    """int32."""
    counted: Array
    """int32: stretches between NUL characters that begin with a letter or digit."""


@kernel
def mark_words(data: Array, start: Array, num_bytes: Array, classes: Array) -> Marks:
    """Returns the Marks of the words data[start:start + num_bytes].

    Args:
        data: uint8, the UTF-8 buffer.
        start: int64.
        num_bytes: int32.
        classes: the table `character_classes()`.
    """
    count = len(start)
    flags = np.empty(count, np.uint32)
    hashes = np.zeros(count, np.int32)
    dots = np.zeros(count, np.int32)
    ellipses = np.zeros(count, np.int32)
    counted = np.zeros(count, np.int32)
    for word in range(count):
        i, end = start[word], start[word] + num_bytes[word]
        any_bits: Integer = np.uint32(0)
        all_bits: Integer = ~np.uint32(0)
        outside = False
        run, last, first = 0, 0, 0
        while i < end:
            at_start = i == start[word]
            c, i = code_point_at(data, i)
            bits = classes[c]
            any_bits |= bits
            all_bits &= bits
            outside = outside or bits & TROVE_PUNCTUATION == 0
            if (at_start or last == 0) and bits & ALNUM:
                counted[word] += 1
            if at_start:
                first = c
            if c == _HASH:
                hashes[word] += 1
            elif c == _ELLIPSIS:
                ellipses[word] += 1
            run = run + 1 if c == _DOT else 0
            if run == 3:
                dots[word] += 1
                run = 0
            last = c
        flag = np.uint32(0)
        if any_bits & ALPHA:
            flag |= HAS_ALPHA
        if outside:
            flag |= HAS_WORD
        if hashes[word] or ellipses[word]:
            flag |= HAS_SYMBOL
        if first in (_BULLET, _DASH):
            flag |= BULLET_TROVE
        if first in (_BULLET, _DASH, _DISC, _STAR):
            flag |= BULLET_DCLM
        if last == _ELLIPSIS:
            flag |= ENDS_ELLIPSIS
        elif last == _DOT and num_bytes[word] >= 3 and data[end - 2] == data[end - 3] == _DOT:
            flag |= ENDS_DOTS
        if classes[last] & TERMINAL:
            flag |= ENDS_TERMINAL
        if first == last and num_bytes[word] <= 4 and all_bits & SENTENCE_END:
            _single, after = code_point_at(data, start[word])
            if after == end:
                flag |= IS_SENTENCE_END
        if all_bits & PUNCTUATION:
            flag |= IS_PUNCTUATION
        if classes[first] & ALNUM:
            flag |= STARTS_ALNUM
        if num_bytes[word] == 1 and first == _DOT:
            flag |= IS_DOT
        flags[word] = flag | _stop_bits(data, start[word], num_bytes[word])
    return Marks(flags, hashes, dots, ellipses, counted)


@kernel
def _stop_bits(data: Array, start: int, num_bytes: int) -> np.uint32:
    if num_bytes < 2 or num_bytes > 4:
        return np.uint32(0)
    packed: Integer = 0
    folded: Integer = 0
    for i in range(start, start + num_bytes):
        b: Integer = np.int64(data[i])
        packed = (packed << 8) | b
        folded = (folded << 8) | (b | _CASE if 0x41 <= b <= 0x5A else b)
    bits = np.uint32(0)
    for number in range(len(_STOP_WORDS)):
        if packed == _STOP_WORDS[number]:
            bits |= np.uint32((number + 1) << STOP_SHIFT)
        if folded == _STOP_WORDS[number]:
            bits |= np.uint32((number + 1) << STOP_FOLDED_SHIFT)
    return bits
