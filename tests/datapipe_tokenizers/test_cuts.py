from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe_tokenizers.cuts import cut_holds, find_cut, split_text
from datapipe_tokenizers.groups import plan_groups
from datapipe_tokenizers.huggingface import HuggingFaceEncoder, HuggingFaceFile

LONG_TEXTS = {
    "prose": "The quick brown fox, it's said, jumped over 13 lazy dogs.\n" * 300,
    "no spaces": "\u6f22\u5b57\u3002\u5b57\u6f22\uff0c" * 2000,
    "spaces": " " * 12000,
    "digits": "1234567890" * 1200,
    "white space": "   \n  \n\n x \t\t y\r\n" * 800,
    "code": 'if(a[1]==22){return"x";}\n\tfoo(1234567);' * 300,
    "special text": "a<|endoftext|>b " * 800,
}


@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.integers(0, 50), max_size=40), limit=st.integers(1, 100))
def test_groups_cover_all_and_keep_the_limit(sizes: list[int], limit: int) -> None:
    groups = list(plan_groups(np.array(sizes, dtype=np.int64), limit=limit))
    assert [i for start, stop in groups for i in range(start, stop)] == list(range(len(sizes)))
    for start, stop in groups:
        assert stop - start == 1 or sum(sizes[start:stop]) <= limit


@pytest.mark.parametrize("text", LONG_TEXTS.values(), ids=LONG_TEXTS.keys())
def test_cut_documents_have_the_ids_of_whole_ones(bpe_json: bytes, text: str) -> None:
    column = pa.array(["the", text, "fox"], pa.large_string())
    whole, cut = (encoder(bpe_json, limit).encode(column) for limit in (1 << 30, 2048))
    np.testing.assert_array_equal(cut[0], whole[0])
    np.testing.assert_array_equal(cut[1], whole[1])


def test_pieces_are_close_to_the_limit() -> None:
    pieces = split("word " * 4000, limit=3000)
    assert "".join(pieces) == "word " * 4000
    assert len(pieces) == 7
    assert max(map(len, pieces[:-1])) < 3100
    assert all(piece.endswith("word") for piece in pieces[:-1])


def test_text_without_words_stays_whole() -> None:
    assert split("x" * 20000, limit=3000) == ["x" * 20000]


def test_no_cut_where_a_run_is_counted_from_its_start() -> None:
    digits = "7" * 20000
    assert find_cut(digits, target=3000, encode=in_threes, word_starts=threes) is None
    assert not cut_holds(digits, 3000, encode=in_threes)


def split(text: str, *, limit: int) -> list[str]:
    return list(split_text(text, limit=limit, encode=by_words, word_starts=words))


def by_words(texts: list[str]) -> list[list[int]]:
    return [[len(word) for word in text.split()] for text in texts]


def words(text: str) -> list[int]:
    return [i for i in range(len(text)) if text[i] != " " and (i == 0 or text[i - 1] == " ")]


def in_threes(texts: list[str]) -> list[list[int]]:
    return [[len(text[i : i + 3]) for i in range(0, len(text), 3)] for text in texts]


def threes(text: str) -> list[int]:
    return list(range(0, len(text), 3))


def encoder(data: bytes, batch_bytes: int) -> HuggingFaceEncoder:
    file = HuggingFaceFile(data)
    reserved = frozenset(file.vocabulary.specials)
    return HuggingFaceEncoder(file, reserved=reserved, batch_bytes=batch_bytes)
