"""No text produces a reserved token, and what else it produces stays as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe_tokenizers import Tokenizer, TokenizerFormatError, load_files
from datapipe_tokenizers.closed import close_tokens
from datapipe_tokenizers.huggingface import HuggingFaceEncoder, HuggingFaceFile

AROUND = ["{}", " {}", "x{}", "{}{}", "a {} b", "the end{}\n"]


@pytest.mark.parametrize("frame", AROUND)
def test_literal_special_text_is_ordinary_text(bpe: Tokenizer, frame: str) -> None:
    text = frame.replace("{}", "<|endoftext|>")
    ids, _ = bpe.encode_batch([text])
    assert bpe.eos_id not in ids
    assert bpe.decode(ids) == text


def test_added_tokens_that_are_not_special_are_used(edited_bpe: Callable[..., bytes]) -> None:
    data = edited_bpe(added=(("        ", False), ("<|user|>", True)))
    tokenizer = load_files({"tokenizer.json": data})
    ids, _ = tokenizer.encode_batch(["x        y", "<|user|>"])
    assert 380 in ids
    assert 381 not in ids


@pytest.mark.parametrize("frame", AROUND)
def test_piece_of_a_unigram_model_stays_out_of_reach(unigram_json: bytes, frame: str) -> None:
    tokenizer = load_files({"tokenizer.json": unigram_json})
    ids, _ = tokenizer.encode_batch([frame.replace("{}", "</s>")])
    assert not {tokenizer.eos_id, tokenizer.special_tokens["<pad>"]} & set(ids.tolist())


def test_closing_one_document_leaves_its_neighbours(unigram_json: bytes) -> None:
    tokenizer = load_files({"tokenizer.json": unigram_json})
    texts = ["the", "", "a</s>b", "the the", "</s>"]
    ids, offsets = tokenizer.encode_batch(texts)
    alone = [tokenizer.encode_batch([text])[0] for text in texts]
    assert np.diff(offsets).tolist() == [len(each) for each in alone]
    np.testing.assert_array_equal(ids, np.concatenate(alone))


@pytest.mark.parametrize("prefix", ["", "##"], ids=["plain", "prefixed"])
def test_merges_that_lead_to_a_special_token_are_closed(prefix: str) -> None:
    pieces = ["<", prefix + "s", prefix + ">", "<s", "<s>", "a"]
    tokenizer = load_files({"tokenizer.json": bpe_with_merges(pieces, prefix)}, eos="<s>")
    ids, _ = tokenizer.encode_batch(["<s>", "a", "<s>a<s"])
    assert ids.tolist()[:3] == [3, 2, 5]
    assert tokenizer.eos_id not in ids


def test_word_that_is_taken_whole_is_closed() -> None:
    pieces = ["<", "s", ">", "<s", "<s>", "a"]
    data = bpe_with_merges(pieces, "", ignore_merges=True)
    tokenizer = load_files({"tokenizer.json": data}, eos="<s>")
    assert tokenizer.encode_batch(["<s>"])[0].tolist() == [3, 2]


def test_other_added_tokens_keep_their_ids_in_a_closed_document() -> None:
    pieces = ["<", "s", ">", "<s", "<s>", "a"]
    data = bpe_with_merges(pieces, "", added=[("<new>", True, 6), ("<tab>", False, 7)])
    tokenizer = load_files({"tokenizer.json": data}, eos="<s>")
    assert tokenizer.encode_batch(["a<tab><s><tab>"])[0].tolist() == [5, 7, 3, 2, 7]


def test_reserved_token_that_cannot_be_closed_is_refused(
    unigram_json: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datapipe_tokenizers.huggingface.close_tokens", lambda config, _: config)
    tokenizer = load_files({"tokenizer.json": unigram_json})
    with pytest.raises(TokenizerFormatError, match="in a way that can't be closed"):
        tokenizer.encode_batch(["</s>"])


def test_documents_are_encoded_twice_only_where_needed(
    unigram_json: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = load_files({"tokenizer.json": unigram_json})
    monkeypatch.setattr(HuggingFaceEncoder, "_closed", None)
    assert len(tokenizer.encode_batch(["the", "s/>"])[0])


def test_closing_keeps_the_unknown_token() -> None:
    model = {"type": "WordPiece", "vocab": {"[UNK]": 0, "[SEP]": 1, "a": 2}, "unk_token": "[UNK]"}
    closed = close_tokens({"model": model}, frozenset({"[UNK]", "[SEP]"}))["model"]
    assert list(closed["vocab"].items()) == [("[UNK]", 0), (" closed 1 ", 1), ("a", 2)]


def bpe_with_merges(
    pieces: list[str],
    prefix: str,
    *,
    ignore_merges: bool = False,
    added: list[tuple[str, bool, int]] | None = None,
) -> bytes:
    """A BPE model whose merges make "<s>", with "<s>" as a special token."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    tokens = [("<s>", True, 4), *(added or [])]
    model: dict[str, Any] = {
        "type": "BPE",
        "vocab": {piece: number for number, piece in enumerate(pieces)},
        "merges": [["<", prefix + "s"], ["<s", prefix + ">"]],
        "continuing_subword_prefix": prefix or None,
        "ignore_merges": ignore_merges,
    }
    return json.dumps(
        {
            "version": "1.0",
            "added_tokens": [
                {"id": number, "content": name, "special": special, **flags}
                for name, special, number in tokens
            ],
            "model": model,
        }
    ).encode()


@settings(max_examples=40, deadline=None)
@given(parts=st.lists(st.text() | st.just("</s>") | st.sampled_from("<>/s"), max_size=8))
def test_no_text_whatever_holds_the_end_of_text_token(
    unigram_json: bytes, parts: list[str]
) -> None:
    tokenizer = load_files({"tokenizer.json": unigram_json})
    assert tokenizer.eos_id not in tokenizer.encode_batch(["".join(parts), "</s>"])[0]


def test_unigram_model_that_does_not_say_its_type_is_closed_too() -> None:
    model = {"vocab": [["<unk>", 0.0], ["</s>", 0.0], ["a", -1.0]], "unk_id": 0}
    closed = close_tokens({"model": model}, frozenset({"<unk>", "</s>"}))["model"]
    assert closed["vocab"] == [["<unk>", 0.0], ["", 0.0], ["a", -1.0]]


def test_a_special_token_that_is_the_only_piece_for_a_byte_is_refused(bpe_json: bytes) -> None:
    config = json.loads(bpe_json)
    number = config["model"]["vocab"]["!"]
    flags = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False)
    config["added_tokens"].append({"id": number, "content": "!", "special": True, **flags})
    with pytest.raises(TokenizerFormatError, match="`!` is also the model's only piece for a byte"):
        load_files({"tokenizer.json": json.dumps(config).encode()})


def test_pieces_for_bytes_that_are_special_are_refused() -> None:
    pieces = ["<unk>", "<eos>", *(f"<0x{byte:02X}>" for byte in range(256))]
    special = [
        {"id": n, "content": piece, "special": True, "normalized": False}
        | dict.fromkeys(("lstrip", "rstrip", "single_word"), False)
        for n, piece in enumerate(pieces)
    ]
    vocab = {piece: n for n, piece in enumerate(pieces)}
    model = {"type": "BPE", "vocab": vocab, "merges": [], "unk_token": "<unk>"}
    config = {"added_tokens": special, "model": {**model, "byte_fallback": True}}
    with pytest.raises(TokenizerFormatError, match="only piece for a byte"):
        load_files({"tokenizer.json": json.dumps(config).encode()}, eos="<eos>")


def test_a_file_of_merges_is_known_as_bpe(bpe_json: bytes) -> None:
    assert HuggingFaceFile(bpe_json).is_bpe
