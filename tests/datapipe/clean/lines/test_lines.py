from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from datapipe.engine.stages import document_stage
from datapipe.errors import InputError

Batch = Callable[[list[str]], pa.RecordBatch]
Outcome = Callable[..., Any]


@pytest.fixture
def outcome(batch: Batch) -> Outcome:
    """What a stage makes of one text: the new text, or (rule, value, threshold)."""

    def outcome(stage: str, text: str, **options: object) -> object:
        kept, dropped, _ = document_stage(stage, options).apply(batch([text]))
        assert kept.num_rows + dropped.num_rows == 1
        if kept.num_rows:
            return kept.column("text")[0].as_py()
        (row,) = dropped.to_pylist()
        assert row["stage"] == stage
        return row["rule"], row["value"], row["threshold"]

    return outcome


NO_LINES = ("no_lines", None, None)


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("A line of text.\nno end here\n Two words.\nIt is so!", {}, "A line of text.\nIt is so!"),
        ("It goes on and on...", {}, NO_LINES),
        ("It goes on and on...", {"terminal_punctuation": False}, "It goes on and on..."),
        ("A fact is known[1][edit].", {}, "A fact is known."),
        ("A fact is known. [1]", {}, NO_LINES),
        ("A fact is known[1].", {"citations": False}, "A fact is known[1]."),
        (f"Long {'x' * 1001} word.", {}, NO_LINES),
        (f"Long {'x' * 1001} word.", {"max_word_chars": 0}, f"Long {'x' * 1001} word."),
        ("Please turn JavaScript on.\nA line of text.", {}, "A line of text."),
        ("See our Privacy Policy here.\nA line of text.", {}, "A line of text."),
        ("A line of text.\nLorem ipsum dolor sit.", {}, ("lorem_ipsum", None, None)),
        ("A line of text.\nlorem ipsum", {}, "A line of text."),
        ("A line of text.\nif (a) { b; }.", {}, ("curly_bracket", None, None)),
        ("A line of text.\u2028Another one too.", {}, "A line of text.\nAnother one too."),
        ("Two words.", {"min_words": 0}, "Two words."),
        ("", {}, NO_LINES),
        (" \n\x00", {}, NO_LINES),
    ],
)  # fmt: skip
def test_c4_lines(outcome: Outcome, text: str, options: Any, expected: object) -> None:
    assert outcome("c4_lines", text, **options) == expected


LONG = "This is a line with enough words in it that losing a few others doesn't matter at all here."


@pytest.mark.parametrize(
    ("line", "stays"),
    [
        ("MAIN HEADING OF THIS", ""), ("2024 17 05", ""), ("1,234 Likes", ""),
        ("3.5k comments", ""), ("Home", ""), ("Sign in to comment", "to comment"),
        ("More about it. Read more...", "More about it."),
        ("3 items in cart", ""), ("an ordinary line", "an ordinary line"), ("", ""),
        (f"A sign in {LONG}", f"A sign in {LONG}"),
        ("He likes 3 views", "He likes 3 views"),
    ],
)  # fmt: skip
def test_refinedweb_lines(outcome: Outcome, line: str, stays: str) -> None:
    text = "\n".join([LONG] * 10)
    expected = f"{text}\n{stays}" if stays or not line else text
    assert outcome("refinedweb_lines", f"{text}\n{line}") == expected


def test_refinedweb_lines_drops_what_loses_too_many_words(outcome: Outcome) -> None:
    text = "one two three\nHOME"
    assert outcome("refinedweb_lines", text) == ("removed_words", 0.25, 0.05)
    assert outcome("refinedweb_lines", text, max_removed_fraction=0.25) == "one two three"
    assert outcome("refinedweb_lines", "") == ""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "A first line\n\nshort\nanother, longer line;"),
        ({"boilerplate": False}, "A first line\n\nshort\nSkip to content\nanother, longer line;"),
        ({"min_words": 2}, "A first line\n\nanother, longer line;"),
        ({"min_chars": 13}, "\nanother, longer line;"),
        ({"max_chars": 13}, "A first line\n\nshort"),
        ({"ends": [";", "!"]}, "\nanother, longer line;"),
        ({"containing": ["FIRST"]}, "\nshort\nanother, longer line;"),
        ({"max_removed_fraction": 0.2}, ("removed_characters", pytest.approx(16 / 57), 0.2)),
    ],
)
def test_line_rules(outcome: Outcome, options: Any, expected: object) -> None:
    text = "A first line\n\nshort\nSkip to content\nanother, longer line;"
    assert outcome("line_rules", text, **options) == expected


def test_lines_of_a_file_go(outcome: Outcome, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("Imprint \n\nHome\n")
    text = "Imprint\n\nkept\n Home"
    assert outcome("line_rules", text, block_lines=str(path)) == "\nkept"


def test_a_file_of_lines_that_cant_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"lines\.txt of line_rules can't be read"):
        document_stage("line_rules", {"block_lines": str(path)})


@pytest.mark.parametrize(
    ("stage", "text", "options", "expected"),
    [
        ("duplicate_lines", "a\nb\na\n\n\nb \nc", {}, "a\nb\n\n\nc"),
        ("duplicate_lines", "a\nb\nc", {}, "a\nb\nc"),
        ("duplicate_lines", "aa\nb\naa\nb", {"min_chars": 2}, "aa\nb\nb"),
        (
            "duplicate_lines",
            "a\na\na\na",
            {"max_removed_fraction": 0.5},
            ("repeated", pytest.approx(6 / 7), 0.5),
        ),
        ("duplicate_lines", "", {}, ""),
        ("duplicate_paragraphs", "a\nb\n\nc\n\na\nb\n \nd", {}, "a\nb\n\nc\n \nd"),
        ("duplicate_paragraphs", "a\na\n\nb\na", {}, "a\na\n\nb\na"),
        ("duplicate_paragraphs", "\n\na\n\na", {}, "\n\na"),
    ],
)
def test_of_what_is_repeated_the_first_stays(
    outcome: Outcome, stage: str, text: str, options: Any, expected: object
) -> None:
    assert outcome(stage, text, **options) == expected
