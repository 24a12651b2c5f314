"""Signals from lines and paragraphs: how they begin and end, how short they are, which repeat."""

from __future__ import annotations

from datapipe.documents.kernels import Array, kernel
from datapipe.documents.split import Split
from datapipe.signals.marks import BULLET_DCLM, ENDS_DOTS, ENDS_ELLIPSIS, ENDS_TERMINAL, Marks

__all__ = ["dclm_lines", "dolma_lines", "duplicates", "fineweb_lines"]

_DASH, _STAR, _DOT, _SPACE = 0x2D, 0x2A, 0x2E, 0x20


@kernel
def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


@kernel
def _empty_ends(split: Split, low: int, high: int, filled: int) -> int:
    """Returns how many empty lines are left if runs of line feeds end lines: at most two.

    low and high: the document's lines; filled: how many of them aren't empty.
    """
    if filled == 0:
        return 1 if high - low == 1 else 2
    empty = 1 if split.line_start[low] == split.line_end[low] else 0
    return empty + (1 if split.line_start[high - 1] == split.line_end[high - 1] else 0)


@kernel
def duplicates(
    split: Split,
    chars: Array,
    firsts: Array,
    paragraphs: Array,
    para_chars: Array,
    para_firsts: Array,
    out: Array,
) -> None:
    """Writes the signals of Family.DUPLICATES: second and later copies, as datatrove counts them.

    Args:
        split: the split.
        chars: int64, code points of each line.
        firsts: int64, the first line that is equal to it.
        paragraphs: int64 [documents + 1], where each document's paragraphs begin.
        para_chars: as chars.
        para_firsts: as firsts.
        out: float64, written to.
    """
    for document in range(len(split.doc_chars)):
        low, high = paragraphs[document], paragraphs[document + 1]
        again = again_chars = 0
        for paragraph in range(low, high):
            if para_firsts[paragraph] != paragraph:
                again += 1
                again_chars += para_chars[paragraph]
        row = out[document]
        row[0] = _share(again, high - low)
        row[1] = _share(again_chars, split.doc_chars[document])
        # The text falls apart at runs of line feeds: what is empty in the middle isn't a line.
        low, high = split.doc_lines[document], split.doc_lines[document + 1]
        lines = again = again_chars = 0
        for line in range(low, high):
            if split.line_start[line] == split.line_end[line]:
                continue
            lines += 1
            if firsts[line] != line:
                again += 1
                again_chars += chars[line]
        empty = _empty_ends(split, low, high, lines)
        lines += empty
        again += max(0, empty - 1)
        row[2] = _share(again, lines)
        row[3] = _share(again_chars, split.doc_chars[document])


@kernel
def fineweb_lines(
    split: Split,
    marks: Marks,
    chars: Array,
    firsts: Array,
    english_words: Array,
    short: int,
    out: Array,
) -> None:
    """Writes the signals of Family.FINEWEB.

    Args:
        split: the split.
        marks: of its kinds.
        chars: int64, code points of each line.
        firsts: int64, the first line that is equal to it.
        english_words: int64 [documents + 1], where each document's English words begin.
        short: code points of the longest short line.
        out: float64, written to.
    """
    for document in range(len(split.doc_chars)):
        low, high = split.doc_lines[document], split.doc_lines[document + 1]
        visible = ended = brief = again = 0
        for line in range(low, high):
            last = split.line_word[line + 1] - 1
            if last < split.line_word[line]:
                continue
            visible += 1
            kind = split.word_kind[last]
            closed = split.word_start[last] + split.kinds.num_bytes[kind] == split.line_end[line]
            ended += 1 if closed and marks.flags[kind] & ENDS_TERMINAL else 0
            brief += 1 if chars[line] <= short else 0
            again += chars[line] if firsts[line] != line else 0
        words = english_words[document + 1] - english_words[document]
        newlines = high - low - 1
        row = out[document]
        row[0] = visible
        row[1], row[2] = _share(ended, visible), _share(brief, visible)
        row[3] = _share(again, split.doc_chars[document] - newlines)
        row[4] = _share(newlines, words)


@kernel
def dolma_lines(
    data: Array, split: Split, chars: Array, firsts: Array, counts: Array, out: Array
) -> None:
    """Writes the signals of Family.DOLMA: of all lines, then of those between runs of line feeds.

    Args:
        data: uint8, the UTF-8 buffer.
        split: the split.
        chars: int64, code points of each line.
        firsts: int64, the first line that is equal to it.
        counts: int64, how often a line that is a first one occurs.
        out: float64, written to.
    """
    for document in range(len(split.doc_chars)):
        low, high = split.doc_lines[document], split.doc_lines[document + 1]
        characters = 0
        for word in range(split.doc_words[document], split.doc_words[document + 1]):
            characters += split.kinds.num_chars[split.word_kind[word]]
        filled = bullets = trailing = again = again_chars = empty = 0
        for line in range(low, high):
            start, end = split.line_start[line], split.line_end[line]
            if start == end:
                empty += 1
                continue
            filled += 1
            bullets += 1 if data[start] == _DASH or data[start] == _STAR else 0
            if end - start >= 3 and data[end - 3] == 0xE2 and data[end - 2] == 0x80:
                trailing += 1 if data[end - 1] == 0xA6 else 0
            if counts[firsts[line]] > 1:
                again += 1
                again_chars += chars[line]
        edges = _empty_ends(split, low, high, filled)
        row = out[document]
        for version in range(2):
            blank = empty if version == 0 else edges
            lines = filled + blank
            base = 4 * version
            row[base], row[base + 1] = _share(bullets, lines), _share(trailing, lines)
            row[base + 2] = _share(again + (blank if blank > 1 else 0), lines)
            row[base + 3] = _share(again_chars, max(characters, 1))
        # The original leaves a text without any character at zero.
        if split.doc_chars[document] == 0:
            row[:8] = 0.0


@kernel
def _ends_with_spaced_dots(data: Array, start: int, end: int) -> bool:
    if end - start < 5 or data[end - 1] != _DOT or data[end - 3] != _DOT or data[end - 5] != _DOT:
        return False
    return data[end - 2] == _SPACE and data[end - 4] == _SPACE


@kernel
def dclm_lines(
    data: Array,
    split: Split,
    marks: Marks,
    starts: Array,
    ends: Array,
    chars: Array,
    firsts: Array,
    counts: Array,
    paragraphs: Array,
    para_chars: Array,
    para_firsts: Array,
    para_counts: Array,
    out: Array,
) -> None:
    """Writes the signals of Family.DCLM; lines and paragraphs are stripped, empty ones don't count.

    A text of one line (or paragraph) has no repetition: the original doesn't look.
    """
    for document in range(len(split.doc_chars)):
        low, high = split.doc_lines[document], split.doc_lines[document + 1]
        lines = bullets = trailing = again = again_chars = total = 0
        for line in range(low, high):
            first, last = split.line_word[line], split.line_word[line + 1]
            if first == last:
                continue
            lines += 1
            total += chars[line]
            bullets += 1 if marks.flags[split.word_kind[first]] & BULLET_DCLM else 0
            ended = marks.flags[split.word_kind[last - 1]] & (ENDS_DOTS | ENDS_ELLIPSIS) != 0
            if ended or _ends_with_spaced_dots(data, starts[line], ends[line]):
                trailing += 1
            if counts[firsts[line]] > 1:
                again += 1
                again_chars += chars[line]
        row = out[document]
        row[0] = lines
        row[1], row[2] = _share(bullets, lines), _share(trailing, lines)
        row[3] = _share(again, lines) if lines > 1 else 0.0
        row[4] = _share(again_chars, total) if lines > 1 else 0.0
        low, high = paragraphs[document], paragraphs[document + 1]
        again = again_chars = total = 0
        for paragraph in range(low, high):
            total += para_chars[paragraph]
            if para_counts[para_firsts[paragraph]] > 1:
                again += 1
                again_chars += para_chars[paragraph]
        row[5] = _share(again, high - low) if high - low > 1 else 0.0
        row[6] = _share(again_chars, total) if high - low > 1 else 0.0
