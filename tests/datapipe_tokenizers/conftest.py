"""Tokenizers that the tests make themselves, one of each model that tokenizer.json knows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from datapipe_tokenizers import Tokenizer, load_files, train_bpe

CORPUS = [
    "the quick brown fox jumps over the lazy dog",
    "pack my box with five dozen liquor jugs 1234567890",
    "<|endoftext|> is what the model reads as the end of a text",
    "def f(x):\n    return x ** 2  # indented\n\n\tx = f(3)\n",
    "\u00e9t\u00e9 \u6f22\u5b57 \u0440\u0443\u0441\u0441\u043a\u0438\u0439",
]

Build = Callable[..., bytes]


def _added(content: str, number: int, *, special: bool = True) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, "special": special, **flags}


@pytest.fixture(scope="session")
def bpe_json() -> bytes:
    return train_bpe(CORPUS * 20, vocab_size=380)


@pytest.fixture(scope="session")
def bpe(bpe_json: bytes) -> Tokenizer:
    return load_files({"tokenizer.json": bpe_json})


@pytest.fixture(scope="session")
def unigram_json() -> bytes:
    """Has "</s>" as a piece of its vocabulary, which its model finds in a text, as T5's does."""
    pieces = ["<pad>", "</s>", "<unk>", *"<>/s", *"abcdefghijklmnop", "the", "\u2581the", "\u2581"]
    vocab = [[piece, -float(number)] for number, piece in enumerate(pieces)]
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"}
    specials = [_added(name, number) for number, name in enumerate(pieces[:3])]
    return _tokenizer_json(
        {"type": "Unigram", "unk_id": 2, "vocab": vocab, "byte_fallback": False},
        added_tokens=specials,
        pre_tokenizer=metaspace,
        decoder=metaspace,
    )


@pytest.fixture(scope="session")
def words_json() -> Build:
    """Makes a tokenizer of whole words "0", "1", ...; its end-of-text token has the last id."""

    def build(vocab_size: int) -> bytes:
        vocab = {str(number): number for number in range(vocab_size - 1)}
        return _tokenizer_json(
            {"type": "WordLevel", "vocab": vocab, "unk_token": "0"},
            added_tokens=[_added("</s>", vocab_size - 1)],
            pre_tokenizer={"type": "WhitespaceSplit"},
        )

    return build


@pytest.fixture(scope="session")
def edited_bpe(bpe_json: bytes) -> Build:
    """Makes the BPE tokenizer with some keys of its tokenizer.json replaced."""

    def build(*, added: tuple[tuple[str, bool], ...] = (), **changes: Any) -> bytes:
        config = json.loads(bpe_json) | changes
        first = len(config["model"]["vocab"])
        config["added_tokens"] += [
            _added(name, first + place, special=special)
            for place, (name, special) in enumerate(added)
        ]
        return json.dumps(config).encode()

    return build


def _tokenizer_json(model: dict[str, Any], **parts: Any) -> bytes:
    keys = ("added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    empty: dict[str, Any] = dict.fromkeys(keys)
    return json.dumps({"version": "1.0", **empty, **parts, "model": model}).encode()
