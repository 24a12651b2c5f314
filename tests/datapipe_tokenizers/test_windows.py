"""Texts encoded in windows have the ids of whole ones."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe_tokenizers import LimitError, Tokenizer, load_files, train_bpe
from datapipe_tokenizers.groups import Ids
from datapipe_tokenizers.windows import Windows, encode_long

WINDOWS = Windows(chars=1024, most_chars=8192)
LENGTH = 12_000

RUNS = ["a", " ", "7", "=", "\n", "\u6f22", "\u00e9", "\u0301", "\U0001f600", "\u0667"]
RUNS += ["ab", "abc", "\r\n", " \n", "the ", "e\u0301", "-=", "'s", "\n/", "12", "a1"]
POOLS = {
    "letters": "abcdefghijklmnopqrstuvwxyz",
    "capitals": "aBcDEFG",
    "digits": "0123456789",
    "more digits": "01\u0661\u0662\u0967\u00b2\u2167",
    "punctuation": "!?.,;:'\"()[]{}/\\@#$%^&*-_=+",
    "contractions": "'sdtmrevl!",
    "ideographs": [chr(code) for code in range(0x4E00, 0x9FFF)],
    "emoji": [chr(code) for code in range(0x1F600, 0x1F64F)],
    "marks": "ae\u0301\u0323\u0308",
    "line ends": " \n\r",
    "mixture": [chr(code) for code in range(0x20, 0xD7FF)],
    "words": ["the ", "quick", " brown", "fox\n", "x1 ", "  ", "na\u00efve "],
}

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}{{1,3}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {"gpt2": GPT2, "llama3": LLAMA3, "o200k": O200K}


def pre_tokenizer(pattern: str) -> dict[str, object]:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "type": "Sequence",
        "pretokenizers": [split | {"invert": False}, level | {"use_regex": False}],
    }


@pytest.fixture(scope="module", params=list(PATTERNS.values()), ids=list(PATTERNS))
def splitting(request: pytest.FixtureRequest, edited_bpe: Callable[..., bytes]) -> Tokenizer:
    return load_files({"tokenizer.json": edited_bpe(pre_tokenizer=pre_tokenizer(request.param))})


def in_windows(tokenizer: Tokenizer, text: str, windows: Windows = WINDOWS) -> Ids:
    return encode_long(
        text, lambda part: tokenizer.encode_batch([part])[0], windows=windows, name="it"
    )


def same_as_whole(tokenizer: Tokenizer, text: str) -> None:
    np.testing.assert_array_equal(in_windows(tokenizer, text), tokenizer.encode_batch([text])[0])


@pytest.mark.parametrize("unit", RUNS, ids=ascii)
def test_runs(splitting: Tokenizer, unit: str) -> None:
    for text in (unit * LENGTH, "x y" + unit * LENGTH + "z " + unit * 1777 + "\n"):
        same_as_whole(splitting, text)


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_random_texts(splitting: Tokenizer, pool: list[str]) -> None:
    same_as_whole(splitting, "".join(random.Random(1).choices(pool, k=LENGTH)))


def test_digits_are_counted_from_where_they_begin(splitting: Tokenizer) -> None:
    draw = random.Random(2)
    for before in range(4):
        digits = "".join(draw.choices("0123456789", k=LENGTH))
        same_as_whole(splitting, "x" * before + "7" * LENGTH + digits + "a" + digits)


@settings(max_examples=25, deadline=None)
@given(
    parts=st.lists(
        st.tuples(st.text(min_size=1, max_size=4), st.integers(1, 1500)), min_size=4, max_size=16
    ),
    seed=st.integers(0, 9),
)
def test_mixtures_of_runs(bpe: Tokenizer, parts: list[tuple[str, int]], seed: int) -> None:
    noise = "".join(random.Random(seed).choices("ab 1\n'\u6f22", k=3000))
    same_as_whole(bpe, "".join(unit * count for unit, count in parts) + noise)


@settings(max_examples=10, deadline=None)
@given(alphabet=st.text("abcd", min_size=2, max_size=4), seed=st.integers(0, 99))
def test_bpe_of_any_merges(alphabet: str, seed: int) -> None:
    draw = random.Random(seed)
    learned = ["".join(draw.choices(alphabet, k=40)) for _ in range(60)]
    tokenizer = load_files({"tokenizer.json": train_bpe(learned, vocab_size=420)})
    same_as_whole(tokenizer, "".join(draw.choices(alphabet, k=LENGTH)))
    same_as_whole(tokenizer, "".join(draw.choices(alphabet, k=7)) * (LENGTH // 7))


def test_white_space_that_ends_nowhere_is_refused(splitting: Tokenizer) -> None:
    with pytest.raises(LimitError, match=r"it can't encode a text of 30,003 .* from .* 8,192 with"):
        in_windows(splitting, "a\n" + " " * 30_000 + "b")


def test_words_that_are_seen_as_a_whole_are_never_parted(unigram_json: bytes) -> None:
    tokenizer = load_files({"tokenizer.json": unigram_json}, backend="huggingface")
    words = ("the cab made him help " * 60_000)[:-1]
    whole = tokenizer.encode_batch([words[: 22 * 10 - 1]])[0]
    np.testing.assert_array_equal(tokenizer.encode_batch([words])[0], np.tile(whole, 6000))
    with pytest.raises(LimitError, match="huggingface can't encode a text of 5,000,000 characters"):
        tokenizer.encode_batch(["a" * 5_000_000])
