from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import numpy as np
import pytest

from datapipe_tokenizers import Tokenizer, load_files
from datapipe_tokenizers.vocabulary import Vocabulary, piece_bytes

SMALL = Vocabulary(tokens={2: b"\xff", 0: b"<s>", 1: b"ab"}, specials={"<s>": 0})


def test_digest_is_over_ids_flags_and_bytes() -> None:
    hashed = (
        b"datapipe vocabulary 1\n"
        b"\x00\x00\x00\x00\x01\x03\x00\x00\x00<s>"
        b"\x01\x00\x00\x00\x00\x02\x00\x00\x00ab"
        b"\x02\x00\x00\x00\x00\x01\x00\x00\x00\xff"
    )
    assert SMALL.digest() == hashlib.sha256(hashed).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        Vocabulary(tokens={0: b"<s>", 1: b"ab", 3: b"\xff"}, specials={"<s>": 0}),
        Vocabulary(tokens={0: b"<s>", 1: b"ab", 2: b"\xfe"}, specials={"<s>": 0}),
        Vocabulary(tokens={0: b"<s>", 1: b"ab", 2: b"\xff"}, specials={}),
        Vocabulary(tokens={0: b"<s>", 1: b"ab"}, specials={"<s>": 0}),
    ],
    ids=["id", "bytes", "special", "missing"],
)
def test_digest_tells_vocabularies_apart(other: Vocabulary) -> None:
    assert other.digest() != SMALL.digest()


@pytest.mark.parametrize(
    ("piece", "byte_level", "expected"),
    [
        ("\u0120the", True, b" the"),
        ("\u010a", True, b"\n"),
        ("\u00c3\u00a9", True, b"\xc3\xa9"),
        ("\u0143", True, b"\xad"),
        ("a b", True, b"a b"),
        ("\u2581the", True, "\u2581the".encode()),
        ("\u0120the", False, "\u0120the".encode()),
        ("", True, b""),
    ],
    ids=[
        "space",
        "newline",
        "two bytes",
        "soft hyphen",
        "literal",
        "wide",
        "not byte-level",
        "empty",
    ],
)
def test_what_a_piece_stands_for(piece: str, byte_level: bool, expected: bytes) -> None:
    assert piece_bytes(piece, byte_level=byte_level) == expected


def test_trained_vocabulary_holds_every_byte(bpe: Tokenizer) -> None:
    tokens = bpe._model.vocabulary.tokens
    assert {token for token in tokens.values() if len(token) == 1} == {
        bytes([b]) for b in range(256)
    }


def test_digest_does_not_depend_on_how_the_file_is_written(bpe: Tokenizer, bpe_json: bytes) -> None:
    pretty = json.dumps(json.loads(bpe_json), indent=2, sort_keys=True).encode()
    other = load_files({"tokenizer.json": pretty})
    assert other.files != bpe.files
    assert (other.vocabulary, other.canary) == (bpe.vocabulary, bpe.canary)


def test_canary_tells_another_split_of_the_same_vocabulary(
    bpe: Tokenizer, edited_bpe: Callable[..., bytes]
) -> None:
    other = load_files({"tokenizer.json": edited_bpe(normalizer={"type": "NFC"})})
    assert other.vocabulary == bpe.vocabulary
    assert other.canary != bpe.canary


@pytest.mark.parametrize(
    ("max_id", "dtype"), [(0, "<u2"), (65_535, "<u2"), (65_536, "<u4")], ids=str
)
def test_dtype_follows_the_largest_id(max_id: int, dtype: str) -> None:
    vocabulary = Vocabulary(tokens={0: b"a", max_id: b"b"}, specials={})
    assert vocabulary.token_dtype == np.dtype(dtype)
