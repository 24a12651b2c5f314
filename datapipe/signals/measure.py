"""Texts to signals: one split, then the kernels of the families that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from datapipe.documents.characters import character_classes
from datapipe.documents.english_rules import english_rules
from datapipe.documents.english_words import rule_table
from datapipe.documents.kernels import Array
from datapipe.documents.split import Split, split_texts, text_buffers
from datapipe.documents.words import Cutter, cut_words, word_sequence
from datapipe.signals.c4_lines import PHRASE_BOUNDS, PHRASES, count_sentences, keep_lines
from datapipe.signals.line_signals import dclm_lines, dolma_lines, duplicates, fineweb_lines
from datapipe.signals.marks import mark_words
from datapipe.signals.names import SIGNALS, Family, families_of
from datapipe.signals.ngrams import (
    DUP_CHARS,
    OCCURRENCE_CHARS,
    TOP_CHARS,
    TOP_COUNT,
    TOP_LONGEST_CHARS,
    repeated_ngrams,
    shifted_ngrams,
)
from datapipe.signals.repeats import earlier_spans, line_spans, paragraph_spans
from datapipe.signals.word_signals import english_signals, plain_signals

__all__ = ["SHORT_LINE_CHARS", "kept_lines", "measure"]


CHUNK_BYTES = 256 << 10
"""Text whose words and tables are in memory at a time, about: they should stay in the cache."""
SHORT_LINE_CHARS = 30

_ENGLISH = Family.TROVE | Family.TROVE_REPEATS | Family.FINEWEB
_TOP, _DUP = slice(2, 5), slice(5, 11)


def measure(
    texts: pa.Array,
    signals: Iterable[str],
    *,
    short_line_chars: int = SHORT_LINE_CHARS,
) -> dict[str, Array]:
    """Returns signals of texts as float64 arrays, in the order of `SIGNALS`.

    Other signals of the same families come along: they cost nothing more. Deterministic; runs
    without the GIL but for a few calls per 256 KiB of text. Memory is about 40 bytes a word of the
    longest text.

    Args:
        texts: large_string, without nulls.
        signals: names of `SIGNALS`.
        short_line_chars: code points of the longest line that is short.
    """
    families = families_of(signals) & ~Family.C4
    names = [name for name, family in SIGNALS.items() if family & families]
    table = np.zeros((len(texts), len(names)), dtype=np.float64)
    data, offsets = text_buffers(texts)
    for first, last in _chunks(offsets):
        chunk = _Chunk(data, offsets, first, last, short_line_chars)
        column = 0
        for family in Family:
            if family & families & ~Family.C4:
                width = sum(1 for found in SIGNALS.values() if found is family)
                chunk.write(family, table[first:last, column : column + width])
                column += width
    return {name: table[:, i] for i, name in enumerate(names)}


def _chunks(offsets: Array) -> Iterator[tuple[int, int]]:
    """Yields runs of documents of about CHUNK_BYTES, at least one document each."""
    first, documents = 0, len(offsets) - 1
    while first < documents:
        end = int(np.searchsorted(offsets, offsets[first] + CHUNK_BYTES, side="right")) - 1
        last = min(max(end, first + 1), documents)
        yield first, last
        first = last


@cache
def _rules() -> tuple[Array, Array]:
    rows, begins = english_rules()
    return rule_table(rows), begins


class _Words:
    """The words of a chunk by one cutter."""

    def __init__(self, data: Array, split: Split, cutter: Cutter) -> None:
        classes = character_classes()
        words = cut_words(data, split.kinds, classes, *_rules(), int(cutter))
        self.kinds = words.kinds
        self.sequence, self.starts = word_sequence(
            split.doc_words, split.word_kind, words.first, words.word
        )


class _Chunk:
    """A run of documents, split; what several families need is made once."""

    def __init__(self, data: Array, offsets: Array, first: int, last: int, short: int) -> None:
        self._data, self._offsets, self._first, self._short = data, offsets, first, short
        self._split = split_texts(data, offsets, first, last, character_classes())
        self._made: dict[str, Any] = {}

    def write(self, family: Family, out: Array) -> None:
        """Writes the signals of one family, a row a document."""
        writers = {
            Family.PLAIN: self._plain,
            Family.TROVE: self._trove,
            Family.TROVE_REPEATS: self._trove_repeats,
            Family.FINEWEB: self._fineweb,
            Family.DOLMA: self._dolma,
            Family.PLAIN_NGRAMS: self._plain_ngrams,
            Family.DCLM: self._dclm,
            Family.UNICODE_NGRAMS: self._unicode_ngrams,
            Family.SIZE: self._size,
            Family.DUPLICATES: self._duplicates,
        }
        writers[family](out)

    def _once(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = getattr(self, f"_make_{name}")()
        return self._made[name]

    def _make_marks(self) -> Any:
        kinds = self._split.kinds
        return mark_words(self._data, kinds.start, kinds.num_bytes, character_classes())

    def _make_english(self) -> _Words:
        return _Words(self._data, self._split, Cutter.ENGLISH)

    def _make_lines(self) -> tuple[Array, ...]:
        return self._spans(self._split.doc_lines, line_spans(self._data, self._split, False))

    def _spans(self, bounds: Array, spans: tuple[Array, ...]) -> tuple[Array, ...]:
        """Returns start, end, code points of spans, the first equal one and its number."""
        starts, ends, chars, hashes = spans
        return starts, ends, chars, *earlier_spans(self._data, bounds, starts, ends, hashes)

    def _paragraphs(self, stripped: bool) -> tuple[Array, ...]:
        bounds, *spans = paragraph_spans(self._data, self._split, stripped)
        return bounds, *self._spans(bounds, tuple(spans))

    def _size(self, out: Array) -> None:
        out[:, 0] = self._split.doc_chars

    def _plain(self, out: Array) -> None:
        marks = self._once("marks")
        plain_signals(self._data, self._offsets, self._first, self._split, marks, out)

    def _trove(self, out: Array) -> None:
        english = self._once("english")
        kinds = english.kinds
        marks = mark_words(self._data, kinds.start, kinds.num_bytes, character_classes())
        english_signals(
            *(self._split, self._once("marks"), english.sequence, english.starts),
            *(kinds.num_chars, marks, out),
        )

    def _duplicates(self, out: Array) -> None:
        _, _, chars, firsts, _ = self._once("lines")
        bounds, _, _, para_chars, para_firsts, _ = self._paragraphs(False)
        duplicates(self._split, chars, firsts, bounds, para_chars, para_firsts, out)

    def _trove_repeats(self, out: Array) -> None:
        english = self._once("english")
        kinds = english.kinds
        found = repeated_ngrams(english.sequence, english.starts, kinds.num_chars)
        spaced = found[:, :, TOP_CHARS] + np.maximum(np.arange(11) - 1, 0)
        dup = shifted_ngrams(
            *(self._data, english.sequence, english.starts),
            *(kinds.start, kinds.num_bytes, kinds.num_chars),
        )
        whole = np.maximum(self._split.doc_chars, 1)[:, None]
        out[:, 0:3] = (spaced * found[:, :, TOP_COUNT])[:, _TOP] / whole
        out[:, 3:9] = dup[:, _DUP] / whole

    def _fineweb(self, out: Array) -> None:
        _, _, chars, firsts, _ = self._once("lines")
        words = self._once("english").starts
        fineweb_lines(self._split, self._once("marks"), chars, firsts, words, self._short, out)

    def _dolma(self, out: Array) -> None:
        _, _, chars, firsts, counts = self._once("lines")
        dolma_lines(self._data, self._split, chars, firsts, counts, out)

    def _plain_ngrams(self, out: Array) -> None:
        split = self._split
        found = repeated_ngrams(split.word_kind, split.doc_words, split.kinds.num_chars)
        lengths = split.kinds.num_chars[split.word_kind]
        total = _per_document(lengths, split.doc_words)
        whole = np.maximum(total, 1)[:, None]
        out[:, 0:3] = (found[:, :, TOP_CHARS] * found[:, :, TOP_COUNT])[:, _TOP] / whole
        out[:, 3:9] = found[:, _DUP, OCCURRENCE_CHARS] / _occurrence_chars(lengths, split.doc_words)
        out[:, 9:18] = _repeated_shares(found, total)

    def _dclm(self, out: Array) -> None:
        split = self._split
        starts, ends, chars, firsts, counts = self._spans(
            split.doc_lines, line_spans(self._data, split, True)
        )
        bounds, _, _, *paragraphs = self._paragraphs(True)
        dclm_lines(
            *(self._data, split, self._once("marks"), starts, ends, chars, firsts, counts),
            *(bounds, *paragraphs, out),
        )

    def _unicode_ngrams(self, out: Array) -> None:
        words = _Words(self._data, self._split, Cutter.UNICODE)
        found = repeated_ngrams(words.sequence, words.starts, words.kinds.num_chars)
        total = _per_document(words.kinds.num_chars[words.sequence], words.starts)
        out[:, 0] = np.diff(words.starts)
        out[:, 1:10] = _repeated_shares(found, total)


def _per_document(values: Array, starts: Array) -> Array:
    """Returns the sum of each document's values, int64."""
    sums = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return sums[starts[1:]] - sums[starts[:-1]]


def _occurrence_chars(lengths: Array, starts: Array) -> Array:
    """Returns the code points of all n-grams of each document for n from 5 to 10, at least 1."""
    sums = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    twice = np.concatenate([[0], np.cumsum(sums, dtype=np.int64)])
    low, high = starts[:-1], starts[1:]
    found = np.ones((len(low), 6), dtype=np.int64)
    for n in range(5, 11):
        count = np.maximum(high - low - n + 1, 0)
        upper = twice[high + 1] - twice[high + 1 - count]
        lower = twice[low + count] - twice[low]
        found[:, n - 5] = np.maximum(upper - lower, 1)
    return found


def _repeated_shares(found: Array, total: Array) -> Array:
    """Returns shares of n-grams that occur twice or more: the top ones', then all words covered."""
    whole = np.maximum(total, 1)[:, None]
    count = found[:, _TOP, TOP_COUNT]
    top = np.where(count > 1, count * found[:, _TOP, TOP_LONGEST_CHARS], 0)
    return np.concatenate([top, found[:, _DUP, DUP_CHARS]], axis=1) / whole


def kept_lines(
    texts: pa.Array, *, terminal: bool, min_words: int, max_word_chars: int
) -> tuple[pa.Array, dict[str, Array]]:
    """Returns the texts with only the lines that C4 keeps, and the signals of Family.C4.

    Args:
        texts: large_string, without nulls.
        terminal: whether a line must end in an end mark.
        min_words: of a line.
        max_word_chars: of a word; a line with a longer one goes.
    """
    data, offsets = text_buffers(texts)
    names = [name for name, family in SIGNALS.items() if family is Family.C4]
    table = np.zeros((len(texts), len(names)), dtype=np.float64)
    kept: list[Array] = []
    sizes = np.zeros(len(texts), dtype=np.int64)
    for first, last in _chunks(offsets):
        split = split_texts(data, offsets, first, last, character_classes())
        out = np.empty(offsets[last] - offsets[first] + 1, dtype=np.uint8)
        ends = np.zeros(last - first, dtype=np.int64)
        keep_lines(
            *(data, split, character_classes(), PHRASES, PHRASE_BOUNDS, terminal),
            *(min_words, max_word_chars, out, ends, table[first:last, :4]),
        )
        kept.append(out[: ends[-1]])
        sizes[first:last] = np.diff(ends, prepend=0)
        table[first:last, 4] = _sentences(kept[-1], np.concatenate([[0], ends]))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    whole = np.concatenate(kept) if kept else np.zeros(0, dtype=np.uint8)
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(whole)]
    changed = pa.Array.from_buffers(pa.large_string(), len(texts), buffers)
    return changed, {name: table[:, i] for i, name in enumerate(names)}


def _sentences(data: Array, offsets: Array) -> Array:
    classes = character_classes()
    # Kernels are compiled anew for arrays that can be written.
    data.flags.writeable = offsets.flags.writeable = False
    split = split_texts(data, offsets, 0, len(offsets) - 1, classes)
    words = cut_words(data, split.kinds, classes, *_rules(), int(Cutter.ENGLISH))
    marks = mark_words(data, words.kinds.start, words.kinds.num_bytes, classes)
    found = np.zeros(len(offsets) - 1, dtype=np.float64)
    count_sentences(split, words.first, words.word, marks, found)
    return found
