"""What one process found isn't looked for again, unless something that it depends on differs."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datapipe_tokenizers import Tokenizer, load, load_files
from datapipe_tokenizers.facts import LazyReference
from datapipe_tokenizers.huggingface import HuggingFaceEncoder

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "tokenizers"
TEXTS = ["the <|endoftext|>", "</s>", "", "x"]


def again(tokenizer: Tokenizer, **changes: str) -> Tokenizer:
    facts = replace(tokenizer.facts, **changes)  # type: ignore[arg-type]
    return load_files(tokenizer.files, eos=tokenizer.eos_id, facts=facts)


def test_reference_is_loaded_when_it_is_needed(bpe: Tokenizer) -> None:
    copy = again(bpe)
    assert isinstance(copy._reference, LazyReference)
    ids, _ = copy.encode_batch(TEXTS)
    np.testing.assert_array_equal(ids, bpe.encode_batch(TEXTS)[0])
    assert copy.with_special_text(TEXTS).tolist() == [0]
    assert (copy.eos_id, copy.max_id, copy.token_dtype) == (bpe.eos_id, bpe.max_id, bpe.token_dtype)
    assert (copy.special_tokens, copy.backend) == (bpe.special_tokens, bpe.backend)
    assert "_reference" not in copy._reference.__dict__
    assert copy.compare(TEXTS) is None
    assert isinstance(copy._reference._reference, HuggingFaceEncoder)
    assert copy.decode(ids) == bpe.decode(ids)
    assert (copy.vocabulary, copy.canary) == (bpe.vocabulary, bpe.canary)


def test_backends_are_compared_anew_in_another_environment(bpe: Tokenizer) -> None:
    assert not isinstance(again(bpe, environment="elsewhere")._reference, LazyReference)


def test_fallback_is_found_anew(unigram_json: bytes) -> None:
    tokenizer = load_files({"tokenizer.json": unigram_json})
    assert not tokenizer.facts.fast
    assert again(tokenizer).backend_reason == tokenizer.backend_reason


def test_other_processes_are_given_the_facts(
    bpe: Tokenizer, edited_bpe: Callable[..., bytes]
) -> None:
    assert isinstance(pickle.loads(pickle.dumps(bpe))._reference, LazyReference)
    data = edited_bpe(added=(("<|user|>", True),))
    tokenizer = load_files({"tokenizer.json": data}, special_text="special")
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.encode_batch(["<|user|>"])[0].tolist() == [380]


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"{SHARED} isn't there")
@pytest.mark.shared_data
@pytest.mark.parametrize(
    "name", ["hf/llama3", "tiktoken/cl100k_base.tiktoken", "spm/llama2.tokenizer.model"]
)
def test_published_tokenizers_are_loaded_from_facts(name: str) -> None:
    tokenizer = load(SHARED / name)
    copy = again(tokenizer)
    np.testing.assert_array_equal(copy.encode_batch(TEXTS)[0], tokenizer.encode_batch(TEXTS)[0])
    assert copy.compare(TEXTS) is None
