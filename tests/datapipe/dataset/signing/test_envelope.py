from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datapipe.dataset import SigningKey
from datapipe.dataset.signing.envelope import PAYLOAD_TYPE, open_envelope, pae, seal_envelope


def test_the_encoding_that_the_protocol_gives_as_an_example() -> None:
    expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert pae("http://example.com/HelloWorld", b"hello world") == expected


def test_lengths_count_bytes() -> None:
    assert pae("typ\u00e9", "\u00e9".encode()) == b"DSSEv1 5 typ\xc3\xa9 2 \xc3\xa9"
    assert pae("", b"") == b"DSSEv1 0  0 "


@given(payload=st.binary(max_size=200))
def test_what_was_sealed_is_opened(key: SigningKey, payload: bytes) -> None:
    sealed = seal_envelope(payload, key)
    assert open_envelope(sealed, key.public) == payload
    assert seal_envelope(payload, key) == sealed


SEALED_BYTES = 300


@given(place=st.integers(0, SEALED_BYTES - 1), mask=st.integers(1, 255))
def test_any_changed_byte_is_refused(key: SigningKey, place: int, mask: int) -> None:
    sealed = bytearray(seal_envelope(b'{"a": [1, 2.5, "x"]}', key))
    sealed[place % len(sealed)] ^= mask
    with pytest.raises(ValueError, match="it"):
        open_envelope(bytes(sealed), key.public)


def test_every_bit_counts(key: SigningKey) -> None:
    sealed = seal_envelope(b"{}", key)
    for bit in range(8 * len(sealed)):
        changed = bytearray(sealed)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="it"):
            open_envelope(bytes(changed), key.public)
    for end in range(len(sealed)):
        with pytest.raises(ValueError, match="it"):
            open_envelope(sealed[:end], key.public)


def test_another_key_opens_nothing(key: SigningKey, other_key: SigningKey) -> None:
    with pytest.raises(ValueError, match="its signature is by key"):
        open_envelope(seal_envelope(b"{}", key), other_key.public)


def _envelope(key: SigningKey, *, kind: str = PAYLOAD_TYPE, **fields: object) -> bytes:
    signature = base64.b64encode(key.sign(pae(kind, b"{}"))).decode()
    envelope = {
        "payload": "e30=",
        "payloadType": kind,
        "signatures": [{"keyid": key.public.key_id, "sig": signature}],
    }
    return json.dumps({**envelope, **fields}, separators=(",", ":"), sort_keys=True).encode()


def test_an_envelope_made_elsewhere_is_opened(key: SigningKey) -> None:
    assert open_envelope(_envelope(key), key.public) == b"{}"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "isn't a DSSE envelope"),
        (b"[" * 100_000, "isn't a DSSE envelope"),
        (b"null", "isn't a DSSE envelope"),
        (b'{"payload":"e30=","payloadType":"x","signatures":[]}', "isn't a DSSE envelope"),
        (b"\xff\xfe", "isn't a DSSE envelope"),
    ],
    ids=["empty", "deep", "null", "no signature", "not UTF-8"],
)
def test_what_is_no_envelope_is_refused(key: SigningKey, data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_envelope(data, key.public)


def test_forms_that_another_reader_might_take_are_refused(
    key: SigningKey, other_key: SigningKey
) -> None:
    (good,) = json.loads(_envelope(key))["signatures"]
    (others,) = json.loads(_envelope(other_key))["signatures"]
    with pytest.raises(ValueError, match="payload is 'text/plain'"):
        open_envelope(_envelope(key, kind="text/plain"), key.public)
    with pytest.raises(ValueError, match="isn't a DSSE envelope"):
        open_envelope(_envelope(key, extra=1), key.public)
    with pytest.raises(ValueError, match="isn't a DSSE envelope"):
        open_envelope(_envelope(key, signatures=[good, others]), key.public)
    renamed = {**good, "keyid": others["keyid"]}
    with pytest.raises(ValueError, match="its signature is by key"):
        open_envelope(_envelope(key, signatures=[renamed]), key.public)
    with pytest.raises(ValueError, match="canonical"):
        open_envelope(_envelope(key) + b"\n", key.public)
