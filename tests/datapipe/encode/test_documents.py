from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.documents import batch_from_columns
from datapipe.encode import check_sample, encode_documents
from datapipe.encode.documents import close_documents
from datapipe.errors import FailedError
from datapipe_tokenizers import Difference, Tokenizer, load_files, train_bpe


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    texts = ["the quick brown fox <|endoftext|>"] * 20
    return load_files({"tokenizer.json": train_bpe(texts, vocab_size=300)})


UINT16 = np.dtype("<u2")


@dataclass(frozen=True)
class FakeTokenizer:
    """Encodes the texts "3 4 5" to the ids that they name."""

    eos_id: int = 0
    max_id: int = 65_535
    token_dtype: np.dtype[Any] = UINT16

    def encode_batch(self, texts: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        documents = [[int(word) for word in text.split()] for text in texts.to_pylist()]
        offsets = np.cumsum([0, *map(len, documents)])
        return np.array([*chain(*documents)], dtype=np.uint32), offsets.astype(np.int64)


def encode(texts: list[str], *, append_eos: bool = True, **facts: Any) -> tuple[Any, list[int]]:
    tokenizer = cast(Tokenizer, FakeTokenizer(**facts))
    tokens, counts = encode_documents(batch_of(texts), tokenizer, append_eos=append_eos)
    return tokens, counts.tolist()


def batch_of(texts: list[str]) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(texts, pa.large_string())})


def test_every_document_is_closed_once() -> None:
    tokens, counts = encode(["5 6", "", "7", ""])
    assert tokens.dtype == np.dtype("<u2")
    assert tokens.tolist() == [5, 6, 0, 0, 7, 0, 0]
    assert counts == [3, 1, 2, 1]


def test_without_end_of_text_tokens() -> None:
    tokens, counts = encode(["5 6", "", "7"], append_eos=False)
    assert tokens.tolist() == [5, 6, 7]
    assert counts == [2, 0, 1]


@pytest.mark.parametrize("append_eos", [True, False])
def test_no_documents(append_eos: bool) -> None:
    tokens, counts = encode([], append_eos=append_eos)
    assert (tokens.dtype, tokens.tolist(), counts) == (np.dtype("<u2"), [], [])


@settings(max_examples=50, deadline=None)
@given(documents=st.lists(st.lists(st.integers(1, 9), max_size=5), max_size=8))
def test_closing_equals_the_plain_loop(documents: list[list[int]]) -> None:
    offsets = np.cumsum([0, *map(len, documents)])
    tokens = np.array([*chain(*documents)], dtype=np.uint16)
    closed = close_documents(tokens, offsets, eos_id=0)
    assert closed.tolist() == [*chain(*([*document, 0] for document in documents))]


@pytest.mark.parametrize(
    ("largest", "dtype"), [("65535", "<u2"), ("65536", "<u4")], ids=["uint16", "uint32"]
)
def test_largest_id_survives(largest: str, dtype: str) -> None:
    tokens, _ = encode([largest], token_dtype=np.dtype(dtype), max_id=int(largest))
    assert tokens.tolist() == [int(largest), 0]


def test_id_beyond_the_dtype_is_refused() -> None:
    with pytest.raises(FailedError, match="token id 65536 doesn't fit uint16"):
        encode(["65536"])


def test_end_of_text_token_inside_a_text_is_refused() -> None:
    with pytest.raises(FailedError, match=r"document 2 of the batch contains .* token 9"):
        encode(["1", "", "2 9", "9"], eos_id=9)


@pytest.mark.parametrize("text", ["<|endoftext|>", "the fox<|endoftext|>", "<|endoftext|>\n", ""])
def test_document_that_ends_in_the_text_of_the_token_is_closed_once(
    bpe: Tokenizer, text: str
) -> None:
    tokens, counts = encode_documents(batch_of([text, "the"]), bpe, append_eos=True)
    assert np.flatnonzero(tokens == bpe.eos_id).tolist() == (np.cumsum(counts) - 1).tolist()
    assert bpe.decode(tokens[: counts[0] - 1]) == text


@dataclass
class DisagreeingTokenizer:
    """Differs from its reference in every text with "bad"."""

    backend: str = "fast"
    compared: int = 0

    def compare(self, texts: pa.Array) -> Difference | None:
        self.compared += len(texts)
        rows = [row for row, text in enumerate(texts.to_pylist()) if "bad" in text]
        return Difference(row=rows[0], token=2, found=7, expected=None) if rows else None


def documents(texts: list[str]) -> pa.RecordBatch:
    places = np.arange(len(texts), dtype=np.int64)
    return batch_from_columns(
        pa.array(texts, pa.large_string()),
        source="s",
        source_file="a.jsonl",
        offsets=places * 100,
        lengths=places,
    )


def check(texts: list[str], *, one_in: int) -> int:
    tokenizer = DisagreeingTokenizer()
    check_sample(documents(texts), cast(Tokenizer, tokenizer), one_in=one_in)
    return tokenizer.compared


def test_the_share_of_documents_that_is_checked() -> None:
    texts = [f"document {number}" for number in range(2000)]
    assert check(texts, one_in=0) == 0
    assert check(texts, one_in=1) == 2000
    assert 140 < check(texts, one_in=10) < 260


def test_the_same_documents_are_checked_in_any_batch() -> None:
    texts = [f"document {number}" for number in range(300)]
    parts = [texts[:100], texts[100:101], [], texts[101:]]
    assert sum(check(part, one_in=7) for part in parts) == check(texts, one_in=7)


def test_a_slice_is_checked_by_its_own_hashes() -> None:
    whole = documents([f"document {number}" for number in range(300)])
    tokenizer = DisagreeingTokenizer()
    check_sample(whole.slice(100), cast(Tokenizer, tokenizer), one_in=7)
    assert tokenizer.compared == check(
        [f"document {number}" for number in range(100, 300)], one_in=7
    )


def test_a_difference_names_the_document_and_the_token() -> None:
    texts = ["good", "good too", "a bad one"]
    expected = documents(texts)["doc_id"][2].as_py().hex()
    with pytest.raises(FailedError, match=rf"{expected} \(a.jsonl at 200\): token 2 is 7 by fast"):
        check(texts, one_in=1)
