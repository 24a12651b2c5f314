"""DSSE envelopes (protocol version 1.0) with one signature.

The envelope is stored as canonical JSON, and nothing but the one form of it is accepted: DSSE
leaves the key id and the flavour of base64 unauthenticated, here a changed byte is a changed byte.
"""

from __future__ import annotations

import base64
from typing import NamedTuple

import msgspec

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.signing.keys import SigningKey, VerifyingKey

__all__ = [
    "MOST_BYTES",
    "PAYLOAD_TYPE",
    "Sealed",
    "open_envelope",
    "pae",
    "read_envelope",
    "seal_envelope",
]

MOST_BYTES = 1 << 20
"""A statement has some 2 kB; nobody is to be made to read more than this."""


PAYLOAD_TYPE = "application/vnd.in-toto+json"

_SIGNATURE_BYTES = 64


class Sealed(NamedTuple):
    """What an envelope holds; whether its signature is right isn't known."""

    payload: bytes
    signature: bytes


class _Signature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    keyid: str
    sig: bytes


class _Envelope(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    payload: bytes
    payload_type: str
    signatures: tuple[_Signature]


def pae(payload_type: str, payload: bytes) -> bytes:
    """Returns what is signed: DSSE's pre-authentication encoding of type and payload."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def seal_envelope(payload: bytes, key: SigningKey) -> bytes:
    """Returns the envelope of a payload, signed; equal arguments, equal bytes."""
    signature = key.sign(pae(PAYLOAD_TYPE, payload))
    return _encode(payload, key_id=key.public.key_id, signature=signature)


def read_envelope(data: bytes, *, key_id: str) -> Sealed:
    """Returns the payload and the signature that a key is said to have made of it.

    Raises:
        ValueError: it isn't the one form of an envelope by that key; says why.
    """
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ValueError(f"it isn't a DSSE envelope: {error}") from error
    if envelope.payload_type != PAYLOAD_TYPE:
        raise ValueError(f"its payload is {envelope.payload_type!r}, {PAYLOAD_TYPE!r} expected")
    (signature,) = envelope.signatures
    if signature.keyid != key_id:
        raise ValueError(f"its signature is by key {signature.keyid[:64]!r}, {key_id} expected")
    if len(signature.sig) != _SIGNATURE_BYTES:
        raise ValueError(
            f"its signature has {len(signature.sig)} bytes, {_SIGNATURE_BYTES} expected"
        )
    if data != _encode(envelope.payload, key_id=key_id, signature=signature.sig):
        raise ValueError("its bytes aren't the canonical envelope of what was signed")
    return Sealed(envelope.payload, signature.sig)


def open_envelope(data: bytes, key: VerifyingKey) -> bytes:
    """Returns the payload that the holder of a key signed.

    Raises:
        ValueError: it isn't an envelope, or not signed with this key; says why.
    """
    payload, signature = read_envelope(data, key_id=key.key_id)
    if not key.accepts(signature, pae(PAYLOAD_TYPE, payload)):
        raise ValueError("its signature isn't by this key, or it was changed after it was signed")
    return payload


def _encode(payload: bytes, *, key_id: str, signature: bytes) -> bytes:
    return canonical_json(
        {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"keyid": key_id, "sig": base64.b64encode(signature).decode()}],
        }
    )
