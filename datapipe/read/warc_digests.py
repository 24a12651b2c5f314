"""The digests that WARC records carry of themselves."""

from __future__ import annotations

import hashlib
import re

__all__ = ["is_digest_of"]

_NOT_BASE32 = re.compile("[^A-Z2-7]")
_DIGITS = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghijklmnopqrstuv")
"""Base32 to the digits that `int` takes: its codec in the library takes as long as the digest."""
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
        digits = text.upper().rstrip("=")
        extra = 5 * len(digits) - 8 * size
        if not 0 <= extra < 5 or _NOT_BASE32.search(digits):
            return None
        return (int(digits.translate(_DIGITS), 32) >> extra).to_bytes(size)
    except ValueError:
        return None
