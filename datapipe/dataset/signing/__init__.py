"""Signed versions: an in-toto statement of a version in a DSSE envelope, by an Ed25519 key.

Owns keys, envelopes, statements and where they lie; the library `cryptography` is needed here and
nowhere else, and only by whoever signs or checks. Knows nothing of what the bytes below a manifest
are: that they are the manifest's is `verify`'s work.
"""

from datapipe.dataset.signing.keys import (
    SigningKey,
    VerifyingKey,
    read_signing_key,
    read_verifying_key,
    write_key_pair,
)
from datapipe.dataset.signing.stored import (
    Signed,
    Signer,
    check_signature,
    check_signers,
    list_all_signers,
    list_signers,
    sign_version,
)

__all__ = [
    "Signed",
    "Signer",
    "SigningKey",
    "VerifyingKey",
    "check_signature",
    "check_signers",
    "list_all_signers",
    "list_signers",
    "read_signing_key",
    "read_verifying_key",
    "sign_version",
    "write_key_pair",
]
