"""Published tokenizers: digests, the reference's ids, specials as text, long documents."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer as HFTokenizer

from datapipe_tokenizers import EndOfTextError, Tokenizer, load
from datapipe_tokenizers.canary import canary_strings
from datapipe_tokenizers.huggingface import HuggingFaceEncoder, HuggingFaceFile

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "tokenizers"
NAMES = [
    "bert_base_uncased",
    "deepseek_v3",
    "dolma2",
    "gpt2",
    "gpt_neox_20b",
    "llama3",
    "qwen3",
    "t5",
]
EOS = {"bert_base_uncased": "[SEP]"}

pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not FOLDER.is_dir(), reason=f"{FOLDER} isn't there"),
]

FACTS = {
    "bert_base_uncased": (30_522, 30_521, 102, "uint16"),
    "deepseek_v3": (128_815, 128_814, 1, "uint32"),
    "dolma2": (100_278, 100_277, 100_257, "uint32"),
    "gpt2": (50_257, 50_256, 50_256, "uint16"),
    "gpt_neox_20b": (50_280, 50_279, 0, "uint16"),
    "llama3": (128_256, 128_255, 128_001, "uint32"),
    "qwen3": (151_669, 151_668, 151_645, "uint32"),
    "t5": (32_100, 32_099, 1, "uint16"),
}

VECTORS = {
    "gpt2": "gpt-2",
    "llama3": "llama-bpe",
    "qwen3": "qwen2",
    "bert_base_uncased": "bert-bge",
}
"""Tokenizer -> reference vectors of the same vocabulary."""


@cache
def real(name: str) -> Tokenizer:
    return load(FOLDER / "hf" / name, eos=EOS.get(name))


@pytest.mark.parametrize("name", NAMES)
def test_facts(name: str) -> None:
    t = real(name)
    assert (t.vocab_size, t.max_id, t.eos_id, t.token_dtype.name) == FACTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_those_of_the_library_with_specials_disabled(name: str) -> None:
    strings = list(canary_strings())
    ids, offsets = real(name).encode_batch(strings)
    reference = HFTokenizer.from_file(str(FOLDER / "hf" / name / "tokenizer.json"))
    reference.no_truncation()
    reference.no_padding()
    reference.encode_special_tokens = True
    for i, encoding in enumerate(reference.encode_batch(strings, add_special_tokens=False)):
        ours = ids[offsets[i] : offsets[i + 1]].tolist()
        if name == "t5" and ours != encoding.ids:  # its model finds special tokens in a text
            specials = set(real(name).special_tokens.values())
            assert specials & set(encoding.ids)
        else:
            assert ours == encoding.ids, strings[i]


@pytest.mark.parametrize("name", NAMES)
def test_no_text_produces_a_special_token(name: str) -> None:
    tokenizer = real(name)
    specials = tokenizer.special_tokens
    texts = [
        frame.replace("{}", text)
        for text in specials
        for frame in ("{}", "x{} y", "{}{}", "z {}\n")
    ]
    ids, _ = tokenizer.encode_batch(texts)
    unknown = {specials.get("<unk>"), specials.get("[UNK]")}
    assert not set(ids.tolist()) & (set(specials.values()) - unknown)


@pytest.mark.parametrize("name", ["deepseek_v3", "dolma2", "gpt2", "llama3"])
def test_texts_come_back(name: str) -> None:
    tokenizer = real(name)
    strings = [*canary_strings(), *tokenizer.special_tokens]
    ids, offsets = tokenizer.encode_batch(strings)
    assert [tokenizer.decode(part) for part in np.split(ids, offsets[1:-1])] == strings


@pytest.mark.parametrize("name", VECTORS)
def test_reference_vectors(name: str) -> None:
    stem = FOLDER / "vectors" / f"ggml-vocab-{VECTORS[name]}.gguf"
    texts = stem.with_suffix(".gguf.inp").read_text().split("\n__ggml_vocab_test__\n")
    lines = stem.with_suffix(".gguf.out").read_text().split("\n")
    ids, offsets = real(name).encode_batch(texts)
    for i, text in enumerate(texts):
        expected = [int(number) for number in lines[i].split()]
        assert ids[offsets[i] : offsets[i + 1]].tolist() == expected, text


@pytest.mark.parametrize("name", NAMES)
def test_long_documents_are_cut_without_a_trace(name: str) -> None:
    text = "\n".join(text for text in canary_strings() if len(text) < 500)
    tokenizer = real(name)
    model = tokenizer._model
    assert isinstance(model, HuggingFaceFile)
    short = HuggingFaceEncoder(
        model, reserved=frozenset(tokenizer.special_tokens), batch_bytes=4096
    )
    ids, _ = short.encode(pa.array([text], pa.large_string()))
    np.testing.assert_array_equal(ids, tokenizer.encode_batch([text])[0])


def test_bert_has_no_token_that_closes_documents() -> None:
    with pytest.raises(EndOfTextError, match=r"names no end-of-text token.*`\[SEP\]`"):
        load(FOLDER / "hf" / "bert_base_uncased")


def test_settings_for_fixed_lengths_are_off() -> None:
    config = json.loads((FOLDER / "hf" / "t5" / "tokenizer.json").read_bytes())
    assert config["truncation"]["max_length"] == 32
    assert len(real("t5").encode_batch(["word " * 100])[0]) >= 100
    assert len(real("t5").encode_batch(["word"])[0]) < 5
