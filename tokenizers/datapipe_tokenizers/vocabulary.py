"""The vocabulary: what each id stands for and which ids are special, and its digest.

The digest is the same for the same vocabulary whatever file format it came in.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

__all__ = ["Vocabulary", "piece_bytes", "token_dtype"]

_HEADER = b"datapipe vocabulary 1\n"
_ENTRY = struct.Struct("<IBI")


def token_dtype(max_id: int) -> np.dtype[np.unsignedinteger]:
    """Returns the dtype of stored ids up to `max_id`: little-endian uint16, else uint32."""
    return np.dtype("<u2") if max_id < 1 << 16 else np.dtype("<u4")


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """Tokens by id. Ids may have holes."""

    tokens: Mapping[int, bytes]
    """id -> bytes that it stands for (byte-level), or the UTF-8 of its piece (others)."""

    specials: Mapping[str, int]
    """Text -> id of the special tokens."""

    @property
    def max_id(self) -> int:
        """The largest id."""
        return max(self.tokens)

    @property
    def token_dtype(self) -> np.dtype[np.unsignedinteger]:
        """Little-endian uint16 if every id fits, else uint32."""
        return token_dtype(self.max_id)

    def digest(self) -> str:
        """SHA-256, lower-case hex, over the tokens in ascending order of their ids.

        Hashed are a header and for each token: id (uint32 LE), 1 if special else 0 (one byte),
        number of bytes (uint32 LE), bytes.
        """
        special = set(self.specials.values())
        sha = hashlib.sha256(_HEADER)
        for number in sorted(self.tokens):
            token = self.tokens[number]
            sha.update(_ENTRY.pack(number, number in special, len(token)) + token)
        return sha.hexdigest()


def _byte_alphabet() -> dict[str, int]:
    """The characters that stand for bytes in byte-level vocabularies (as of GPT-2).

    Printable Latin-1 characters stand for their own byte; the other bytes take the code points
    from 256 on, in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    alphabet = {chr(byte): byte for byte in printable}
    return alphabet | {chr(256 + place): byte for place, byte in enumerate(others)}


def _translation() -> dict[int, int]:
    """Code point -> byte, for `str.translate`; what isn't in the alphabet becomes no byte."""
    others = {code: _NO_BYTE for code in range(256)}
    return others | {ord(char): byte for char, byte in _byte_alphabet().items()}


_NO_BYTE = 0xFFFF
_TO_BYTES = _translation()


def piece_bytes(piece: str, *, byte_level: bool) -> bytes:
    """Returns what a vocabulary's piece stands for.

    In a byte-level vocabulary each character stands for a byte; a piece with any other character
    is literal, as added tokens are.
    """
    if byte_level:
        with suppress(UnicodeEncodeError):
            return piece.translate(_TO_BYTES).encode("latin-1")
    return piece.encode("utf-8", "surrogatepass")
