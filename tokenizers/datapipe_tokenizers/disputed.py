"""Code points that libraries read differently, since each has its own version of Unicode's tables.

gigatoken 0.10 knows Unicode 17; tiktoken 0.14 and the pre-tokenizers of Hugging Face's tokenizers
0.23 know 16, its normalizers 9 (all seen by encoding every code point with both libraries). A text
that has such a code point is the reference's to encode.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["DISPUTED", "disputed_rows"]

_NEW = (
    *((0x88F, 0x88F), (0xC5C, 0xC5C), (0xCDC, 0xCDC), (0x1ACF, 0x1ADD), (0x1AE0, 0x1AEB)),
    *((0x20C1, 0x20C1), (0x2B96, 0x2B96), (0xA7CE, 0xA7CF), (0xA7D2, 0xA7D2), (0xA7D4, 0xA7D4)),
    *((0xA7F1, 0xA7F1), (0xFBC3, 0xFBD2), (0xFD90, 0xFD91), (0xFDC8, 0xFDCE)),
    *((0x10940, 0x10959), (0x10EC5, 0x10EC7), (0x10ED0, 0x10ED8), (0x10EFA, 0x10EFB)),
    *((0x11B60, 0x11B67), (0x11DB0, 0x11DDB), (0x11DE0, 0x11DE9), (0x16EA0, 0x16EB8)),
    *((0x16EBB, 0x16ED3), (0x16FF2, 0x16FF6), (0x187F8, 0x187FF), (0x18D09, 0x18D1E)),
    *((0x18D80, 0x18DF2), (0x1CCFA, 0x1CCFC), (0x1CEBA, 0x1CED0), (0x1CEE0, 0x1CEF0)),
    *((0x1E6C0, 0x1E6DE), (0x1E6E0, 0x1E6F5), (0x1E6FE, 0x1E6FF), (0x1F6D8, 0x1F6D8)),
    *((0x1F777, 0x1F77A), (0x1F8D0, 0x1F8D8), (0x1FA54, 0x1FA57), (0x1FA8A, 0x1FA8A)),
    *((0x1FA8E, 0x1FA8E), (0x1FAC8, 0x1FAC8), (0x1FACD, 0x1FACD), (0x1FAEA, 0x1FAEA)),
    *((0x1FAEF, 0x1FAEF), (0x1FBFA, 0x1FBFA), (0x2B73A, 0x2B73F), (0x2CEA2, 0x2CEAD)),
    *((0x323B0, 0x33479),),
)
"""First and last of the ranges that are new in Unicode 17: they split words otherwise."""

_COMBINING = (
    *((0x7FD, 0x7FD), (0x897, 0x89F), (0x8CA, 0x8D3), (0x9FE, 0x9FE), (0xC3C, 0xC3C)),
    *((0xD3B, 0xD3C), (0xEBA, 0xEBA), (0x1715, 0x1715), (0x1ABF, 0x1ACE), (0x1DF6, 0x1DFA)),
    *((0xA82C, 0xA82C), (0x105C9, 0x105C9), (0x105D2, 0x105D2), (0x105DA, 0x105DA)),
    *((0x105E4, 0x105E4), (0x10D24, 0x10D27), (0x10D69, 0x10D6D), (0x10EAB, 0x10EAC)),
    *((0x10EFD, 0x10EFF), (0x10F46, 0x10F50), (0x10F82, 0x10F85), (0x11070, 0x11070)),
    *((0x1133B, 0x1133B), (0x11380, 0x113D5), (0x1145E, 0x1145E), (0x11839, 0x1183A)),
    *((0x11930, 0x11938), (0x1193D, 0x1193E), (0x11943, 0x11943), (0x119E0, 0x119E0)),
    *((0x11A34, 0x11A34), (0x11A47, 0x11A47), (0x11A99, 0x11A99), (0x11D42, 0x11D42)),
    *((0x11D44, 0x11D45), (0x11D97, 0x11D97), (0x11F41, 0x11F42), (0x16100, 0x1613F)),
    *((0x16D40, 0x16D7F), (0x16FF0, 0x16FF1), (0x1E08F, 0x1E08F), (0x1E130, 0x1E136)),
    *((0x1E2AE, 0x1E2AE), (0x1E2EC, 0x1E2EF), (0x1E4EC, 0x1E4EF), (0x1E5EE, 0x1E5EF)),
)
"""New or changed since Unicode 9, and combined or put in order by NFC."""

DISPUTED = tuple(sorted(_NEW + _COMBINING))

_PART_BYTES = 1 << 17  # stays in a core's cache from one comparison to the next

_MANY = 64  # a kind of one byte in so many is cheaper to rule out than to look at

_SAMPLE_BYTES = 2048

_PLAIN = (
    ((0xE3, 0xE9), (0x80, 0xBF)),  # kana, ideographs
    ((0xEB, 0xED), (0x80, 0xBF)),  # Hangul
    ((0xEA, 0xEA), (0xB0, 0xBF)),  # Hangul
    ((0xE2, 0xE2), (0x80, 0x82)),  # dashes, quotation marks
    ((0xEF, 0xEF), (0xBB, 0xBE)),  # full-width forms
    ((0xE0, 0xE0), (0xA4, 0xA6)),  # Devanagari
    ((0xE0, 0xE0), (0xB8, 0xB9)),  # Thai
    ((0xE1, 0xE1), (0xB8, 0xBF)),  # Vietnamese, polytonic Greek
    ((0xE1, 0xE1), (0x80, 0x83)),  # Burmese, Georgian
)
"""Ranges of the first and the second byte between which no code point is disputed."""

_Rule: TypeAlias = tuple[tuple[int, int], tuple[int, int]]

_PATTERN = "[" + "".join(f"\\x{{{low:X}}}-\\x{{{high:X}}}" for low, high in DISPUTED) + "]"


def disputed_rows(texts: pa.LargeStringArray) -> npt.NDArray[np.int64]:
    """Returns which texts have such a code point, ascending.

    Most text is ruled out by a few comparisons of whole parts (10-20 GB/s where it is ASCII, 2-4
    GB/s where it isn't); what is left is looked up by its first three bytes in UTF-8, and then in
    the texts that have them.
    """
    _, offsets, characters = texts.buffers()
    if characters is None or not len(texts):
        return np.empty(0, dtype=np.int64)
    starts = np.frombuffer(offsets, np.int64, count=len(texts) + 1, offset=8 * texts.offset)
    data = np.frombuffer(characters, np.uint8)[starts[0] : starts[-1]]
    rules = _worthwhile(data)
    parts = [_places(data, begin, rules) for begin in range(0, len(data), _PART_BYTES)]
    places = np.concatenate([np.empty(0, np.int64), *parts])
    rows: npt.NDArray[np.int64] = np.searchsorted(starts - starts[0], places, side="right") - 1
    return _confirmed(texts, np.unique(rows))


def _confirmed(texts: pa.LargeStringArray, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    if not len(rows):
        return rows
    found = pc.match_substring_regex(texts.take(pa.array(rows)), _PATTERN)
    kept: npt.NDArray[np.int64] = rows[found.to_numpy(zero_copy_only=False)]
    return kept


def _places(
    data: npt.NDArray[np.uint8], begin: int, rules: Sequence[_Rule]
) -> npt.NDArray[np.int64]:
    """Returns where a part of `data` has what may be such a code point."""
    places = _candidates(data, begin, rules)
    if not len(places):
        return places
    words = (data[places] - _LEADS[0]).astype(np.uint32) << 16
    for shift in (1, 0):  # a text may end behind a code point of two bytes, whose third is free
        following = data[np.minimum(places + 2 - shift, len(data) - 1)]
        words |= following.astype(np.uint32) << 8 * shift
    found: npt.NDArray[np.int64] = places[_table()[words]]
    return found


def _candidates(
    data: npt.NDArray[np.uint8], begin: int, rules: Sequence[_Rule]
) -> npt.NDArray[np.int64]:
    """Returns where a part of `data` has the first byte of one and no rule says that it is none."""
    first = data[begin : begin + _PART_BYTES]
    if first.max() < _LEADS[0]:
        return np.empty(0, dtype=np.int64)
    maybe = first >= _LEADS[0]
    second = data[begin + 1 : begin + 1 + len(first)]
    for rule in rules:
        maybe[: len(second)] &= ~_follows(rule, first[: len(second)], second)
    places = np.flatnonzero(maybe) + begin
    kept: npt.NDArray[np.int64] = places[data[places] <= _LEADS[-1]]
    return kept


def _worthwhile(data: npt.NDArray[np.uint8]) -> list[_Rule]:
    """Returns the rules of _PLAIN that say something of many bytes, seen in a sample."""
    step = max(len(data) // _SAMPLE_BYTES, 1)
    first, second = data[:-1:step], data[1::step]
    return [
        rule
        for rule in _PLAIN
        if np.count_nonzero(_follows(rule, first, second)) * _MANY > len(first)
    ]


def _follows(
    rule: _Rule, first: npt.NDArray[np.uint8], second: npt.NDArray[np.uint8]
) -> npt.NDArray[np.bool_]:
    held = _within(rule[0], first)
    if rule[1] != (0x80, 0xBF):  # what follows a first byte always is
        held &= _within(rule[1], second)
    return held


def _within(bounds: tuple[int, int], data: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    low, high = bounds
    # Bytes below `low` wrap round to large ones.
    held: npt.NDArray[np.bool_] = data == low if low == high else data - np.uint8(low) <= high - low
    return held


_LEADS = np.unique(np.array([chr(low).encode()[0] for low, _ in DISPUTED], dtype=np.uint8))
"""First bytes that such a code point can have in UTF-8."""


@cache
def _table() -> npt.NDArray[np.bool_]:
    """(first - _LEADS[0]) << 16 | second << 8 | third -> whether such a code point begins so."""
    lowest, highest = int(_LEADS[0]), int(_LEADS[-1])
    table = np.zeros((highest - lowest + 1) << 16, dtype=np.bool_)
    for low, high in DISPUTED:
        for code in range(low, high + 1):
            first, second, *rest = chr(code).encode()
            word = (first - lowest) << 16 | second << 8
            table[word + rest[0] if rest else slice(word, word + 256)] = True
    return table
