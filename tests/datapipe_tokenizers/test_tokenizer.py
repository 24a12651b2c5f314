from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe_tokenizers import TextError, Tokenizer, TokenizerFormatError, load_files

TEXTS = ["the quick brown fox", "", "\u6f22\u5b57 \U0001f600", "<|endoftext|>", "  the\n\n"]


def test_offsets_part_the_ids_by_text(bpe: Tokenizer) -> None:
    ids, offsets = bpe.encode_batch(TEXTS)
    assert ids.dtype == np.uint32
    assert offsets.dtype == np.int64
    assert offsets[0] == 0
    assert offsets[-1] == len(ids)
    parts = [ids[start:stop] for start, stop in pairwise(offsets)]
    assert [bpe.decode(part) for part in parts] == TEXTS


@pytest.mark.parametrize(
    "column",
    [
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.string_view()),
        pa.array(TEXTS).dictionary_encode(),
        pa.array(["x", *TEXTS, "y"]).slice(1, len(TEXTS)),
        pa.chunked_array([TEXTS[:2], TEXTS[2:]]),
        tuple(TEXTS),
    ],
    ids=["string", "large_string", "view", "dictionary", "slice", "chunked", "tuple"],
)
def test_every_kind_of_column_gives_the_same(bpe: Tokenizer, column: Sequence[str]) -> None:
    expected = bpe.encode_batch(TEXTS)
    for ours, theirs in zip(bpe.encode_batch(column), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "texts",
    [[], pa.array([], pa.string()), pa.chunked_array([], type=pa.string())],
    ids=["list", "array", "chunked"],
)
def test_no_texts_give_no_ids(bpe: Tokenizer, texts: list[str]) -> None:
    ids, offsets = bpe.encode_batch(texts)
    assert ids.dtype == np.uint32
    assert (ids.tolist(), offsets.tolist()) == ([], [0])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (pa.array(["a", None, None]), "2 of 3 texts are null"),
        (pa.array([{"a": 1}]), "a column of struct.* can't be encoded as text"),
        (["a", "\ud800"], "text 1 .* lone surrogates"),
        (["a", 7], "can't be encoded"),
        ("a text", "one str was given"),
        (
            pa.Array.from_buffers(
                pa.large_string(),
                1,
                [None, pa.py_buffer(np.array([0, 2], np.int64)), pa.py_buffer(b"a\xff")],
            ),
            "isn't valid UTF-8",
        ),
    ],
    ids=["null", "struct", "surrogate", "number", "str", "invalid utf-8"],
)
def test_what_is_no_text_is_refused(bpe: Tokenizer, texts: list[str], message: str) -> None:
    with pytest.raises(TextError, match=message):
        bpe.encode_batch(texts)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text(), max_size=5))
def test_byte_level_bpe_gives_every_text_back(bpe: Tokenizer, texts: list[str]) -> None:
    ids, offsets = bpe.encode_batch(texts)
    parts = np.split(ids, offsets[1:-1]) if texts else []
    assert [bpe.decode(part) for part in parts] == texts
    assert bpe.eos_id not in ids


@pytest.mark.parametrize("ids", [[380], [-1], [0, 10_000_000]], ids=["next", "negative", "far"])
def test_ids_of_another_tokenizer_are_not_decoded(bpe: Tokenizer, ids: list[int]) -> None:
    with pytest.raises(ValueError, match=r"isn't in the vocabulary \(largest id 379\)"):
        bpe.decode(ids)


@pytest.mark.parametrize(
    ("vocab_size", "dtype"),
    [(50_257, "<u2"), (65_536, "<u2"), (65_537, "<u4"), (100_277, "<u4"), (128_256, "<u4")],
)
def test_dtype_at_the_boundary(
    words_json: Callable[[int], bytes], vocab_size: int, dtype: str
) -> None:
    tokenizer = load_files({"tokenizer.json": words_json(vocab_size)})
    assert (tokenizer.vocab_size, tokenizer.max_id) == (vocab_size, vocab_size - 1)
    assert tokenizer.eos_id == tokenizer.max_id
    assert tokenizer.token_dtype == np.dtype(dtype)
    ids, _ = tokenizer.encode_batch([f"{vocab_size - 2} 1"])
    assert ids.astype(tokenizer.token_dtype).tolist() == [vocab_size - 2, 1]


def test_settings_of_the_file_that_change_a_document_are_off(
    bpe: Tokenizer, bpe_json: bytes, edited_bpe: Callable[..., bytes]
) -> None:
    truncation = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    padding = {
        "strategy": {"Fixed": 64},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "<|endoftext|>",
    }
    model = json.loads(bpe_json)["model"] | {"dropout": 0.5}
    data = edited_bpe(truncation=truncation, padding=padding, model=model)
    tokenizer = load_files({"tokenizer.json": data})
    np.testing.assert_array_equal(tokenizer.encode_batch(TEXTS)[0], bpe.encode_batch(TEXTS)[0])


def test_a_post_processor_adds_nothing(bpe: Tokenizer, edited_bpe: Callable[..., bytes]) -> None:
    special = {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}
    parts = [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}]
    sequence = [{"Sequence": {"id": "A", "type_id": 0}}]
    template = {
        "type": "TemplateProcessing",
        "single": parts + sequence + parts,
        "pair": sequence,
        "special_tokens": {"<|endoftext|>": special},
    }
    tokenizer = load_files({"tokenizer.json": edited_bpe(post_processor=template)})
    np.testing.assert_array_equal(tokenizer.encode_batch(TEXTS)[0], bpe.encode_batch(TEXTS)[0])


def test_pickle_keeps_the_tokenizer_and_its_end_of_text_token(
    edited_bpe: Callable[..., bytes],
) -> None:
    data = edited_bpe(added=(("<stop>", True),))
    tokenizer = load_files({"tokenizer.json": data}, eos="<stop>")
    copy: Tokenizer = pickle.loads(pickle.dumps(tokenizer))
    assert copy.eos_id == tokenizer.eos_id == 380
    assert copy.files == tokenizer.files
    assert copy.canary == tokenizer.canary


def test_files_give_the_same_tokenizer(bpe: Tokenizer) -> None:
    copy = load_files(bpe.files, eos=bpe.eos_id)
    assert (copy.vocabulary, copy.canary, copy.eos_id) == (bpe.vocabulary, bpe.canary, bpe.eos_id)


def test_facts_of_a_tokenizer(bpe: Tokenizer) -> None:
    assert (bpe.vocab_size, bpe.max_id, bpe.eos_id) == (380, 379, 0)
    assert bpe.special_tokens == {"<|endoftext|>": 0}
    assert bpe.backend == "gigatoken"
    assert bpe.backend_reason is None
    assert repr(bpe) == "<Tokenizer 380 tokens, eos 0, uint16, gigatoken>"


def test_files_without_tokenizer_json_are_refused() -> None:
    with pytest.raises(TokenizerFormatError, match=r"no tokenizer\.json among .*\(vocab\.txt\)"):
        load_files({"vocab.txt": b""})


def test_empty_vocabulary_is_refused(edited_bpe: Callable[..., bytes]) -> None:
    data = edited_bpe(model={"type": "BPE", "vocab": {}, "merges": []})
    config = json.loads(data) | {"added_tokens": []}
    with pytest.raises(TokenizerFormatError, match="has no tokens"):
        load_files({"tokenizer.json": json.dumps(config).encode()})


def test_absurd_ids_are_refused(edited_bpe: Callable[..., bytes]) -> None:
    data = edited_bpe(model={"type": "BPE", "vocab": {"a": 0, "b": 1 << 24}, "merges": []})
    with pytest.raises(TokenizerFormatError, match="a token with id 16,777,216"):
        load_files({"tokenizer.json": data})


def test_panic_of_the_library_is_an_error_of_the_file(
    edited_bpe: Callable[..., bytes], capfd: pytest.CaptureFixture[str]
) -> None:
    data = edited_bpe(normalizer={"type": "Precompiled", "precompiled_charsmap": 7})
    with pytest.raises(TokenizerFormatError, match=r"`tokenizers` \d.* can't read the tokenizer"):
        load_files({"tokenizer.json": data})
    capfd.readouterr()
