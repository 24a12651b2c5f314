"""Code points that the libraries read differently are the reference's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datapipe_tokenizers import load_files
from datapipe_tokenizers.disputed import _PLAIN, DISPUTED, _follows, disputed_rows

EVERY = [code for low, high in DISPUTED for code in range(low, high + 1)]
CODES = [code for low, high in DISPUTED for code in {low, high}]
# Latin, kana, ideographs, Hangul, quotation marks, full-width forms, Devanagari, Thai, Vietnamese,
# Georgian, Burmese, Arabic, Telugu, Lao, emoji
PLAIN_STARTS = (
    *(0x61, 0x3042, 0x4E00, 0xAC00, 0x2018, 0xFF01, 0x905, 0xE01, 0x1EA0),
    *(0x10D0, 0x1000, 0x627, 0xC05, 0xE81, 0x1F600),
)
PLAIN_TEXTS = ["".join(map(chr, range(start, start + 12))) for start in PLAIN_STARTS]
odd = st.sampled_from([chr(code + step) for code in CODES for step in (-1, 0, 1)])


some = st.lists(odd | st.text(max_size=3), max_size=4).map("".join)


def rows_by_hand(texts: list[str]) -> list[int]:
    codes = set(EVERY)
    return [row for row, text in enumerate(texts) if not codes.isdisjoint(map(ord, text))]


@given(st.lists(some, max_size=5))
def test_texts_with_disputed_code_points_are_found(texts: list[str]) -> None:
    column = pa.array(["x", *texts], pa.large_string()).slice(1)
    assert disputed_rows(column).tolist() == rows_by_hand(texts)


@given(st.lists(some, max_size=5), st.lists(st.sampled_from(PLAIN_TEXTS), max_size=9))
def test_they_are_found_among_what_is_ruled_out(texts: list[str], plain: list[str]) -> None:
    texts = [*plain, *(f"{before}{text}" for before in plain or [""] for text in texts), *plain]
    column = pa.array(texts, pa.large_string())
    assert disputed_rows(column).tolist() == rows_by_hand(texts)


def test_no_rule_rules_a_disputed_code_point_out() -> None:
    firsts, seconds = (
        np.array([chr(code).encode()[place] for code in EVERY], np.uint8) for place in (0, 1)
    )
    assert not any(_follows(rule, firsts, seconds).any() for rule in _PLAIN)


def test_every_disputed_code_point_is_found_behind_text_of_its_own_script() -> None:
    texts = [chr(code) * 3 + chr(code - 64) * 90 for code in EVERY if not 0xD7FF < code < 0xE040]
    assert disputed_rows(pa.array(texts, pa.large_string())).tolist() == [*range(len(texts))]


@pytest.mark.parametrize("size", [3, 4, 5, 6, 7])
def test_code_points_across_parts_are_found(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datapipe_tokenizers.disputed._PART_BYTES", size)
    texts = [f"{'a' * before}{chr(code)}" for code in CODES[::9] for before in range(4)]
    assert disputed_rows(pa.array(["b", *texts], pa.large_string())).tolist() == [
        *range(1, 1 + len(texts))
    ]


@pytest.mark.parametrize("frame", ["{}'s", "a{}b", "1{} {}"])
def test_ids_are_those_of_the_reference(bpe_json: bytes, frame: str) -> None:
    texts = [frame.replace("{}", chr(code)) for code in CODES]
    ours, theirs = (
        load_files({"tokenizer.json": bpe_json}, backend=backend).encode_batch(texts)
        for backend in ("gigatoken", "reference")
    )
    np.testing.assert_array_equal(ours[1], theirs[1])
    np.testing.assert_array_equal(ours[0], theirs[0])
