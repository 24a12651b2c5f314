"""Which lines and paragraphs of a document stood in it before, exactly."""

from __future__ import annotations

import numpy as np

from datapipe.documents.kernels import Array, kernel
from datapipe.documents.split import Split, same_bytes

__all__ = ["char_count", "earlier_spans", "line_spans", "paragraph_spans"]

_FACTOR = np.uint64(0xD6E8FEB86659FD93)


@kernel
def char_count(data: Array, start: int, end: int) -> int:
    """Returns how many code points begin in data[start:end]."""
    count = 0
    for i in range(start, end):
        if data[i] & 0xC0 != 0x80:
            count += 1
    return count


@kernel
def _word_end(split: Split, word: int) -> int:
    return split.word_start[word] + split.kinds.num_bytes[split.word_kind[word]]


@kernel
def _span_hash(split: Split, first: int, last: int, size: int) -> np.uint64:
    """Returns a hash of a span of `size` bytes with the words from first to last."""
    state = np.uint64(size)
    for word in range(first, last):
        shift = np.uint64(split.word_start[word] - split.word_start[first])
        state = (state ^ (split.kinds.hash[split.word_kind[word]] + shift)) * _FACTOR
        state ^= state >> np.uint64(31)
    return state


@kernel
def line_spans(data: Array, split: Split, stripped: bool) -> tuple[Array, Array, Array, Array]:
    """Returns start, end, code points and hash of every line, as it is or without outer spaces.

    A stripped line of nothing but white space is empty and begins where the line does.
    """
    count = len(split.line_start)
    starts, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    chars, hashes = np.empty(count, np.int64), np.empty(count, np.uint64)
    for line in range(count):
        start, end = split.line_start[line], split.line_end[line]
        first, last = split.line_word[line], split.line_word[line + 1]
        size = split.line_chars[line]
        if stripped and first == last:
            end, size = start, 0
        elif stripped:
            size -= char_count(data, start, split.word_start[first])
            size -= char_count(data, _word_end(split, last - 1), end)
            start, end = split.word_start[first], _word_end(split, last - 1)
        starts[line], ends[line], chars[line] = start, end, size
        hashes[line] = _span_hash(split, first, last, end - start)
    return starts, ends, chars, hashes


@kernel
def paragraph_spans(
    data: Array, split: Split, stripped: bool
) -> tuple[Array, Array, Array, Array, Array]:
    """Returns the paragraphs: what stands between empty lines, of texts without outer spaces.

    stripped: each paragraph without outer white space, none that is nothing else. Else as they
    are, at least one a document.

    Returns:
        int64 [documents + 1], where each document's begin; start, end, code points, hash of each.
    """
    documents = len(split.doc_lines) - 1
    room = len(split.line_start)
    bounds = np.zeros(documents + 1, np.int64)
    starts, ends = np.empty(room, np.int64), np.empty(room, np.int64)
    chars, hashes = np.empty(room, np.int64), np.empty(room, np.uint64)
    count = 0
    for document in range(documents):
        low, high = split.doc_words[document], split.doc_words[document + 1]
        line, end_line = split.doc_lines[document], split.doc_lines[document + 1]
        if low == high:
            if not stripped:
                starts[count] = ends[count] = split.line_start[line]
                chars[count], hashes[count] = 0, np.uint64(0)
                count += 1
            bounds[document + 1] = count
            continue
        text_start, text_end = split.word_start[low], _word_end(split, high - 1)
        while line < end_line:
            if split.line_end[line] == split.line_start[line]:
                line += 1
                continue
            from_line = line
            size = 0
            while line < end_line and split.line_end[line] > split.line_start[line]:
                size += split.line_chars[line] + 1
                line += 1
            size -= 1
            first, last = split.line_word[from_line], split.line_word[line]
            start, end = split.line_start[from_line], split.line_end[line - 1]
            if end <= text_start or start >= text_end or (stripped and first == last):
                continue
            inner_start = split.word_start[first] if stripped else max(start, text_start)
            inner_end = _word_end(split, last - 1) if stripped else min(end, text_end)
            size -= char_count(data, start, inner_start) + char_count(data, inner_end, end)
            starts[count], ends[count], chars[count] = inner_start, inner_end, size
            hashes[count] = _span_hash(split, first, last, inner_end - inner_start)
            count += 1
        bounds[document + 1] = count
    return bounds, starts[:count], ends[:count], chars[:count], hashes[:count]


@kernel
def earlier_spans(
    data: Array, bounds: Array, starts: Array, ends: Array, hashes: Array
) -> tuple[Array, Array]:
    """Returns for each span the number of the first equal one of its document, and how often
    that one occurs, kept at its own place.

    Returns:
        int64 [spans] each; a span that is the first has its own number.
    """
    most = 0
    for document in range(len(bounds) - 1):
        most = max(most, bounds[document + 1] - bounds[document])
    size = 16
    while size < 2 * most:
        size *= 2
    firsts = np.empty(len(starts), np.int64)
    counts = np.zeros(len(starts), np.int64)
    slots = np.empty(size, np.int64)
    marks = np.full(size, -1, np.int64)
    _find_all(data, bounds, starts, ends, hashes, firsts, counts, slots, marks)
    return firsts, counts


@kernel
def _find_all(
    data: Array,
    bounds: Array,
    starts: Array,
    ends: Array,
    hashes: Array,
    firsts: Array,
    counts: Array,
    slots: Array,
    marks: Array,
) -> None:
    mask = np.uint64(len(slots) - 1)
    for document in range(len(bounds) - 1):
        for span in range(bounds[document], bounds[document + 1]):
            slot = (hashes[span] ^ (hashes[span] >> np.uint64(32))) & mask
            size = ends[span] - starts[span]
            while marks[slot] == document:
                other = slots[slot]
                alike = hashes[other] == hashes[span] and ends[other] - starts[other] == size
                if alike and same_bytes(data, starts[other], starts[span], size):
                    break
                slot = (slot + np.uint64(1)) & mask
            if marks[slot] != document:
                marks[slot], slots[slot] = document, span
            firsts[span] = slots[slot]
            counts[firsts[span]] += 1
