"""The digests that WARC records carry of themselves."""

from __future__ import annotations

import base64
import binascii
import hashlib

__all__ = ["is_digest_of"]

_ALGORITHMS = {"sha1": 20, "sha256": 32, "md5": 16, "sha512": 64}


def is_digest_of(label: str, data: bytes) -> bool | None:
    """Tells whether `label` ("sha1:...", Base32 or hexadecimal) is the digest of `data`.

    None: it isn't a digest that is known.
    """
    name, _, text = label.strip().partition(":")
    algorithm = name.lower().replace("-", "")
    size = _ALGORITHMS.get(algorithm)
    expected = _decoded(text.strip(), size) if size is not None else None
    if expected is None:
        return None
    return hashlib.new(algorithm, data, usedforsecurity=False).digest() == expected


def _decoded(text: str, size: int) -> bytes | None:
    try:
        if len(text) == 2 * size:
            return bytes.fromhex(text)
        padded = text.upper().rstrip("=")
        found = base64.b32decode(padded + "=" * (-len(padded) % 8))
    except (ValueError, binascii.Error):
        return None
    return found if len(found) == size else None
