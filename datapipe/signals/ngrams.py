"""How much of a document is n-grams of words that repeat, for n from 2 to 10, exactly.

An n-gram can only repeat if both (n-1)-grams in it do, and two of those, by their numbers, are the
n-gram: so only positions that repeated before are looked at again, keys are two numbers, and
nothing can collide. Tables are stamped with a generation instead of being cleared.
"""

from __future__ import annotations

import numpy as np

from datapipe.documents.kernels import Array, Integer, kernel

__all__ = [
    "DUP_CHARS",
    "MOST_WORDS",
    "NUM_RESULTS",
    "OCCURRENCE_CHARS",
    "TOP_CHARS",
    "TOP_COUNT",
    "TOP_LONGEST_CHARS",
    "repeated_ngrams",
    "shifted_ngrams",
]

MOST_WORDS = 10
TOP_COUNT, TOP_CHARS, TOP_LONGEST_CHARS, OCCURRENCE_CHARS, DUP_CHARS = range(5)
NUM_RESULTS = 5
WINDOW = 8

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_BASE = np.uint64(0xC2B2AE3D27D4EB4F)


@kernel
def repeated_ngrams(sequence: Array, doc_words: Array, kind_chars: Array) -> Array:
    """Returns what repeats in each document.

    Args:
        sequence: int32, the words as numbers of kinds.
        doc_words: int64 [documents + 1], where each document's words begin.
        kind_chars: int32, code points by kind.

    Returns:
        float64 [documents, 11, 5]: for n, how often the most frequent n-gram occurs (1 if none
        repeats, 0 if there is none); the code points of the words of it, the first one if several
        are as frequent; of the longest of those; the code points of all occurrences of n-grams
        that occur more than once; of the words that such an occurrence covers.
    """
    documents = len(doc_words) - 1
    most = 0
    for document in range(documents):
        most = max(most, doc_words[document + 1] - doc_words[document])
    size = 16
    while size < 2 * most:
        size *= 2
    results = np.zeros((documents, MOST_WORDS + 1, NUM_RESULTS), np.float64)
    stamp = np.full(len(kind_chars), -1, np.int32)
    occurrences = np.zeros(len(kind_chars), np.int32)
    keys = np.empty(size, np.uint64)
    values = np.empty(size, np.int32)
    marks = np.full(size, -1, np.int32)
    chars = np.empty(most + 1, np.int64)
    ids = np.empty((2, most + 1), np.int32)
    counts = np.empty((2, most + 1), np.int32)
    firsts = np.empty(most + 1, np.int32)
    places = np.empty(most + 1, np.int32)
    _all_documents(
        *(sequence, doc_words, kind_chars, results, stamp, occurrences),
        *(keys, values, marks, chars, ids, counts, firsts, places),
    )
    return results


@kernel
def _all_documents(
    sequence: Array,
    doc_words: Array,
    kind_chars: Array,
    results: Array,
    stamp: Array,
    occurrences: Array,
    keys: Array,
    values: Array,
    marks: Array,
    chars: Array,
    ids: Array,
    counts: Array,
    firsts: Array,
    places: Array,
) -> None:
    generation = 0
    for document in range(len(doc_words) - 1):
        low = doc_words[document]
        words = doc_words[document + 1] - low
        chars[0] = 0
        for i in range(words):
            kind = sequence[low + i]
            chars[i + 1] = chars[i] + kind_chars[kind]
            if stamp[kind] != document:
                stamp[kind], occurrences[kind] = document, 0
            occurrences[kind] += 1
        old = 0
        left = 0
        for i in range(words):
            kind = sequence[low + i]
            repeats = occurrences[kind] > 1
            ids[0, i] = kind if repeats else -1
            ids[1, i] = -1
            if repeats:
                places[left] = i
                left += 1
        ids[0, words] = ids[1, words] = -1
        for n in range(2, MOST_WORDS + 1):
            new = 1 - old
            found = _numbered(
                ids[old],
                ids[new],
                counts[new],
                firsts,
                places,
                left,
                keys,
                values,
                marks,
                generation,
            )
            generation += 1
            left = _summed(
                results[document, n],
                n,
                words,
                ids[new],
                counts[new],
                firsts,
                places,
                left,
                found,
                chars,
            )
            old = new


@kernel
def _numbered(
    ids: Array,
    numbers: Array,
    counts: Array,
    firsts: Array,
    places: Array,
    left: int,
    keys: Array,
    values: Array,
    marks: Array,
    generation: int,
) -> int:
    """Numbers the n-grams at `places`, of which ids are the (n-1)-grams; returns how many."""
    size = 16
    while size < 2 * left:
        size *= 2
    shift = np.uint64(64)
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    mask = (np.uint64(1) << (np.uint64(64) - shift)) - np.uint64(1)
    found = 0
    for k in range(left):
        i = places[k]
        if ids[i + 1] < 0:
            numbers[i] = -1
            continue
        key = (np.uint64(ids[i]) << np.uint64(32)) | np.uint64(ids[i + 1])
        slot = (key * _FACTOR) >> shift
        while marks[slot] == generation and keys[slot] != key:
            slot = (slot + np.uint64(1)) & mask
        if marks[slot] != generation:
            marks[slot], keys[slot], values[slot] = generation, key, found
            counts[found], firsts[found] = 0, i
            found += 1
        numbers[i] = values[slot]
        counts[values[slot]] += 1
    return found


@kernel
def _summed(
    result: Array,
    n: int,
    words: int,
    numbers: Array,
    counts: Array,
    firsts: Array,
    places: Array,
    left: int,
    found: int,
    chars: Array,
) -> int:
    """Writes the results for one n; keeps the places that repeat, returns how many."""
    if words >= n:
        result[TOP_COUNT] = 1
        result[TOP_CHARS] = result[TOP_LONGEST_CHARS] = chars[n]
    most, longest, first = 1, 0, 0
    for number in range(found):
        if counts[number] > most:
            most, first, longest = counts[number], firsts[number], 0
        if counts[number] == most and most > 1:
            at = firsts[number]
            longest = max(longest, chars[at + n] - chars[at])
    if most > 1:
        result[TOP_COUNT] = most
        result[TOP_CHARS] = chars[first + n] - chars[first]
        result[TOP_LONGEST_CHARS] = longest
    kept, covered = 0, 0
    for k in range(left):
        i = places[k]
        if numbers[i] < 0:
            continue
        if counts[numbers[i]] < 2:
            numbers[i] = -1
            continue
        places[kept] = i
        kept += 1
        result[OCCURRENCE_CHARS] += chars[i + n] - chars[i]
        result[DUP_CHARS] += chars[i + n] - chars[max(covered, i)]
        covered = i + n
    return kept


@kernel
def shifted_ngrams(
    data: Array, sequence: Array, doc_words: Array, start: Array, num_bytes: Array, num_chars: Array
) -> Array:
    """Returns the code points of n-grams seen before in a scan that jumps behind each one found.

    n-grams are equal if their words written without a space between are: "a bc" is "ab c". A hash
    finds the earlier one, its bytes are compared.

    Args:
        data: uint8, the UTF-8 buffer.
        sequence: int32, the words as numbers of kinds.
        doc_words: int64 [documents + 1], where each document's words begin.
        start: int64, where a kind stands.
        num_bytes: int32, of a kind.
        num_chars: int32, of a kind.

    Returns:
        float64 [documents, 11]: by n, from 5 to 10.
    """
    documents = len(doc_words) - 1
    most = 0
    for document in range(documents):
        most = max(most, doc_words[document + 1] - doc_words[document])
    size = 16
    while size < 2 * most:
        size *= 2
    results = np.zeros((documents, MOST_WORDS + 1), np.float64)
    kinds = np.empty((5, len(start)), np.uint64)
    inverse = _inverse(_BASE)
    for kind in range(len(start)):
        value, power, back = np.uint64(0), np.uint64(1), np.uint64(1)
        for i in range(start[kind], start[kind] + num_bytes[kind]):
            value += (np.uint64(data[i]) + np.uint64(1)) * power
            power *= _BASE
            back *= inverse
        kinds[0, kind], kinds[1, kind], kinds[2, kind] = value, power, back
        packed = np.uint64(0)
        for i in range(start[kind], start[kind] + min(num_bytes[kind], WINDOW)):
            packed |= np.uint64(data[i]) << np.uint64(8 * (WINDOW - 1 - (i - start[kind])))
        kinds[3, kind], kinds[4, kind] = packed, num_bytes[kind]
    _all_shifted(
        *(data, sequence, doc_words, start, num_bytes, num_chars, results, kinds),
        *(np.empty(size, np.uint64), np.empty(size, np.int32), np.full(size, -1, np.int32)),
        *(
            np.empty(most + 1, np.uint64),
            np.empty(most + 1, np.uint64),
            np.empty(most + 1, np.int64),
            np.empty(most + 1, np.bool_),
        ),
    )
    return results


@kernel
def _inverse(odd: np.uint64) -> np.uint64:
    """Returns the inverse of an odd number modulo 2**64."""
    found = odd
    for _ in range(6):
        found *= np.uint64(2) - odd * found
    return found


@kernel
def _all_shifted(
    data: Array,
    sequence: Array,
    doc_words: Array,
    start: Array,
    num_bytes: Array,
    num_chars: Array,
    results: Array,
    kinds: Array,
    keys: Array,
    places: Array,
    marks: Array,
    sums: Array,
    backs: Array,
    chars: Array,
    twice: Array,
) -> None:
    generation = 0
    for document in range(len(doc_words) - 1):
        low = doc_words[document]
        words = doc_words[document + 1] - low
        size = 16
        while size < 2 * words:
            size *= 2
        mask = np.uint64(size - 1)
        shift = np.uint64(64)
        while size > 1:
            size >>= 1
            shift -= np.uint64(1)
        generation += 1
        _mark_windows(
            sequence, low, words, kinds, keys, places, marks, generation, shift, mask, twice
        )
        power = np.uint64(1)
        sums[0], backs[0], chars[0] = np.uint64(0), np.uint64(1), 0
        for i in range(words):
            kind = sequence[low + i]
            sums[i + 1] = sums[i] + kinds[0, kind] * power
            backs[i + 1] = backs[i] * kinds[2, kind]
            chars[i + 1] = chars[i] + num_chars[kind]
            power *= kinds[1, kind]
        for n in range(5, MOST_WORDS + 1):
            generation += 1
            i, total = 0, 0
            while i <= words - n:
                # What is 8 bytes or longer and came before began with the same 8 bytes there.
                if not twice[i] and chars[i + n] - chars[i] >= WINDOW:
                    i += 1
                    continue
                key = (sums[i + n] - sums[i]) * backs[i] * _FACTOR
                slot = (key ^ (key >> np.uint64(29))) * _FACTOR >> shift
                seen = False
                while marks[slot] == generation:
                    if keys[slot] == key and _same_text(
                        data, sequence, start, num_bytes, low + places[slot], low + i, n
                    ):
                        seen = True
                        break
                    slot = (slot + np.uint64(1)) & mask
                if seen:
                    total += chars[i + n] - chars[i]
                    i += n
                else:
                    marks[slot], keys[slot], places[slot] = generation, key, i
                    i += 1
            results[document, n] = total


@kernel
def _mark_windows(
    sequence: Array,
    low: int,
    words: int,
    kinds: Array,
    keys: Array,
    places: Array,
    marks: Array,
    generation: int,
    shift: Integer,
    mask: Integer,
    twice: Array,
) -> None:
    """Writes for each word whether the 8 bytes from it on begin at another word too."""
    for i in range(words):
        window, word = kinds[3, sequence[low + i]], i
        room: Integer = WINDOW
        room -= np.int64(kinds[4, sequence[low + i]])
        while room > 0 and word + 1 < words:
            word += 1
            kind = sequence[low + word]
            window |= kinds[3, kind] >> np.uint64(8 * (WINDOW - room))
            room -= np.int64(kinds[4, kind])
        twice[i] = False
        slot = (window * _FACTOR) >> shift
        while marks[slot] == generation and keys[slot] != window:
            slot = (slot + np.uint64(1)) & mask
        if marks[slot] == generation:
            twice[i] = twice[places[slot]] = True
        else:
            marks[slot], keys[slot], places[slot] = generation, window, i


@kernel
def _same_text(
    data: Array, sequence: Array, start: Array, num_bytes: Array, a: int, b: int, n: int
) -> bool:
    """Tells whether the n words from a on and those from b on are the same characters."""
    left, right = a, b
    at_left, at_right = 0, 0
    while left < a + n and right < b + n:
        x, y = sequence[left], sequence[right]
        if x == y and at_left == at_right:
            left, right = left + 1, right + 1
            at_left = at_right = 0
            continue
        if data[start[x] + at_left] != data[start[y] + at_right]:
            return False
        at_left, at_right = at_left + 1, at_right + 1
        if at_left == num_bytes[x]:
            left, at_left = left + 1, 0
        if at_right == num_bytes[y]:
            right, at_right = right + 1, 0
    return left == a + n and right == b + n
