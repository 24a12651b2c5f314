"""Very long texts, encoded in windows that overlap, with the ids of the whole.

Encoders need 20-150 bytes of memory for each byte of a word (or text) that they are given at once,
so a document of 200 MB without a break would take 4-30 GB. It is encoded in windows instead, and
the ids of two windows are joined where both have the same tokens:

- **BPE.** A sequence of tokens is the encoding of a word if and only if each two neighbours are the
  encoding of what they spell: merges go by rank, so the first merge across a border of the whole
  would also be made between these two alone. Windows that share a token have all their pairs from
  an encoding, so joining them there gives the encoding of the whole.
- **Words** are found from left to right by what follows, so they are the same from a place on where
  both windows agree. What follows matters without a limit in one case: white space up to the last
  line end is one word, so a window that ends in white space with line ends stops behind one.
- **Counting.** Patterns take digits in threes, and a run of one character is merged by its distance
  from the start; so a window begins a multiple of 768 characters behind the start of such a run.
- **Unigram and WordPiece** look at each word as a whole: windows are joined where the part in
  which they agree has whole words. SentencePiece's Unigram adds up scores over the whole text, with
  rounding that depends on its length: it can't be taken apart at all.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from datapipe_tokenizers.errors import LimitError
from datapipe_tokenizers.groups import Ids

__all__ = ["Windows", "encode_long", "joined"]

_OVERLAP_CHARS = 8192
_STEP = 768  # divisible by the lengths that runs are counted and merged in
_TRIES = 96
_MARGIN_TOKENS = 4
_LINE_ENDS = "\r\n"

Encode = Callable[[str], Ids]
HasWords = Callable[[str], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class Windows:
    """How long texts are taken apart."""

    chars: int
    """Characters encoded at once; a shorter text is encoded whole."""
    most_chars: int
    """Characters encoded at once at most, where windows can't be joined."""

    @property
    def overlap(self) -> int:
        """Characters that two windows share."""
        return min(_OVERLAP_CHARS, self.chars // 8)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Seam:
    """Where two windows are joined."""

    begin: int
    """Where the second window begins, in characters."""
    head: Ids
    """Tokens that the second begins with and the first has as well."""
    dropped: int
    """Tokens at the end of the first that the second has, maybe otherwise."""


def encode_long(
    text: str, encode: Encode, *, windows: Windows, name: str, has_words: HasWords | None = None
) -> Ids:
    """Returns the ids of `text`, as `encode` would give them for the whole.

    Args:
        text: What to encode.
        encode: A text -> its ids.
        windows: How it is taken apart.
        name: The library behind `encode`, for messages.
        has_words: Of a model that looks at words as a whole: whether a text has some. None: it is
            BPE.

    Raises:
        LimitError: windows of `windows.most_chars` can't be joined.
    """
    window = _Windows(text, encode, windows=windows, name=name, has_words=has_words)
    return joined(window.parts())


def joined(parts: Iterator[Ids]) -> Ids:
    """Returns all ids in one array, without holding them twice."""
    ids = np.empty(0, dtype=np.uint32)
    for part in parts:
        length = len(ids)
        ids.resize(length + len(part), refcheck=False)
        ids[length:] = part
    return ids


class _Windows:
    """The windows of one text."""

    def __init__(
        self, text: str, encode: Encode, *, windows: Windows, name: str, has_words: HasWords | None
    ) -> None:
        self._text = text
        self._encode = encode
        self._windows = windows
        self._overlap = windows.overlap
        self._name = name
        self._has_words = has_words

    def parts(self) -> Iterator[Ids]:
        """Yields the ids of the text, a window's at a time."""
        begin, head = 0, np.empty(0, dtype=np.uint32)
        while True:
            ids, seam = self._window(begin)
            if not np.array_equal(ids[: len(head)], head):
                raise self._too_long(begin)
            yield ids[len(head) : len(ids) - seam.dropped if seam else len(ids)]
            if seam is None:
                return
            begin, head = seam.begin, seam.head

    def _window(self, begin: int) -> tuple[Ids, _Seam | None]:
        """Encodes a window from `begin` on, as long as it has to be to join the next one to it."""
        size = self._windows.chars
        while size <= self._windows.most_chars:
            end = self._end(begin, size)
            if end is not None:
                ids = self._encode(self._text[begin:end])
                if end == len(self._text):
                    return ids, None
                seam = self._seam(begin, end, ids)
                if seam is not None:
                    return ids, seam
            size *= 2
        raise self._too_long(begin)

    def _end(self, begin: int, size: int) -> int | None:
        """Returns where a window of about `size` characters ends, None: it can't end near there."""
        end = begin + size
        if end + self._overlap >= len(self._text):
            return len(self._text)
        window = self._text[begin:end]
        white = window[len(window.rstrip()) :]
        last_line_end = max(map(white.rfind, _LINE_ENDS))
        if last_line_end < 0:
            return end
        end -= len(white) - last_line_end - 1
        return end if end - begin > size // 2 else None

    def _seam(self, begin: int, end: int, ids: Ids) -> _Seam | None:
        """Returns where the window [begin, end) with these ids is joined to the one after it."""
        for start in _starts(self._text, begin, end - self._overlap):
            if not self._whole_words(start, end):
                return None
            tail = self._encode(self._text[start:end])
            # From `first` on it has the window's tokens, up to `last` those of what goes on.
            first = len(tail) - _shared(ids[::-1], tail[::-1])
            if len(tail) - first < len(tail) // 2 + _MARGIN_TOKENS:
                continue
            last = _shared(tail, self._encode(self._text[start : end + self._overlap]))
            if last - first < len(tail) // 4 + _MARGIN_TOKENS:
                continue
            middle = (first + last) // 2
            return _Seam(begin=start, head=tail[:middle], dropped=len(tail) - middle)
        return None

    def _whole_words(self, start: int, end: int) -> bool:
        """Whether whole words lie in the half of the overlap in which windows are joined."""
        quarter = (end - start) // 4
        return self._has_words is None or self._has_words(
            self._text[start + quarter : end - quarter]
        )

    def _too_long(self, begin: int) -> LimitError:
        return LimitError(
            f"{self._name} can't encode a text of {len(self._text):,} characters: from {begin:,} "
            f"on it has {self._windows.most_chars:,} without a place where it can be taken apart, "
            "and would need memory without a limit. Split or drop the document"
        )


def _starts(text: str, begin: int, target: int) -> Iterator[int]:
    """Yields places near `target` where the window after [begin, ...) may begin."""
    numeric = text[target - 1] in _numeric()
    run = "".join(_numeric()) if numeric else text[target - 1]
    start_of_run = begin + len(text[begin:target].rstrip(run))
    if target - start_of_run >= _STEP:
        target -= (target - start_of_run) % _STEP
    elif numeric:
        target = start_of_run
        numeric = False
    else:
        target -= (target - begin) % _STEP
    step = 12 if numeric else 1
    yield from (target - step * tried for tried in range(_TRIES) if target - step * tried > begin)


def _shared(a: Ids, b: Ids) -> int:
    """Returns how many tokens both begin with."""
    length = min(len(a), len(b))
    unequal = np.flatnonzero(a[:length] != b[:length])
    return int(unequal[0]) if len(unequal) else length


@cache
def _numeric() -> frozenset[str]:
    """Digits and other numbers (Unicode's category N)."""
    every = map(chr, range(sys.maxunicode + 1))
    return frozenset(char for char in every if unicodedata.category(char).startswith("N"))
