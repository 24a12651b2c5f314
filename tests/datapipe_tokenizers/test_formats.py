"""Every format of tokenizer: told by content, equal digests where it means the same, kept whole."""

from __future__ import annotations

import base64
import io
import json
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe_tokenizers import (
    BackendError,
    EndOfTextError,
    Tokenizer,
    TokenizerError,
    TokenizerFileError,
    TokenizerFormatError,
    load,
    load_files,
)
from datapipe_tokenizers.canary import canary_strings
from datapipe_tokenizers.encodings import KNOWN, Encoding, dump_encoding
from datapipe_tokenizers.formats import file_kind
from datapipe_tokenizers.huggingface import HuggingFaceFile
from datapipe_tokenizers.tiktoken import dump_ranks

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "tokenizers"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"{SHARED} isn't there")
TEXTS = [*canary_strings()[::7], "<|endoftext|>", "</s>", "<0x0A>", "[INST] a"]


@pytest.fixture(scope="session")
def ranks(bpe_json: bytes) -> dict[bytes, int]:
    """The vocabulary of the trained tokenizer without its special token, which has id 0."""
    tokens = HuggingFaceFile(bpe_json).vocabulary.tokens
    return {token: number for number, token in tokens.items() if number}


@pytest.fixture(scope="session")
def rank_files(ranks: dict[bytes, int]) -> dict[str, bytes]:
    encoding = Encoding(
        name="mine", pattern=KNOWN["r50k_base"].pattern, special_tokens={"<|endoftext|>": 0}
    )
    return {"ranks.tiktoken": dump_ranks(ranks), "encoding.json": dump_encoding(encoding)}


@pytest.fixture(scope="session")
def tekken_json(ranks: dict[bytes, int]) -> Callable[..., bytes]:
    def build(**changes: Any) -> bytes:
        vocab = [
            {"rank": number - 1, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
            for token, number in ranks.items()
        ]
        config = {
            "pattern": KNOWN["o200k_base"].pattern,
            "default_vocab_size": len(ranks) - 9 + 30,
            "default_num_special_tokens": 30,
            "version": "v3",
        }
        return json.dumps({"config": config, "vocab": vocab, **changes}).encode()

    return build


def train_pieces(kind: str, **options: Any) -> bytes:
    model = io.BytesIO()
    corpus = ["the quick brown fox jumps over the lazy dog", "pack my box 12 \u00e9t\u00e9 ab"] * 30
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus),
        model_writer=model,
        model_type=kind,
        vocab_size=340,
        hard_vocab_limit=False,
        byte_fallback=True,
        minloglevel=2,
        num_threads=1,
        **options,
    )
    return model.getvalue()


@pytest.fixture(scope="session")
def pieces() -> Callable[..., bytes]:
    return cache(train_pieces)


def test_ranks_and_tokenizer_json_of_one_vocabulary_have_equal_digests(
    bpe: Tokenizer, rank_files: dict[str, bytes]
) -> None:
    tokenizer = load_files(rank_files)
    assert (tokenizer.vocabulary, tokenizer.canary) == (bpe.vocabulary, bpe.canary)
    assert (tokenizer.eos_id, tokenizer.max_id, tokenizer.backend) == (0, 379, "gigatoken")
    assert tokenizer.special_tokens == {"<|endoftext|>": 0}


def test_ids_of_ranks_are_those_of_tiktoken(rank_files: dict[str, bytes]) -> None:
    for backend in ("gigatoken", "tiktoken", "reference"):
        tokenizer = load_files(rank_files, backend=backend)
        reference = tiktoken.Encoding(
            "mine",
            pat_str=KNOWN["r50k_base"].pattern,
            mergeable_ranks={
                base64.b64decode(line.split()[0]): int(line.split()[1])
                for line in rank_files["ranks.tiktoken"].splitlines()
            },
            special_tokens={},
        )
        expect_ids(tokenizer, [reference.encode_ordinary(text) for text in TEXTS])


def expect_ids(tokenizer: Tokenizer, expected: list[list[int]]) -> None:
    ids, offsets = tokenizer.encode_batch(TEXTS)
    assert [part.tolist() for part in np.split(ids, offsets[1:-1])] == expected


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_ids_of_a_model_are_those_of_sentencepiece(pieces: Callable[..., bytes], kind: str) -> None:
    data = pieces(kind)
    tokenizer = load_files({"tokenizer.model": data})
    expect_ids(tokenizer, sentencepiece.SentencePieceProcessor(model_proto=data).encode(TEXTS))
    assert (tokenizer.eos_id, tokenizer.decode([tokenizer.eos_id])) == (2, "</s>")
    assert tokenizer.special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2}
    assert tokenizer.backend == "sentencepiece"
    assert tokenizer.backend_reason  # gigatoken normalizes some Japanese letters otherwise


def test_ids_of_a_model_without_normalizer_are_those_of_sentencepiece(
    pieces: Callable[..., bytes],
) -> None:
    data = pieces("bpe", normalization_rule_name="identity", remove_extra_whitespaces=False)
    tokenizer = load_files({"tokenizer.model": data})
    expect_ids(tokenizer, sentencepiece.SentencePieceProcessor(model_proto=data).encode(TEXTS))
    assert tokenizer.backend == "gigatoken"


def test_end_of_text_token_is_the_models_own(pieces: Callable[..., bytes]) -> None:
    data = pieces("bpe", eos_piece="<done>")
    assert load_files({"tokenizer.model": data}).decode([2]) == "<done>"


def test_user_defined_piece_cannot_close_documents(pieces: Callable[..., bytes]) -> None:
    data = pieces("bpe", user_defined_symbols="<stop>")
    with pytest.raises(EndOfTextError, match=r"`<stop>` .* is ordinary text"):
        load_files({"tokenizer.model": data}, eos="<stop>")


def test_documents_around_an_end_of_text_token_come_back(pieces: Callable[..., bytes]) -> None:
    tokenizer = load_files({"tokenizer.model": pieces("bpe")})
    (ids, offsets), eos = tokenizer.encode_batch(["the fox", "lazy dog"]), tokenizer.eos_id
    joined = [*ids[: offsets[1]], eos, *ids[offsets[1] :], eos]
    assert tokenizer.decode(joined) == "the fox</s>lazy dog</s>"


def test_ids_of_tekken_come_after_its_special_tokens(
    tekken_json: Callable[..., bytes], ranks: dict[bytes, int]
) -> None:
    tokenizer = load_files({"tekken.json": tekken_json()})
    assert (tokenizer.eos_id, tokenizer.vocab_size, tokenizer.max_id) == (2, 400, 399)
    assert tokenizer.special_tokens["[INST]"] == 3
    assert tokenizer.special_tokens["<SPECIAL_29>"] == 29
    assert tokenizer.backend == "gigatoken"
    used = {token: number - 1 for token, number in ranks.items() if number <= 370}
    reference = tiktoken.Encoding(
        "t", pat_str=KNOWN["o200k_base"].pattern, mergeable_ranks=used, special_tokens={}
    )
    expect_ids(tokenizer, [[n + 30 for n in reference.encode_ordinary(text)] for text in TEXTS])


def test_tekken_that_lists_its_special_tokens(tekken_json: Callable[..., bytes]) -> None:
    names = ["<unk>", "<s>", "</s>", "[MINE]"]
    listed = [{"rank": n, "token_str": name, "is_control": True} for n, name in enumerate(names)]
    tokenizer = load_files({"tekken.json": tekken_json(special_tokens=listed)})
    assert list(tokenizer.special_tokens)[3:5] == ["[MINE]", "<SPECIAL_4>"]


@pytest.mark.parametrize("name", ["ranks", "tekken", "bpe", "unigram"])
def test_files_give_the_tokenizer_back(
    tmp_path: Path,
    rank_files: dict[str, bytes],
    tekken_json: Callable[..., bytes],
    pieces: Callable[..., bytes],
    name: str,
) -> None:
    files = {"ranks": rank_files, "tekken": {"tekken.json": tekken_json()}}.get(name)
    tokenizer = load_files(files or {"tokenizer.model": pieces(name)})
    for file, data in tokenizer.files.items():
        (tmp_path / file).write_bytes(data)
    copies = [load(tmp_path), load_files(tokenizer.files), pickle.loads(pickle.dumps(tokenizer))]
    for copy in copies:
        assert copy.files == tokenizer.files
        assert (copy.vocabulary, copy.canary) == (tokenizer.vocabulary, tokenizer.canary)


def test_format_is_told_by_content(
    bpe_json: bytes,
    rank_files: dict[str, bytes],
    tekken_json: Callable[..., bytes],
    pieces: Callable[..., bytes],
) -> None:
    assert file_kind(bpe_json) == "tokenizer.json"
    assert file_kind(b"\n" + bpe_json) == "tokenizer.json"
    assert file_kind(rank_files["ranks.tiktoken"]) == "ranks.tiktoken"
    assert file_kind(tekken_json()) == "tekken.json"
    assert file_kind(pieces("bpe")) == "tokenizer.model"


def test_rank_file_of_an_unknown_name_needs_its_pattern(
    tmp_path: Path, rank_files: dict[str, bytes]
) -> None:
    path = tmp_path / "mine.tiktoken"
    path.write_bytes(rank_files["ranks.tiktoken"])
    with pytest.raises(TokenizerFileError, match=r"without the pattern.*Put an encoding\.json"):
        load(path)
    (tmp_path / "encoding.json").write_bytes(rank_files["encoding.json"])
    assert load(path).files == load(tmp_path).files == rank_files


def test_rank_file_of_another_encoding_under_a_known_name(
    tmp_path: Path, rank_files: dict[str, bytes]
) -> None:
    path = tmp_path / "cl100k_base.tiktoken"
    path.write_bytes(rank_files["ranks.tiktoken"])
    with pytest.raises(TokenizerFormatError, match="has 379 tokens, the published one has 100,256"):
        load(path)


def test_unknown_pattern_is_encoded_by_tiktoken(rank_files: dict[str, bytes]) -> None:
    encoding = Encoding(name="mine", pattern=r"\S+|\s+", special_tokens={"<|endoftext|>": 0})
    tokenizer = load_files(rank_files | {"encoding.json": dump_encoding(encoding)})
    assert tokenizer.backend == "tiktoken"
    assert tokenizer.backend_reason == "gigatoken doesn't know the pattern of mine"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"encoding.json": b"{"}, "encoding.json beside the ranks can't be used: it isn't JSON"),
        ({"encoding.json": b'{"version": 2}'}, "its version is 2, and 1 is known"),
        ({"encoding.json": b'{"name": "x"}'}, "its `pattern` is None"),
        (
            {"encoding.json": b'{"pattern": "(", "special_tokens": {"<|endoftext|>": 0}}'},
            "tiktoken can't use the rank file",
        ),
        (
            {"encoding.json": b'{"pattern": "a", "special_tokens": {"a": "b"}}'},
            "its `special_tokens` isn't an object",
        ),
        (
            {"encoding.json": b'{"pattern": "a", "special_tokens": {"<a>": 7}}'},
            "gives special tokens the ids of others",
        ),
        ({"ranks.tiktoken": b"YQ== 0\nYg==\n"}, r"line 2 of the rank file is b'Yg=='"),
        ({"ranks.tiktoken": b"YQ== 0\nYg== 1\n"}, "lacks 254 of the 256 bytes"),
        ({"ranks.tiktoken": b"YQ== 0\nYg== 0\n"}, "gives two tokens the same id"),
    ],
    ids=str,
)
def test_damaged_rank_files(
    rank_files: dict[str, bytes], files: dict[str, bytes], message: str
) -> None:
    with pytest.raises(TokenizerFormatError, match=message):
        load_files(rank_files | files, eos="<|endoftext|>")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab": []}, "has 0 tokens where its vocabulary size says 370"),
        ({"config": {}}, "tekken.json can't be read .KeyError"),
        ({"vocab": [{"rank": 1}]}, "can't be read .KeyError"),
    ],
    ids=["no tokens", "no config", "no bytes"],
)
def test_damaged_tekken(
    tekken_json: Callable[..., bytes], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(TokenizerFormatError, match=message):
        load_files({"tekken.json": tekken_json(**changes)})


def test_damaged_model(pieces: Callable[..., bytes]) -> None:
    for data in (b"\x0a\x0e\x0a\x05<unk>\xff", pieces("bpe")[:2000], b"\x0a"):
        with pytest.raises(TokenizerError, match=r"sentencepiece can't read|no end-of-text"):
            load_files({"tokenizer.model": data})


def test_reference_of_another_format_is_refused(rank_files: dict[str, bytes]) -> None:
    with pytest.raises(BackendError, match="huggingface doesn't read this tokenizer, tiktoken doe"):
        load_files(rank_files, backend="huggingface")


def test_name_of_an_encoding_that_cannot_be_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(name: str) -> Any:
        raise ConnectionError(name)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tiktoken, "get_encoding", offline)
    with pytest.raises(
        TokenizerFileError, match=r"cl100k_base isn't on this machine.*TIKTOKEN_CAC"
    ):
        load("cl100k_base")


def test_name_of_an_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: dict[bytes, int]
) -> None:
    monkeypatch.chdir(tmp_path)
    encoding = tiktoken.Encoding(
        "p50k_edit",
        pat_str=KNOWN["r50k_base"].pattern,
        mergeable_ranks=ranks,
        special_tokens={"<|fim|>": 401, "<|endoftext|>": 400},
    )
    monkeypatch.setattr(tiktoken, "get_encoding", lambda _: encoding)
    tokenizer = load("p50k_edit")
    assert tokenizer.special_tokens == {"<|endoftext|>": 400, "<|fim|>": 401}
    assert load_files(tokenizer.files).canary == tokenizer.canary


@needs_shared
@pytest.mark.shared_data
def test_rank_file_of_gpt2_means_the_same_as_its_tokenizer_json() -> None:
    ours, theirs = load(SHARED / "tiktoken" / "r50k_base.tiktoken"), load(SHARED / "hf" / "gpt2")
    assert (ours.vocabulary, ours.canary) == (theirs.vocabulary, theirs.canary)
    assert ours.eos_id == theirs.eos_id
    assert ours.backend == "gigatoken"


PUBLISHED = {
    "tiktoken/cl100k_base.tiktoken": (100_261, 100_276, 100_257, "uint32"),
    "tiktoken/r50k_base.tiktoken": (50_257, 50_256, 50_256, "uint16"),
    "spm/llama2.tokenizer.model": (32_000, 31_999, 2, "uint16"),
    "spm/mistral_instruct_tokenizer_240323.model.v3": (32_768, 32_767, 2, "uint16"),
}


@cache
def published(name: str, backend: str) -> Tokenizer:
    return load(SHARED / name, backend=backend)


@needs_shared
@pytest.mark.shared_data
@pytest.mark.parametrize("name", PUBLISHED)
def test_facts_of_published_files(name: str) -> None:
    t = published(name, "gigatoken")
    assert (t.vocab_size, t.max_id, t.eos_id, t.token_dtype.name) == PUBLISHED[name]


@needs_shared
@pytest.mark.shared_data
def test_reference_vectors_of_llama2() -> None:
    stem = SHARED / "vectors" / "ggml-vocab-llama-spm.gguf"
    texts = stem.with_suffix(".gguf.inp").read_text().split("\n__ggml_vocab_test__\n")
    lines = stem.with_suffix(".gguf.out").read_text().split("\n")
    for backend in ("gigatoken", "sentencepiece"):
        ids, offsets = published("spm/llama2.tokenizer.model", backend).encode_batch(texts)
        for i, text in enumerate(texts):
            expected = [int(number) for number in lines[i].split()]
            assert ids[offsets[i] : offsets[i + 1]].tolist() == expected, text


PIECES = st.one_of(
    st.text(max_size=30),
    st.text(alphabet=" \n\t\r\u00a0\u3000\u2581", max_size=20),
    st.text(alphabet="0123456789.,", max_size=20),
    st.sampled_from(
        ["'s", "'RE", "<|endoftext|>", "</s>", "<s>", "<0x0A>", "\u0301", "\u200d", "\U0001f600"]
    ),
)
MANY = st.lists(st.lists(PIECES, max_size=8).map("".join), max_size=6)


@needs_shared
@pytest.mark.shared_data
@pytest.mark.parametrize("name", PUBLISHED)
@settings(max_examples=60)
@given(texts=MANY)
def test_fast_ids_are_those_of_the_reference_for_published_files(
    name: str, texts: list[str]
) -> None:
    ours = published(name, "gigatoken").encode_batch(texts)
    theirs = published(name, "reference").encode_batch(texts)
    np.testing.assert_array_equal(ours[1], theirs[1])
    np.testing.assert_array_equal(ours[0], theirs[0])


@needs_shared
@pytest.mark.shared_data
@pytest.mark.parametrize("name", PUBLISHED)
@settings(max_examples=60)
@given(text=st.lists(PIECES, max_size=8).map("".join))
def test_texts_come_back_from_published_files(name: str, text: str) -> None:
    tokenizer = published(name, "gigatoken")
    ids = tokenizer.encode_batch([text])[0]
    if name.startswith("spm"):  # SentencePiece writes spaces as U+2581
        text = text.replace("\u2581", " ")
    assert tokenizer.decode(ids) == text
    assert not {*ids.tolist()} & {*tokenizer.special_tokens.values()}
