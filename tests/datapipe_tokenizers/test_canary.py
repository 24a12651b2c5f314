"""The canary strings are part of the dataset's format: change only with a new CANARY_VERSION."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import numpy.typing as npt

from datapipe_tokenizers.canary import CANARY_VERSION, canary_digest, canary_strings

FROZEN = {1: "d60c8a6a4012a64e274d1ab390f90c55a2c7de57a536d12ed13079bdf06a68de"}


def test_strings_are_frozen() -> None:
    text = json.dumps(canary_strings(), separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest() == FROZEN[CANARY_VERSION]


def test_a_thousand_different_valid_strings() -> None:
    strings = canary_strings()
    assert len(strings) == len(set(strings)) == 1000
    assert sum(len(text.encode()) for text in strings) < 100_000


def test_digest_is_over_version_offsets_and_ids() -> None:
    lengths = np.array([len(text) for text in canary_strings()])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    hashed = b"datapipe canary 1\n" + offsets.astype("<i8").tobytes()
    hashed += np.repeat(lengths, lengths).astype("<u4").tobytes()
    assert canary_digest(encode_to_lengths) == hashlib.sha256(hashed).hexdigest()


def encode_to_lengths(
    texts: list[str],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    lengths = np.array([len(text) for text in texts])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.repeat(lengths, lengths).astype(np.uint32), offsets
