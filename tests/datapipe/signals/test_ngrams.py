"""The n-gram kernels against plain Python that follows the definitions to the letter."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datapipe.signals.measure import measure

WORDS = st.sampled_from(
    [
        "a",
        "b",
        "ab",
        "ba",
        "aab",
        "\u00e9",
        "\u4e2d\u4e2d",
        "a\u0301",
        "longerthan8bytes",
        "longerthan8bytez",
    ]
)
TEXTS = st.lists(WORDS, max_size=60).map(" ".join)


def ngrams(words: list[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def size(words: tuple[str, ...] | list[str]) -> int:
    return sum(map(len, words))


def repeated_top(words: list[str], n: int) -> float:
    counts = Counter(ngrams(words, n))
    most = max(counts.values(), default=1)
    if most == 1:
        return 0.0
    longest = max(size(ngram) for ngram, count in counts.items() if count == most)
    return longest * most / size(words)


def covered(words: list[str], n: int) -> float:
    counts = Counter(ngrams(words, n))
    places: set[int] = set()
    for i, ngram in enumerate(ngrams(words, n)):
        if counts[ngram] > 1:
            places.update(range(i, i + n))
    return sum(len(words[i]) for i in places) / max(1, size(words))


def first_top(words: list[str], n: int) -> float:
    counts = Counter(ngrams(words, n))
    if not counts:
        return 0.0
    ngram, count = counts.most_common(1)[0]
    return count * size(ngram) / size(words)


def occurrences(words: list[str], n: int) -> float:
    counts = Counter(ngrams(words, n))
    whole = sum(size(ngram) * count for ngram, count in counts.items())
    again = sum(size(ngram) * count for ngram, count in counts.items() if count > 1)
    return again / max(1, whole)


def jumping(text: str, words: list[str], n: int) -> float:
    seen: set[str] = set()
    again = i = 0
    while i <= len(words) - n:
        joined = "".join(words[i : i + n])
        if joined in seen:
            again, i = again + len(joined), i + n
        else:
            seen.add(joined)
            i += 1
    return again / max(1, len(text))


def spaced_top(text: str, words: list[str], n: int) -> float:
    counts = Counter(" ".join(ngram) for ngram in ngrams(words, n))
    if not counts:
        return 0.0
    ngram, count = counts.most_common(1)[0]
    return len(ngram) * count / len(text)


@settings(max_examples=150, deadline=None)
@example("a ab b a b ab a ab b")
@example("a a a a a a a a a a a a")
@given(TEXTS)
def test_shares_of_n_grams_are_those_of_the_definitions(text: str) -> None:
    names = [
        *(f"{kind}top_{n}_gram_fraction" for kind in ("", "dolma_", "en_") for n in (2, 3, 4)),
        *(f"{kind}dup_{n}_gram_fraction" for kind in ("", "dolma_", "en_") for n in range(5, 11)),
    ]
    found = measure(pa.array(["x y x y", text], pa.large_string()), names)
    words = text.split()  # all of these are English words as they stand
    for n in (2, 3, 4):
        wanted = (repeated_top(words, n), first_top(words, n), spaced_top(text, words, n))
        got = tuple(found[f"{kind}top_{n}_gram_fraction"][1] for kind in ("", "dolma_", "en_"))
        np.testing.assert_allclose(got, wanted, err_msg=str(n))
    for n in range(5, 11):
        wanted = (covered(words, n), occurrences(words, n), jumping(text, words, n))
        got = tuple(found[f"{kind}dup_{n}_gram_fraction"][1] for kind in ("", "dolma_", "en_"))
        np.testing.assert_allclose(got, wanted, err_msg=str(n))
