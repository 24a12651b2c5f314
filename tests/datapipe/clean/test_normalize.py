from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.clean import Normalize, NormalizeOptions
from datapipe.dataset.tables import DROPPED
from datapipe.engine.stages import document_stage

Batch = Callable[[list[str]], pa.RecordBatch]


def plain(text: str) -> str:
    """The same in plain Python, a character at a time."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = "".join(c for c in text if c in "\t\n" or unicodedata.category(c) != "Cc")
    return unicodedata.normalize("NFC", text.lstrip("\ufeff"))


CASES = [
    ("", ""),
    ("plain text\n", "plain text\n"),
    ("a\r\nb\rc\r\r\nd", "a\nb\nc\n\nd"),
    ("\ufeffmarked \ufeff inside", "marked \ufeff inside"),
    ("\ufeff\ufeffx", "x"),
    ("\x00\ufeffx", "x"),
    ("\ufeff\x00\ufeffx", "x"),
    ("a\x00b\x08c\x0bd\x0ce\x1bf\x7fg\x85h\x9fi\tj", "abcdefghi\tj"),
    ("\x00\x01\x02", ""),
    ("cafe\u0301", "café"),
    ("e\x00\u0301", "é"),
    ("q\u0307\u0323", "q\u0323\u0307"),
    ("\u1100\u1161\u11a8", "\uac01"),
    ("\u212b \u2126", "\u00c5 \u03a9"),
    ("\uf900", "\u8c48"),
    ("ﬁ ½ \u200b", "ﬁ ½ \u200b"),
    ("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
    ("\u2028\u2029", "\u2028\u2029"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_texts_are_normalised(batch: Batch, text: str, expected: str) -> None:
    result, dropped, _ = Normalize().apply(batch([text]))
    assert result.column("text").to_pylist() == [expected] == [plain(text)]
    assert (dropped.num_rows, dropped.schema) == (0, DROPPED)


def test_all_texts_at_once_and_nothing_else_changes(batch: Batch) -> None:
    given = batch([text for text, _ in CASES])
    result, *_ = Normalize().apply(given)
    result.validate(full=True)
    assert result.column("text").to_pylist() == [expected for _, expected in CASES]
    assert result.drop_columns("text") == given.drop_columns("text")
    assert result.schema == given.schema


def test_a_batch_that_needs_nothing_comes_back_itself(batch: Batch) -> None:
    given = batch(["plain", "né", "\u4e00"])
    assert Normalize().apply(given)[0] is given
    empty = batch([])
    assert Normalize().apply(empty)[0].num_rows == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"unicode": "none"}, "e\u0301\n\n"),
        ({"control_characters": "keep"}, "é\x00\n\n"),
        ({"unicode": "none", "control_characters": "keep"}, "e\u0301\x00\n\n"),
    ],
)
def test_options_leave_parts_out(batch: Batch, options: dict[str, object], expected: str) -> None:
    stage = document_stage("normalize", options)
    assert stage.apply(batch(["e\u0301\x00\r\n\r"]))[0].column("text").to_pylist() == [expected]
    assert dict(stage.options) == {"unicode": "NFC", "control_characters": "strip"} | options


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="unicode is one of"):
        NormalizeOptions(unicode="NFD")  # type: ignore[arg-type]


_TEXTS = st.lists(
    st.text(
        st.characters(exclude_categories=["Cs"])
        | st.sampled_from("\r\n\x00\ufeffe\u0301\u0307\u1100\u1161\x85 "),
        max_size=12,
    ),
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(texts=_TEXTS)
def test_it_agrees_with_plain_python_and_once_is_enough(batch: Batch, texts: list[str]) -> None:
    result, *_ = Normalize().apply(batch(texts))
    assert result.column("text").to_pylist() == [plain(text) for text in texts]
    assert Normalize().apply(result)[0].equals(result)


def test_the_characters_that_go_are_unicodes_control_characters(batch: Batch) -> None:
    texts = [f"a{chr(c)}b" for c in range(0x3000)]
    result, *_ = Normalize(NormalizeOptions(unicode="none")).apply(batch(texts))
    gone = [c for c, text in enumerate(result.column("text").to_pylist()) if text == "ab"]
    expected = [c for c in range(0x3000) if unicodedata.category(chr(c)) == "Cc"]
    assert gone == [c for c in expected if chr(c) not in "\t\n\r"]
