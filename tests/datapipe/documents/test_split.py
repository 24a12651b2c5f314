from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.documents.characters import character_classes
from datapipe.documents.split import Split, split_texts, text_buffers

TRICKY = (
    "a bZ\u00e9\u4e2d\U0001f600 \t\n\r\v\f\x1c\x1e\x1f\x85\xa0\u1680\u2009\u2028"
    "\u2029\u3000\ufeff\0."
)
TEXTS = st.text(alphabet=st.one_of(st.sampled_from(TRICKY), st.characters(codec="utf-8")))


def split(texts: list[str]) -> tuple[bytes, Split]:
    data, offsets = text_buffers(pa.array(texts, pa.large_string()))
    return bytes(data), split_texts(data, offsets, 0, len(texts), character_classes())


def words_of(data: bytes, found: Split, document: int) -> list[str]:
    low, high = found.doc_words[document : document + 2]
    ends = found.word_start + found.kinds.num_bytes[found.word_kind]
    spans = zip(found.word_start[low:high], ends[low:high], strict=True)
    return [data[start:end].decode() for start, end in spans]


def lines_of(data: bytes, found: Split, document: int) -> list[str]:
    low, high = found.doc_lines[document : document + 2]
    spans = zip(found.line_start[low:high], found.line_end[low:high], strict=True)
    return [data[start:end].decode() for start, end in spans]


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, max_size=5))
def test_words_lines_rows_and_characters_are_those_of_str(texts: list[str]) -> None:
    data, found = split(texts)
    for document, text in enumerate(texts):
        assert words_of(data, found, document) == text.split()
        assert lines_of(data, found, document) == text.split("\n")
        assert found.doc_chars[document] == len(text)
        assert found.doc_rows[document] == len(text.splitlines())


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, max_size=5))
def test_equal_words_and_only_those_have_one_kind(texts: list[str]) -> None:
    _, found = split(texts)
    words = [word for text in texts for word in text.split()]
    kinds: dict[str, int] = {}
    for word, kind in zip(words, found.word_kind.tolist(), strict=True):
        assert kinds.setdefault(word, kind) == kind
    assert len(kinds) == len(found.kinds.start) == len(set(kinds.values()))
    assert all(found.kinds.num_chars[kind] == len(word) for word, kind in kinds.items())


def test_a_line_knows_its_first_word_and_its_characters() -> None:
    _, found = split(["one two\n\n  \u00e9t\u00e9\n", "x"])
    assert found.line_word.tolist() == [0, 2, 2, 3, 3, 4]
    assert found.line_chars.tolist() == [7, 0, 5, 0, 1]


@pytest.mark.parametrize("first", [0, 1, 3], ids=["all", "from the second", "none"])
def test_a_slice_of_an_array_is_split_as_it_stands(first: int) -> None:
    texts = pa.array(["a b", "c", "d e f"], pa.large_string())[first:]
    data, offsets = text_buffers(texts)
    found = split_texts(data, offsets, 0, len(texts), character_classes())
    assert found.doc_words.tolist() == [0, 2, 3, 6][: 4 - first] if first == 0 else True
    assert len(found.word_kind) == sum(len(text.split()) for text in texts.to_pylist())
