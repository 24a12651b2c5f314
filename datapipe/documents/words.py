"""Finer words than white space gives, worked out once for each distinct run of a split."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from datapipe.documents.english_words import cut_english
from datapipe.documents.kernels import Array, kernel
from datapipe.documents.split import Kinds, find_kind, slots_for, word_hash
from datapipe.documents.unicode_words import cut_unicode

__all__ = ["Cutter", "Words", "cut_words", "word_sequence"]


class Cutter(IntEnum):
    """What a word is."""

    UNICODE = 0
    """See `unicode_words`."""
    ENGLISH = 1
    """See `english_words`."""


class Words(NamedTuple):
    """The words within each kind of a split, by numbers of their own."""

    first: Array
    """int32 [kinds of the split + 1]: kind k has the words from first[k] to first[k + 1]."""
    word: Array
    """int32: which of `kinds` each is."""
    kinds: Kinds


@kernel
def cut_words(
    data: Array, kinds: Kinds, classes: Array, rules: Array, begins: Array, cutter: int
) -> Words:
    """Returns the Words within the Kinds of a split.

    Args:
        data: uint8, the UTF-8 buffer.
        kinds: those of the split.
        classes: the table `character_classes()`.
        rules: `rule_table(english_rules().rows)`.
        begins: `english_rules().begins`.
        cutter: a Cutter.
    """
    room, longest = 0, 1
    for kind in range(len(kinds.start)):
        room += kinds.num_chars[kind]
        longest = max(longest, kinds.num_bytes[kind])
    first = np.zeros(len(kinds.start) + 1, np.int32)
    word = np.empty(room, np.int32)
    start = np.empty(room, np.int64)
    num_bytes = np.empty(room, np.int32)
    num_chars = np.empty(room, np.int32)
    hashes = np.empty(room, np.uint64)
    scratch = np.empty((3, longest), np.int64)
    count, expected = -1, 2 * len(kinds.start) + 64
    while count < 0:  # more words than expected: again with a larger table
        count = _cut_all(
            *(data, kinds, classes, rules, begins, cutter),
            *(first, word, start, num_bytes, num_chars, hashes, slots_for(expected), scratch),
        )
        expected *= 4
    found = Kinds(start[:count], num_bytes[:count], num_chars[:count], hashes[:count])
    return Words(first, word[: first[-1]], found)


@kernel
def _cut_all(
    data: Array,
    kinds: Kinds,
    classes: Array,
    rules: Array,
    begins: Array,
    cutter: int,
    first: Array,
    word: Array,
    start: Array,
    num_bytes: Array,
    num_chars: Array,
    hashes: Array,
    slots: Array,
    scratch: Array,
) -> int:
    count = words = 0
    starts, ends, tail = scratch[0], scratch[1], scratch[2]
    for kind in range(len(kinds.start)):
        low = kinds.start[kind]
        high = low + kinds.num_bytes[kind]
        if cutter == Cutter.ENGLISH:
            parts = cut_english(data, low, high, classes, rules, begins, starts, ends, tail)
        else:
            parts = cut_unicode(data, low, high, classes, starts, ends)
        for part in range(parts):
            whole = parts == 1 and starts[0] == low and ends[0] == high
            size = ends[part] - starts[part]
            hashed = kinds.hash[kind] if whole else word_hash(data, starts[part], ends[part])
            found, slot = find_kind(
                data, slots, start, num_bytes, hashes, starts[part], size, hashed
            )
            if found < 0:
                found = count
                slots[slot] = count
                start[count], num_bytes[count], hashes[count] = starts[part], size, hashed
                chars = 0
                for i in range(starts[part], ends[part]):
                    chars += 1 if data[i] & 0xC0 != 0x80 else 0
                num_chars[count] = chars
                count += 1
                if 3 * count > 2 * len(slots):
                    return -1
            word[words] = found
            words += 1
        first[kind + 1] = words
    return count


@kernel
def word_sequence(
    doc_words: Array, word_kind: Array, first: Array, word: Array
) -> tuple[Array, Array]:
    """Returns the finer words of all documents in order, and where each document's begin.

    Returns:
        int32 [words], numbers of Words.kinds; int64 [documents + 1].
    """
    total = 0
    for i in range(len(word_kind)):
        total += first[word_kind[i] + 1] - first[word_kind[i]]
    sequence = np.empty(total, np.int32)
    starts = np.zeros(len(doc_words), np.int64)
    at = 0
    for document in range(len(doc_words) - 1):
        for i in range(doc_words[document], doc_words[document + 1]):
            for part in range(first[word_kind[i]], first[word_kind[i] + 1]):
                sequence[at] = word[part]
                at += 1
        starts[document + 1] = at
    return sequence, starts
