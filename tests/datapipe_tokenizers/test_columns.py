from __future__ import annotations

import pyarrow as pa
import pytest

from datapipe_tokenizers import TextError, Tokenizer
from datapipe_tokenizers.columns import Texts, as_column

WORDS = ["a", "\u6f22", ""]


@pytest.mark.parametrize(
    "texts",
    [
        WORDS,
        [word.encode() for word in WORDS],
        tuple(WORDS),
        pa.array([word.encode() for word in WORDS]),
        pa.array([word.encode() for word in WORDS], pa.large_binary()),
        pa.array([word.encode() for word in WORDS], pa.binary_view()),
        pa.chunked_array([pa.array([b"a"]), pa.array([b"\xe6\xbc\xa2", b""])]),
    ],
    ids=["str", "bytes", "tuple", "binary", "large binary", "view", "chunks"],
)
def test_texts_of_every_kind_are_one_column(texts: Texts) -> None:
    assert as_column(texts).to_pylist() == WORDS


@pytest.mark.parametrize(
    "texts",
    [
        ["a", "b", b"c\xff"],
        pa.array([b"a", b"b", b"c\xff"]),
        pa.array([b"a", b"b", b"c\xff"], pa.large_binary()).view(pa.large_string()),
    ],
    ids=["bytes", "binary", "string"],
)
def test_invalid_utf8_is_named(texts: Texts) -> None:
    with pytest.raises(TextError, match=r"text 2 isn't valid UTF-8 .invalid start byte at byte 1"):
        as_column(texts)


@pytest.mark.parametrize("text", ["\ud800", b"\xed\xa0\x80", b"\xc0\x80"], ids=ascii)
def test_what_only_looks_like_utf8_is_refused(text: str | bytes, bpe: Tokenizer) -> None:
    with pytest.raises(TextError):
        bpe.encode_batch([text])
