"""Which lines of a document C4 keeps, and which make it drop the whole document.

Rows (what `str.splitlines` gives) lose outer white space and citation marks; then a row goes if it
has a word that is too long, no end mark, too few words, or phrases of web pages; "lorem ipsum" and
"{" in a row that got so far drop the document.
"""

from __future__ import annotations

import numpy as np

from datapipe.documents.characters import SPACE, WB_NUMBER, WB_SHIFT
from datapipe.documents.kernels import Array, kernel
from datapipe.documents.split import GAP_NOT_ONE_SPACE, GAP_ROW, Split, code_point_at
from datapipe.signals.marks import IS_PUNCTUATION, IS_SENTENCE_END, Marks

__all__ = ["count_sentences", "keep_lines"]


_PHRASES = (
    *(b"lorem ipsum", b"javascript", b"terms of use", b"privacy policy", b"cookie policy"),
    *(b"uses cookies", b"use of cookies", b"use cookies", b"[edit]", b"[citation needed]"),
)
PHRASES = np.frombuffer(b"".join(_PHRASES), dtype=np.uint8)
"""The phrases one behind another: "lorem ipsum" first, the two citations last."""
PHRASE_BOUNDS = np.cumsum([0, *map(len, _PHRASES)]).astype(np.int64)
_EDIT, _CITATION = len(_PHRASES) - 2, len(_PHRASES) - 1
_OPEN, _CLOSE, _BRACE, _DOT = 0x5B, 0x5D, 0x7B, 0x2E
_ENDS = (0x2E, 0x3F, 0x21, 0x22, 0x27)


@kernel
def _phrase_at(
    data: Array, i: int, end: int, phrases: Array, bounds: Array, number: int, folded: bool
) -> bool:
    """Tells whether a phrase stands at byte i, without regard to ASCII case if `folded`."""
    if i + bounds[number + 1] - bounds[number] > end:
        return False
    for k in range(bounds[number], bounds[number + 1]):
        b = data[i]
        if folded and 0x41 <= b <= 0x5A:
            b |= 0x20
        if b != phrases[k]:
            return False
        i += 1
    return True


@kernel
def _citation_end(
    data: Array, i: int, end: int, classes: Array, phrases: Array, bounds: Array
) -> int:
    """Returns where the citation mark at byte i ends; i if there is none."""
    if _phrase_at(data, i, end, phrases, bounds, _EDIT, False):
        return i + bounds[_EDIT + 1] - bounds[_EDIT]
    if _phrase_at(data, i, end, phrases, bounds, _CITATION, False):
        return i + bounds[_CITATION + 1] - bounds[_CITATION]
    at = i + 1
    while at < end:
        if data[at] == _CLOSE:
            return at + 1
        c, at = code_point_at(data, at)
        if classes[c] >> WB_SHIFT != WB_NUMBER:
            return i
    return i


@kernel
def _without_citations(
    data: Array,
    start: int,
    end: int,
    classes: Array,
    phrases: Array,
    bounds: Array,
    out: Array,
    at: int,
) -> int:
    """Writes data[start:end] without citation marks to `out`; returns where it ends there."""
    i = start
    while i < end:
        if data[i] == _OPEN:
            after = _citation_end(data, i, end, classes, phrases, bounds)
            if after > i:
                i = after
                continue
        out[at] = data[i]
        at += 1
        i += 1
    return at


@kernel
def _has_phrase(
    out: Array, start: int, end: int, phrases: Array, bounds: Array, first: int, last: int
) -> bool:
    for i in range(start, end):
        b = out[i] | 0x20
        if b == 0x6C or b == 0x6A or b == 0x74 or b == 0x70 or b == 0x63 or b == 0x75:
            for number in range(first, last):
                begins = b == phrases[bounds[number]]
                if begins and _phrase_at(out, i, end, phrases, bounds, number, True):
                    return True
    return False


@kernel
def _ends_sentence(out: Array, start: int, end: int) -> bool:
    """Tells whether a line ends in an end mark that isn't an ellipsis."""
    if end == start:
        return False
    last = out[end - 1]
    found = False
    for mark in _ENDS:
        found = found or last == mark
    if not found:
        return False
    dots = end - start >= 3 and last == _DOT and out[end - 2] == _DOT and out[end - 3] == _DOT
    return not dots


@kernel
def _stripped(out: Array, start: int, end: int, classes: Array) -> int:
    """Takes outer white space from out[start:end], moving it up to `start`; returns its new end."""
    first = start
    while first < end:
        c, after = code_point_at(out, first)
        if not classes[c] & SPACE:
            break
        first = after
    while end > first:
        last = end - 1
        while out[last] & 0xC0 == 0x80:
            last -= 1
        c, _ = code_point_at(out, last)
        if not classes[c] & SPACE:
            break
        end = last
    if first > start:
        for i in range(first, end):
            out[start + i - first] = out[i]
    return end - (first - start)


@kernel
def keep_lines(
    data: Array,
    split: Split,
    classes: Array,
    phrases: Array,
    bounds: Array,
    terminal: bool,
    min_words: int,
    max_word_chars: int,
    out: Array,
    ends: Array,
    verdict: Array,
) -> None:
    """Writes the documents with only the lines that stay, one behind another.

    Args:
        data: uint8, the UTF-8 buffer.
        split: the split of some documents.
        classes: the table `character_classes()`.
        phrases: PHRASES.
        bounds: PHRASE_BOUNDS.
        terminal: whether a line must end in an end mark.
        min_words: of a line.
        max_word_chars: of a word; a line with a longer one goes.
        out: uint8, written to; room for all the text.
        ends: int64 [documents], written to: where each one ends in `out`.
        verdict: float64 [documents, 4], written to: 1 if "lorem ipsum" drops it; 1 if "{" does;
            lines that stay; lines in all.
    """
    at = 0
    for document in range(len(ends)):
        begin = at
        word, high = split.doc_words[document], split.doc_words[document + 1]
        kept = 0
        verdict[document, 3] = split.doc_rows[document]
        while word < high:
            first = word
            longest = 0
            while word == first or (word < high and not split.word_gap[word] & GAP_ROW):
                longest = max(longest, split.kinds.num_chars[split.word_kind[word]])
                word += 1
            if longest > max_word_chars:
                continue
            last = split.word_start[word - 1] + split.kinds.num_bytes[split.word_kind[word - 1]]
            line = at if kept == 0 else at + 1
            stop = _without_citations(
                data, split.word_start[first], last, classes, phrases, bounds, out, line
            )
            if terminal and not _ends_sentence(out, line, stop):
                continue
            if word - first < min_words:
                continue
            if _has_phrase(out, line, stop, phrases, bounds, 0, 1):
                verdict[document, 0] = 1
                break
            if _has_phrase(out, line, stop, phrases, bounds, 1, 2):
                continue
            braced = False
            for i in range(line, stop):
                if out[i] == _BRACE:
                    braced = True
                    break
            if braced:
                verdict[document, 1] = 1
                break
            if _has_phrase(out, line, stop, phrases, bounds, 2, _EDIT):
                continue
            if kept:
                out[at] = 0x0A
            at = stop
            kept += 1
        verdict[document, 2] = kept
        at = _stripped(out, begin, at, classes)
        ends[document] = at


@kernel
def count_sentences(split: Split, first: Array, word: Array, english: Marks, out: Array) -> None:
    """Writes how many sentences the lines of each document have, as spaCy's sentencizer counts.

    A sentence ends with a word that is an end mark; closing punctuation behind it belongs to it.

    Args:
        split: the split of the documents.
        first: int32, see `Words.first`, of English words.
        word: int32, see `Words.word`.
        english: Marks of those words' kinds.
        out: float64 [documents], written to.
    """
    for document in range(len(split.doc_chars)):
        total = 0
        for line in range(split.doc_lines[document], split.doc_lines[document + 1]):
            low, high = split.line_word[line], split.line_word[line + 1]
            if low == high:
                total += 1 if split.line_end[line] > split.line_start[line] else 0
                continue
            total += 1
            ended = False
            for i in range(low, high):
                if i > low and ended and split.word_gap[i] & GAP_NOT_ONE_SPACE:
                    total += 1
                    ended = False
                kind = split.word_kind[i]
                for part in range(first[kind], first[kind + 1]):
                    flags = english.flags[word[part]]
                    if flags & IS_SENTENCE_END:
                        ended = True
                    elif ended and not flags & IS_PUNCTUATION:
                        total += 1
                        ended = False
        out[document] = total
