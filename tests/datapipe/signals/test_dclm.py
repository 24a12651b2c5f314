"""DCLM's rules have no package to run: its definitions in plain Python, beside the kernels."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datapipe.signals.measure import measure

STOP_WORDS = {"the", "be", "to", "of", "and", "that", "have", "with"}
PIECES = st.sampled_from(
    [
        "the",
        "Of",
        "word",
        "42",
        "#",
        "...",
        ". . .",
        "\u2026",
        "- item",
        "* item",
        "\u25cf",
        "\u2022 x",
        " ",
        "\n",
        "\n\n",
        "\t",
        "\u00a0",
        "\0",
        ".",
        "caf\u00e9",
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map(" ".join) | st.lists(PIECES, max_size=40).map("".join)


def segments(text: str, end: str) -> list[str]:
    return [found for part in re.split(end, text) if (found := part.strip())]


def repeated(parts: list[str]) -> tuple[float, float]:
    if len(parts) < 2:
        return 0.0, 0.0
    counts = Counter(parts)
    again = [(part, count) for part, count in counts.items() if count > 1]
    chars = sum(len(part) * count for part, count in again) / sum(map(len, parts))
    return sum(count for _, count in again) / len(parts), chars


def counted(text: str) -> int:
    tokens = [token for token in re.split("[ \n\r\t\v\f\0]", text) if token]
    return sum(1 for token in tokens if token[0].isalnum())


def defined(text: str) -> dict[str, float]:
    words, lines = text.split(), segments(text, "\n")
    total, num_lines = max(1, len(words)), max(1, len(lines))
    symbols = sum(text.count(symbol) for symbol in ("#", "...", ". . .", "\u2026"))
    line, line_chars = repeated(lines)
    para, para_chars = repeated(segments(text, "\n\n"))
    return {
        "counted_words": counted(text),
        "mean_word_length": sum(map(len, words)) / total,
        "symbols_per_word": symbols / total if words else 0.0,
        "stripped_bullet_line_fraction": sum(
            found.startswith(("\u25cf", "\u2022", "*", "-")) for found in lines
        )
        / num_lines,
        "stripped_ellipsis_line_fraction": sum(
            found.endswith(("...", ". . .", "\u2026")) for found in lines
        )
        / num_lines,
        "non_alpha_word_fraction": sum(not any(map(str.isalpha, word)) for word in words) / total,
        "stop_words_folded": sum(word.lower() in STOP_WORDS for word in words),
        "stripped_dup_line_fraction": line,
        "stripped_dup_line_char_fraction": line_chars,
        "stripped_dup_para_fraction": para,
        "stripped_dup_para_char_fraction": para_chars,
    }


@settings(max_examples=200, deadline=None)
@example("\u00a0the")
@example("a \u00a0the")
@example("a\u00a0 the\0of")
@given(TEXTS)
def test_signals_are_those_of_the_definitions(text: str) -> None:
    wanted = defined(text)
    found = measure(pa.array([text], pa.large_string()), wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name][0], value, err_msg=name)


@pytest.mark.parametrize(
    ("text", "dup"),
    [("one\ntwo\n one \n\n\n", 2 / 3), ("one\n\none\n", 1.0), ("one", 0.0)],
    ids=["stripped", "all", "single"],
)
def test_all_copies_of_a_repeated_line_count(text: str, dup: float) -> None:
    found = measure(pa.array([text], pa.large_string()), ["stripped_dup_line_fraction"])
    assert found["stripped_dup_line_fraction"].tolist() == [dup]
