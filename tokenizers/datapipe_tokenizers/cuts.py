"""Where a very long document is cut.

Hugging Face's encoder needs about 120 bytes of memory for each byte of text that it is given at
once (measured on GPT-2, Qwen 3, T5 and BERT), so it is given bounded pieces. A cut must not change
the ids. It is made only between two words of the tokenizer's own pre-tokenizer, after a character
that isn't white space, and only if the text around it gives the same ids in one piece and in two,
for several places where the piece before it could begin: so a run that is split by counting from
its start (digits in threes) is never cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

__all__ = ["REACH_CHARS", "cut_holds", "find_cut", "split_text"]

REACH_CHARS = 512
"""How far a cut looks to both sides."""

_SHIFTS = range(4)
_WINDOWS = 8
_CANDIDATES = 4  # a window; each costs nine encodings of it

Encode = Callable[[list[str]], list[list[int]]]
WordStarts = Callable[[str], Sequence[int]]


def split_text(text: str, *, limit: int, encode: Encode, word_starts: WordStarts) -> Iterator[str]:
    """Yields consecutive pieces of `text`, about `limit` characters each, cut where it is safe.

    A piece is longer where there is no safe place; it is never cut at an unsafe one.

    Args:
        text: What to split.
        limit: Characters from which on a cut is looked for.
        encode: Texts -> ids of each.
        word_starts: A text -> the places, in characters, where its words begin.
    """
    start, target = 0, limit
    while target + 2 * REACH_CHARS < len(text):
        cut = find_cut(text, target=target, encode=encode, word_starts=word_starts)
        if cut is not None:
            yield text[start:cut]
            start = cut
        target = (cut or target) + limit
    yield text[start:]


def find_cut(text: str, *, target: int, encode: Encode, word_starts: WordStarts) -> int | None:
    """Returns the first safe place found from `target` characters on, None if there is none near.

    `target` lies at least REACH_CHARS + 3 characters from the start.
    """
    for window in range(_WINDOWS):
        begin = target + window * REACH_CHARS
        words = text[begin : begin + REACH_CHARS]
        for place in word_starts(words)[1 : 1 + _CANDIDATES]:
            # Before the white space that leads to the word, so that none ends a piece.
            cut = begin + len(words[:place].rstrip())
            if cut > begin and cut_holds(text, cut, encode=encode):
                return cut
    return None


def cut_holds(text: str, cut: int, *, encode: Encode) -> bool:
    """Whether the text around `cut` gives the same ids in one piece and in two."""
    after = text[cut : cut + REACH_CHARS]
    befores = [text[cut - REACH_CHARS - shift : cut] for shift in _SHIFTS]
    tail, *ids = encode([after, *befores, *(before + after for before in befores)])
    heads, wholes = ids[: len(befores)], ids[len(befores) :]
    return all(head + tail == whole for head, whole in zip(heads, wholes, strict=True))
