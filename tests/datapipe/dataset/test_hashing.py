from __future__ import annotations

import pytest

from datapipe.dataset import canonical_json, document_hash, hashed_tuple, sha256_hex
from datapipe.dataset.hashing import Field


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ((), ""),
        (("a",), "01000000 00000000 61"),
        ((b"\x00\xff",), "02000000 00000000 00ff"),
        ((258,), "08000000 00000000 0201000000000000"),
        ((-1,), "08000000 00000000 ffffffffffffffff"),
        (((1 << 64) - 1,), "08000000 00000000 ffffffffffffffff"),
        ((True,), "08000000 00000000 0100000000000000"),
        ((1.5,), "08000000 00000000 000000000000f83f"),
        (("",), "00000000 00000000"),
        ((None,), "ffffffff ffffffff"),
        (("\u00e4", 1), "02000000 00000000 c3a4 08000000 00000000 0100000000000000"),
    ],
    ids=repr,
)
def test_hashed_tuple_bytes(fields: tuple[Field, ...], expected: str) -> None:
    assert hashed_tuple(*fields).hex() == expected.replace(" ", "")


def test_tuples_that_join_to_the_same_text_differ() -> None:
    assert hashed_tuple("ab", "c") != hashed_tuple("a", "bc")


def test_canonical_json_bytes() -> None:
    value = {"b": [1, 2.50, None, True], "a\u00e4": "\u00e4\n", "A": {}}
    assert canonical_json(value) == '{"A":{},"a\u00e4":"\u00e4\\n","b":[1,2.5,null,true]}'.encode()


@pytest.mark.parametrize("value", [float("nan"), 1 << 60, object()], ids=["nan", "big", "object"])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        canonical_json({"value": value})


def test_hashes_are_the_standard_ones() -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert sha256_hex(b"") == empty
    assert document_hash(b"").hex() == "cae66941d9efbd404e4d88758ea67670"
    assert document_hash(memoryview(b"abc")).hex() == "cf4ab791c62b8d2b2109c90275287816"
