"""The fast backend: only where it gives the reference's ids, and never more memory than it may."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe_tokenizers import BackendError, Difference, TextError, Tokenizer, load, load_files
from datapipe_tokenizers import fast as fast_module
from datapipe_tokenizers.choice import first_difference
from datapipe_tokenizers.fast import FastEncoder
from datapipe_tokenizers.huggingface import HuggingFaceEncoder, HuggingFaceFile
from datapipe_tokenizers.memory import resident_bytes

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "tokenizers" / "hf"
FAST = ["deepseek_v3", "dolma2", "gpt2", "gpt_neox_20b", "llama3", "qwen3"]
needs_shared = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"{FOLDER} isn't there")

PIECES = st.one_of(
    st.text(max_size=30),
    st.text(alphabet=" \n\t\r\u00a0\u3000", max_size=20),
    st.text(alphabet="0123456789.,", max_size=20),
    st.sampled_from(
        ["'s", "'RE", "<|endoftext|>", "\u0301", "\u200d", "\U0001f600", "ffi", "\r\n"]
    ),
)
TEXTS = st.lists(st.lists(PIECES, max_size=8).map("".join), max_size=6)


@cache
def pair(name: str) -> tuple[Tokenizer, Tokenizer]:
    path = FOLDER / name
    return load(path, backend="gigatoken"), load(path, backend="huggingface")


def same(a: tuple[Any, Any], b: tuple[Any, Any]) -> None:
    np.testing.assert_array_equal(a[1], b[1])
    np.testing.assert_array_equal(a[0], b[0])


@settings(max_examples=200)
@given(TEXTS)
def test_ids_are_those_of_the_reference(bpe_json: bytes, texts: list[str]) -> None:
    reference = load_files({"tokenizer.json": bpe_json}, backend="huggingface")
    same(small(bpe_json).encode_batch(texts), reference.encode_batch(texts))


@cache
def small(data: bytes) -> Tokenizer:
    return load_files({"tokenizer.json": data}, backend="gigatoken")


@needs_shared
@pytest.mark.shared_data
@pytest.mark.parametrize("name", FAST)
@settings(max_examples=60)
@given(texts=TEXTS)
def test_ids_are_those_of_the_reference_for_published_tokenizers(
    name: str, texts: list[str]
) -> None:
    quick, reference = pair(name)
    same(quick.encode_batch(texts), reference.encode_batch(texts))


@needs_shared
@pytest.mark.shared_data
@pytest.mark.parametrize("name", FAST)
def test_literal_special_tokens_are_text_for_published_tokenizers(name: str) -> None:
    quick, reference = pair(name)
    texts = [f"{before}{s}{s} x" for s in quick.special_tokens for before in ("", "a ", "\n")]
    same(quick.encode_batch(texts), reference.encode_batch(texts))


@needs_shared
@pytest.mark.shared_data
@pytest.mark.parametrize("unit", ["a", " ", "7", "\U0001f600", "\n", "!", "\u6f22\u5b57"])
def test_long_runs_give_the_ids_of_the_reference(unit: str) -> None:
    quick, reference = pair("gpt2")
    same(quick.encode_batch([unit * 30_000]), reference.encode_batch([unit * 30_000]))


def test_digests_do_not_depend_on_the_backend(bpe_json: bytes) -> None:
    one, other = (
        load_files({"tokenizer.json": bpe_json}, backend=backend)
        for backend in ("gigatoken", "huggingface")
    )
    assert (one.canary, one.vocabulary) == (other.canary, other.vocabulary)
    assert (one.backend, other.backend) == ("gigatoken", "huggingface")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([], pa.large_string()),
        pa.array(["", "", ""]),
        pa.array(["skipped", "a b", "", "c"]).slice(1, 2),
        pa.chunked_array([["a"], ["b c", ""]]),
    ],
    ids=["none", "empty", "slice", "chunks"],
)
def test_columns_of_every_shape(bpe_json: bytes, column: pa.Array) -> None:
    reference = load_files({"tokenizer.json": bpe_json}, backend="huggingface")
    same(small(bpe_json).encode_batch(column), reference.encode_batch(column))


def test_invalid_utf8_is_refused(bpe_json: bytes) -> None:
    column = pa.Array.from_buffers(
        pa.large_string(), 1, [None, pa.py_buffer(np.array([0, 2], "<i8")), pa.py_buffer(b"\xff!")]
    )
    with pytest.raises(TextError, match="isn't valid UTF-8"):
        small(bpe_json).encode_batch(column)


def test_unsupported_tokenizer_falls_back_and_says_why(unigram_json: bytes) -> None:
    tokenizer = load_files({"tokenizer.json": unigram_json})
    assert tokenizer.backend == "huggingface"
    assert "Unigram" in str(tokenizer.backend_reason)
    with pytest.raises(BackendError, match=r"gigatoken can't encode.*Unigram.*backend: auto"):
        load_files({"tokenizer.json": unigram_json}, backend="gigatoken")


def test_unknown_backend_is_refused(bpe_json: bytes) -> None:
    with pytest.raises(BackendError, match="no backend 'fast'; choose auto, gigatoken, reference,"):
        load_files({"tokenizer.json": bpe_json}, backend="fast")


def test_absent_library_falls_back(bpe_json: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gigatoken", None)
    tokenizer = load_files({"tokenizer.json": bpe_json})
    assert tokenizer.backend == "huggingface"
    assert "gigatoken isn't installed" in str(tokenizer.backend_reason)


def test_wrong_backend_is_found_at_load(bpe_json: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, only_if=lambda text: "1234" in text)
    tokenizer = load_files({"tokenizer.json": bpe_json})
    assert tokenizer.backend == "huggingface"
    assert "gigatoken encodes '1234" in str(tokenizer.backend_reason)


def test_difference_names_text_and_token(bpe_json: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, only_if=lambda text: text == "zzz unseen")
    tokenizer = load_files({"tokenizer.json": bpe_json})
    assert tokenizer.backend == "gigatoken"
    assert tokenizer.compare(["the fox", "zz unseen"]) is None
    difference = tokenizer.compare(["the fox", "zzz unseen"])
    assert difference is not None
    assert (difference.row, difference.token, difference.found) == (1, 0, 7)


def spoil(monkeypatch: pytest.MonkeyPatch, *, only_if: Callable[[str], bool]) -> None:
    """Makes the fast backend give id 7 first in the texts that `only_if` chooses."""
    right = FastEncoder.encode

    def wrong(self: FastEncoder, texts: pa.LargeStringArray) -> Any:
        ids, counts = right(self, texts)
        ids = ids.copy()
        for row, text in enumerate(texts.to_pylist()):
            if only_if(text):
                ids[counts[:row].sum()] = 7
        return ids, counts

    monkeypatch.setattr(FastEncoder, "encode", wrong)


def test_first_difference_sees_missing_tokens() -> None:
    def encoded(*documents: list[int]) -> tuple[Any, Any]:
        return np.concatenate(documents), np.array([len(d) for d in documents])

    assert first_difference(encoded([1], [2, 3]), encoded([1], [2, 3])) is None
    assert first_difference(encoded([1], [2]), encoded([1], [2, 3])) == Difference(
        row=1, token=1, found=None, expected=3
    )
    assert first_difference(encoded([1, 2], [3]), encoded([1], [2, 3])) == Difference(
        row=0, token=1, found=2, expected=None
    )


def test_reserved_token_that_the_model_finds_goes_to_the_reference(bpe_json: bytes) -> None:
    data = with_merges_to_eos(bpe_json)
    quick = load_files({"tokenizer.json": data}, eos="zq", backend="gigatoken")
    reference = load_files({"tokenizer.json": data}, eos="zq", backend="huggingface")
    texts = ["a", "zq", "a zq zqzq", "", "aa"]
    same(quick.encode_batch(texts), reference.encode_batch(texts))
    assert quick.eos_id not in quick.encode_batch(texts)[0]
    assert isinstance(quick._encoder, FastEncoder)
    raw, _ = quick._encoder._encode_group(pa.array(["zq"], pa.large_string()))
    assert raw.tolist() == [quick.eos_id]


def with_merges_to_eos(data: bytes) -> bytes:
    """The BPE tokenizer with a merge that makes "zq", which is its end-of-text token."""
    config = json.loads(data)
    vocab = config["model"]["vocab"]
    vocab["zq"] = len(vocab)
    config["model"]["merges"].append(["z", "q"])
    config["added_tokens"] = [config["added_tokens"][0] | {"id": vocab["zq"], "content": "zq"}]
    return json.dumps(config).encode()


def encoder(data: bytes, **options: Any) -> FastEncoder:
    file = HuggingFaceFile(data)
    names = frozenset(file.vocabulary.specials)
    reference = HuggingFaceEncoder(file, reserved=names)
    reserved = [file.ids[name] for name in names]
    return FastEncoder(
        file.fast(reserved=names),
        reserved=reserved,
        reference=reference,
        **options,
    )


def test_encoder_that_grew_is_replaced_and_ids_stay(
    bpe_json: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast_module, "_MIN_BYTES", 1 << 16)
    grown = iter(range(0, 1 << 40, 1 << 20))
    monkeypatch.setattr(fast_module, "resident_bytes", lambda: next(grown))
    quick = encoder(bpe_json, cache_bytes=3 << 20)
    kept = encoder(bpe_json)
    loads: list[object] = []
    load = quick._load

    def counted() -> object:
        loads.append(None)
        return load()

    monkeypatch.setattr(quick, "_load", counted)
    texts = pa.array([random_words(3000, seed=1)], pa.large_string())
    for _ in range(12):
        same(quick.encode(texts), kept.encode(texts))
    assert loads


@pytest.mark.slow
def test_random_words_stay_within_the_limit(bpe_json: bytes) -> None:
    quick = encoder(bpe_json, cache_bytes=64 << 20)
    before = resident_bytes()
    for seed in range(30):
        quick.encode(pa.array([random_words(300_000, seed=seed)], pa.large_string()))
        assert resident_bytes() - before < 256 << 20


def random_words(count: int, *, seed: int) -> str:
    draw = random.Random(seed)
    starts = (0x61, 0x3B1, 0x430, 0x5D0, 0x4E00)
    return " ".join(
        "".join(chr(start + draw.randrange(20)) for _ in range(draw.randrange(4, 12)))
        for start in draw.choices(starts, k=count)
    )


def test_threads_give_the_ids_of_one(bpe_json: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_module, "BATCH_BYTES", 4096)
    texts = pa.array([random_words(50, seed=n) for n in range(200)], pa.large_string())
    same(encoder(bpe_json, threads=4).encode(texts), encoder(bpe_json).encode(texts))


def test_pickle_keeps_the_backend(bpe_json: bytes) -> None:
    import pickle

    tokenizer = load_files({"tokenizer.json": bpe_json}, backend="huggingface")
    assert pickle.loads(pickle.dumps(tokenizer)).backend == "huggingface"
