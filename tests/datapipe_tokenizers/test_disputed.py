"""Code points that the libraries read differently are the reference's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datapipe_tokenizers import load_files
from datapipe_tokenizers.disputed import DISPUTED, disputed_rows

CODES = [code for low, high in DISPUTED for code in {low, high}]
odd = st.sampled_from([chr(code + step) for code in CODES for step in (-1, 0, 1)])


@given(st.lists(st.lists(odd | st.text(max_size=3), max_size=4).map("".join), max_size=5))
def test_texts_with_disputed_code_points_are_found(texts: list[str]) -> None:
    expected = [
        row
        for row, text in enumerate(texts)
        if any(low <= ord(char) <= high for char in text for low, high in DISPUTED)
    ]
    column = pa.array(["x", *texts], pa.large_string()).slice(1)
    assert disputed_rows(column).tolist() == expected


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
