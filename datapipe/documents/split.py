"""The one split: the words and lines of many documents, straight from the Arrow buffers.

A word is a run of characters that aren't white space, exactly as `str.split()` has it; finer words
(`datapipe.documents.words`) are cut out of these. Lines are what stands between "\\n"; rows what
`str.splitlines` gives. Equal words have one number, their kind: whatever depends on a word alone is
worked out once for a kind, not once for a word. Kinds are exact: hashes only find the place to
look at, and the bytes are compared where 64 bits don't hold the word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from datapipe.documents.characters import ROW_END, SPACE
from datapipe.documents.kernels import Array, Integer, kernel

__all__ = [
    "GAP_LINE",
    "GAP_NOT_ONE_SPACE",
    "GAP_PLAIN_SPACE",
    "GAP_ROW",
    "Kinds",
    "Split",
    "code_point_at",
    "find_kind",
    "same_bytes",
    "slots_for",
    "split_texts",
    "text_buffers",
    "word_hash",
]


GAP_ROW = 1
"""A row ends in front of the word, or it is the document's first."""
GAP_LINE = 2
"""A line ends in front of the word, or it is the document's first."""
GAP_NOT_ONE_SPACE = 4
"""What stands in front of the word isn't exactly one space."""
GAP_PLAIN_SPACE = 8
"""Right in front is a space, tab, line feed, vertical tab, form feed or return, or nothing."""

_SEED = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_EXACT_BYTES = 8


class Kinds(NamedTuple):
    """Distinct words, each by one place where it stands."""

    start: Array
    """int64: where it stands in the text buffer."""
    num_bytes: Array
    """int32."""
    num_chars: Array
    """int32: code points."""
    hash: Array
    """uint64."""


class Split(NamedTuple):
    """Words and lines of a run of documents; positions are bytes in the text buffer."""

    doc_words: Array
    """int64 [documents + 1]: document d has the words from doc_words[d] to doc_words[d + 1]."""
    doc_lines: Array
    """int64 [documents + 1], as doc_words."""
    doc_chars: Array
    """int64 [documents]: code points."""
    doc_rows: Array
    """int64 [documents]."""
    word_kind: Array
    """int32: which of `kinds` a word is."""
    word_start: Array
    """int64."""
    word_gap: Array
    """uint8: GAP bits."""
    line_start: Array
    """int64."""
    line_end: Array
    """int64: without the line feed."""
    line_word: Array
    """int64 [lines + 1]: the first word at or behind its start."""
    line_chars: Array
    """int32: code points without the line feed."""
    kinds: Kinds


def text_buffers(texts: pa.Array) -> tuple[Array, Array]:
    """Returns the UTF-8 bytes and the offsets (int64) of a large_string array, not copied."""
    if not len(texts):
        return np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int64, len(texts) + 1, texts.offset * 8)
    values = (
        np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    )
    return values, starts


@kernel
def code_point_at(data: Array, i: int) -> tuple[Integer, Integer]:
    """Returns the code point that begins at byte i, and where the next one begins."""
    b: Integer = np.int64(data[i])
    if b < 0x80:
        return b, i + 1
    if b < 0xE0:
        return ((b & 0x1F) << 6) | (data[i + 1] & 0x3F), i + 2
    if b < 0xF0:
        c = ((b & 0x0F) << 12) | (np.int64(data[i + 1] & 0x3F) << 6) | (data[i + 2] & 0x3F)
        return c, i + 3
    c = ((b & 0x07) << 18) | (np.int64(data[i + 1] & 0x3F) << 12)
    return c | (np.int64(data[i + 2] & 0x3F) << 6) | (data[i + 3] & 0x3F), i + 4


@kernel
def same_bytes(data: Array, a: int, b: int, count: int) -> bool:
    """Tells whether the `count` bytes at a and at b are equal."""
    for i in range(count):  # noqa: SIM110, generators don't compile
        if data[a + i] != data[b + i]:
            return False
    return True


@kernel
def _folded(state: np.uint64, packed: np.uint64) -> np.uint64:
    mixed = (state ^ packed) * _FACTOR
    return mixed ^ (mixed >> np.uint64(32))


@kernel
def word_hash(data: Array, start: int, end: int) -> np.uint64:
    """Returns the hash of a word's bytes: one to one for words of a length up to 8 bytes."""
    state, packed = _SEED, np.uint64(0)
    for i in range(start, end):
        packed = (packed << np.uint64(8)) | np.uint64(data[i])
        if (i + 1 - start) & 7 == 0:
            state = _folded(state, packed)
            packed = np.uint64(0)
    return _folded(state, packed)


@kernel
def find_kind(
    data: Array,
    slots: Array,
    kinds_start: Array,
    kinds_bytes: Array,
    kinds_hash: Array,
    start: int,
    count: int,
    hashed: np.uint64,
) -> tuple[Integer, Integer]:
    """Returns the kind of a word, -1 if there is none yet, and its slot (or the free one)."""
    mask = len(slots) - 1
    slot = np.int64(hashed & np.uint64(mask))
    while True:
        kind = slots[slot]
        if kind < 0:
            return -1, slot
        alike = kinds_hash[kind] == hashed and kinds_bytes[kind] == count
        if alike and (count <= _EXACT_BYTES or same_bytes(data, kinds_start[kind], start, count)):
            return kind, slot
        slot = (slot + 1) & mask


@kernel
def slots_for(count: int) -> Array:
    """Returns an empty table that finds up to `count` kinds."""
    size = 64
    while 2 * size < 3 * count:
        size *= 2
    return np.full(size, -1, np.int32)


@kernel
def split_texts(data: Array, offsets: Array, first: int, last: int, classes: Array) -> Split:
    """Returns the Split of the documents from `first` to `last`, numbered from 0.

    Args:
        data: uint8, the UTF-8 buffer.
        offsets: int64, as Arrow has them.
        first: number of the first document.
        last: number behind the last one.
        classes: the table `character_classes()`.
    """
    documents = last - first
    num_words, num_lines = _counted(data, offsets, first, last, classes)
    doc_words = np.zeros(documents + 1, np.int64)
    doc_lines = np.zeros(documents + 1, np.int64)
    doc_chars = np.zeros(documents, np.int64)
    doc_rows = np.zeros(documents, np.int64)
    word_kind = np.empty(num_words, np.int32)
    word_start = np.empty(num_words, np.int64)
    word_gap = np.empty(num_words, np.uint8)
    line_start = np.empty(num_lines, np.int64)
    line_end = np.empty(num_lines, np.int64)
    line_word = np.empty(num_lines + 1, np.int64)
    line_chars = np.empty(num_lines, np.int32)
    kind_start = np.empty(num_words, np.int64)
    kind_bytes = np.empty(num_words, np.int32)
    kind_chars = np.empty(num_words, np.int32)
    kind_hash = np.empty(num_words, np.uint64)
    slots = slots_for(num_words)
    kinds = _filled(
        *(data, offsets, first, last, classes, doc_words, doc_lines, doc_chars, doc_rows),
        *(word_kind, word_start, word_gap, line_start, line_end, line_word, line_chars),
        *(kind_start, kind_bytes, kind_chars, kind_hash, slots),
    )
    return Split(
        doc_words,
        doc_lines,
        doc_chars,
        doc_rows,
        word_kind,
        word_start,
        word_gap,
        line_start,
        line_end,
        line_word,
        line_chars,
        Kinds(kind_start[:kinds], kind_bytes[:kinds], kind_chars[:kinds], kind_hash[:kinds]),
    )


@kernel
def _counted(
    data: Array, offsets: Array, first: int, last: int, classes: Array
) -> tuple[Integer, Integer]:
    """Returns how many words and lines there are."""
    words = 0
    lines = last - first
    for document in range(first, last):
        i, end = offsets[document], offsets[document + 1]
        inside = False
        while i < end:
            b = data[i]
            if b < 0x80:
                space = classes[b] & SPACE != 0
                i += 1
            elif b == 0xC2 or 0xE1 <= b <= 0xE3:
                c, i = code_point_at(data, i)
                space = classes[c] & SPACE != 0
            else:
                space = False
                i += 1
            if space:
                lines += 1 if b == 10 else 0
            elif not inside:
                words += 1
            inside = not space
    return words, lines


# Arrays that are never assigned anew cost no reference counts, so this gets them ready made.
@kernel
def _filled(
    data: Array,
    offsets: Array,
    first: int,
    last: int,
    classes: Array,
    doc_words: Array,
    doc_lines: Array,
    doc_chars: Array,
    doc_rows: Array,
    word_kind: Array,
    word_start: Array,
    word_gap: Array,
    line_start: Array,
    line_end: Array,
    line_word: Array,
    line_chars: Array,
    kind_start: Array,
    kind_bytes: Array,
    kind_chars: Array,
    kind_hash: Array,
    slots: Array,
) -> int:
    """Fills the arrays of a Split; returns the number of kinds."""
    words = lines = kinds = 0
    for document in range(last - first):
        i, end = offsets[first + document], offsets[first + document + 1]
        gap = GAP_ROW | GAP_LINE | GAP_NOT_ONE_SPACE | GAP_PLAIN_SPACE
        gap_chars, chars, rows = 0, 0, 0
        line_from, line_from_chars = i, 0
        line_word[lines] = words
        row_ended, returned = True, False
        while i < end:
            b = data[i]
            c: Integer = np.int64(b)
            after: Integer = i + 1
            if b >= 0x80:
                c, after = code_point_at(data, i)
            if classes[c] & SPACE:
                chars += 1
                gap_chars += 1
                if c != 32 or gap_chars > 1:
                    gap |= GAP_NOT_ONE_SPACE
                gap &= ~GAP_PLAIN_SPACE
                if c == 32 or 9 <= c <= 13:
                    gap |= GAP_PLAIN_SPACE
                row_ended = classes[c] & ROW_END != 0
                if row_ended:
                    gap |= GAP_ROW
                    rows += 0 if c == 10 and returned else 1
                    if c == 10:
                        gap |= GAP_LINE
                        line_start[lines], line_end[lines] = line_from, i
                        line_chars[lines] = chars - 1 - line_from_chars
                        lines += 1
                        line_word[lines] = words
                        line_from, line_from_chars = after, chars
                returned = c == 13
                i = after
                continue
            start, state, packed = i, _SEED, np.uint64(0)
            count = word_chars = 0
            while True:
                packed = (packed << np.uint64(8)) | np.uint64(b)
                count += 1
                word_chars += 1 if b & 0xC0 != 0x80 else 0
                if count & 7 == 0:
                    state = _folded(state, packed)
                    packed = np.uint64(0)
                i += 1
                if i >= end:
                    break
                b = data[i]
                if b < 0x80:
                    if classes[b] & SPACE:
                        break
                elif b == 0xC2 or 0xE1 <= b <= 0xE3:
                    c, after = code_point_at(data, i)
                    if classes[c] & SPACE:
                        break
            hashed = _folded(state, packed)
            kind, slot = find_kind(
                data, slots, kind_start, kind_bytes, kind_hash, start, count, hashed
            )
            if kind < 0:
                kind = kinds
                kinds += 1
                kind_start[kind], kind_bytes[kind] = start, count
                kind_chars[kind], kind_hash[kind] = word_chars, hashed
                slots[slot] = kind
            word_kind[words], word_start[words], word_gap[words] = kind, start, gap
            words += 1
            chars += word_chars
            gap, gap_chars = 0, 0
            row_ended, returned = False, False
        line_start[lines], line_end[lines] = line_from, end
        line_chars[lines] = chars - line_from_chars
        lines += 1
        doc_words[document + 1], doc_lines[document + 1] = words, lines
        doc_chars[document] = chars
        doc_rows[document] = rows + (0 if row_ended else 1)
    line_word[lines] = words
    return kinds
