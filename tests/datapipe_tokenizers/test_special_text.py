"""Literal text of special tokens: found in any document, and read as the policy says."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as HFTokenizer

from datapipe_tokenizers import (
    SPECIAL_TEXT,
    SpecialTextError,
    Tokenizer,
    TokenizerFormatError,
    load,
    load_files,
)
from datapipe_tokenizers.encodings import KNOWN, Encoding, dump_encoding
from datapipe_tokenizers.huggingface import HuggingFaceFile
from datapipe_tokenizers.special_text import SpecialText
from datapipe_tokenizers.tiktoken import dump_ranks

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "tokenizers"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"{SHARED} isn't there")
ADDED = (("<|user|>", True), ("<|tool|>", True), ("    ", False))
TEXTS = ["a", "x<|user|>y <|tool|>", "<|user", "", "a<|endoftext|>", "<|user|><|user|>", "  "]

names = st.sampled_from(["<s>", "</s>", "<|a|>", "<|ab|>", "<|end|>", "[X]", "[XY]", "\u00e9|"])
pieces = st.lists(names | st.text("<>|/sab[]X \u00e9", max_size=4), max_size=6).map("".join)


@given(names=st.sets(names), texts=st.lists(pieces, max_size=6))
def test_texts_that_hold_a_name_are_found(names: set[str], texts: list[str]) -> None:
    expected = [row for row, text in enumerate(texts) if any(name in text for name in names)]
    column = pa.array(["<s>", *texts], pa.large_string()).slice(1)
    assert SpecialText(names).rows(column).tolist() == expected


def test_first_name_is_the_longest_at_its_place() -> None:
    assert SpecialText(["<|a", "<|a|>", "x"]).first("..<|a|>x") == "<|a|>"


@pytest.fixture
def with_policy(edited_bpe: Callable[..., bytes]) -> Callable[..., Tokenizer]:
    data = edited_bpe(added=ADDED)
    return lambda policy, **options: load_files(
        {"tokenizer.json": data}, special_text=policy, **options
    )


def encoded(tokenizer: Tokenizer, text: str) -> list[int]:
    return [int(number) for number in tokenizer.encode_batch([text])[0]]


@pytest.mark.parametrize("backend", ["gigatoken", "reference"])
def test_special_tokens_are_read_except_the_one_that_closes_documents(
    with_policy: Callable[..., Tokenizer], backend: str
) -> None:
    tokenizer = with_policy("special", backend=backend)
    assert encoded(tokenizer, "<|user|>the<|tool|>")[::2] == [380, 381]
    assert tokenizer.eos_id not in encoded(tokenizer, "<|user|>a<|endoftext|>")
    assert tokenizer.decode(encoded(tokenizer, "a<|endoftext|><|user|>")) == (
        "a<|endoftext|><|user|>"
    )


def test_special_tokens_are_read_as_the_library_does(
    with_policy: Callable[..., Tokenizer],
) -> None:
    tokenizer = with_policy("special")
    library = HFTokenizer.from_str(tokenizer.files["tokenizer.json"].decode())
    for text in TEXTS:
        if "endoftext" not in text:
            expected = library.encode(text, add_special_tokens=False).ids
            assert encoded(tokenizer, text) == expected


def test_ordinary_text_is_the_default(
    with_policy: Callable[..., Tokenizer], bpe: Tokenizer
) -> None:
    assert bpe.special_text == "text"
    for text in TEXTS[:-1]:
        assert encoded(with_policy("text"), text) == encoded(bpe, text)


def test_special_text_is_refused(with_policy: Callable[..., Tokenizer]) -> None:
    tokenizer = with_policy("error")
    assert encoded(tokenizer, "<|user") == encoded(with_policy("text"), "<|user")
    with pytest.raises(SpecialTextError, match=r"text 1 has .* token `<\|user\|>`") as caught:
        tokenizer.encode_batch(TEXTS)
    assert (caught.value.row, caught.value.token) == (1, "<|user|>")


def test_texts_with_special_text_are_told(with_policy: Callable[..., Tokenizer]) -> None:
    tokenizer = with_policy("text")
    assert tokenizer.with_special_text(TEXTS).tolist() == [1, 4, 5]
    assert tokenizer.with_eos_text(TEXTS).tolist() == [4]


def test_canary_does_not_depend_on_the_policy(edited_bpe: Callable[..., bytes]) -> None:
    data = edited_bpe(added=(("\U0001f600", True), ("<|user|>", True)))  # one is in the canary
    canaries = {
        load_files({"tokenizer.json": data}, special_text=policy).canary for policy in SPECIAL_TEXT
    }
    assert len(canaries) == 1


def test_policy_is_pickled(with_policy: Callable[..., Tokenizer]) -> None:
    assert pickle.loads(pickle.dumps(with_policy("special"))).special_text == "special"


def test_unknown_policy_is_refused(with_policy: Callable[..., Tokenizer]) -> None:
    with pytest.raises(ValueError, match="special_text is 'maybe'; use one of text, special, err"):
        with_policy("maybe")


@pytest.mark.parametrize("backend", ["gigatoken", "reference"])
def test_special_tokens_of_ranks_are_read(bpe_json: bytes, backend: str) -> None:
    tokens = HuggingFaceFile(bpe_json).vocabulary.tokens
    specials = {"<|endoftext|>": 0, "<|user|>": 400}
    encoding = Encoding(name="x", pattern=KNOWN["r50k_base"].pattern, special_tokens=specials)
    files = {
        "ranks.tiktoken": dump_ranks({token: n for n, token in tokens.items() if n}),
        "encoding.json": dump_encoding(encoding),
    }
    tokenizer = load_files(files, special_text="special", backend=backend)
    ids = encoded(tokenizer, "the<|user|>the<|endoftext|>")
    assert ids.count(400) == 1
    assert 0 not in ids


@needs_shared
@pytest.mark.shared_data
def test_sentencepiece_reads_no_special_tokens() -> None:
    with pytest.raises(TokenizerFormatError, match=r"never reads special tokens.*tokenizer\.json"):
        load(SHARED / "spm" / "llama2.tokenizer.model", special_text="special")


@needs_shared
@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["llama3", "qwen3", "deepseek_v3", "t5"])
def test_published_tokenizers_read_their_special_tokens(name: str) -> None:
    tokenizer = load(SHARED / "hf" / name, special_text="special")
    library = HFTokenizer.from_str(tokenizer.files["tokenizer.json"].decode())
    library.no_truncation()
    library.no_padding()
    eos = tokenizer.decode([tokenizer.eos_id])
    for special, number in list(tokenizer.special_tokens.items())[:40]:
        for text in (special, f"a {special} b", f"x{special}{special}\n"):
            if special != eos:
                expected = library.encode(text, add_special_tokens=False).ids
                assert encoded(tokenizer, text) == expected
                assert number in expected
            else:
                assert number not in encoded(tokenizer, text)
