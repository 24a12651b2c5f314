"""The canary: 1,000 tricky strings whose ids tell whether two tokenizers split text alike.

The same vocabulary still gives other ids with another normalizer, another regular expression or
another version of a library's Unicode tables; the digest of the canary's ids changes with each of
them. The strings are frozen: half are written down in canary.json, the rest are made here from
code points by plain arithmetic, so that no version of Python changes them. They change only with a
new `CANARY_VERSION`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from itertools import islice

import numpy as np
import numpy.typing as npt

__all__ = ["CANARY_VERSION", "canary_digest", "canary_strings"]

CANARY_VERSION = 1

_NUM_STRINGS = 1000

Encode = Callable[[list[str]], tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]]


def canary_digest(encode: Encode) -> str:
    """Returns the SHA-256, lower-case hex, of what `encode` makes of the canary strings.

    Hashed are a header with the version, the offsets (int64 LE) and the ids (uint32 LE).
    """
    ids, offsets = encode(list(canary_strings()))
    sha = hashlib.sha256(f"datapipe canary {CANARY_VERSION}\n".encode())
    sha.update(offsets.astype("<i8").tobytes())
    sha.update(ids.astype("<u4").tobytes())
    return sha.hexdigest()


@cache
def canary_strings() -> tuple[str, ...]:
    """Returns the strings, in their order."""
    written: dict[str, list[str]] = json.loads(
        files(__package__).joinpath("canary.json").read_bytes()
    )
    strings = [text for group in written.values() for text in group]
    strings += [f" {text}{text}" for text in written["scripts"]]
    strings += [f'"{text}"\n\n' for text in written["scripts"]]
    for group in (_spaces, _digits, _controls, _odd_code_points, _marks, _repeats):
        strings += group()
    strings += islice(_mixtures(), _NUM_STRINGS - len(strings))
    return tuple(strings)


def _spaces() -> Iterator[str]:
    """Runs of white space of every kind, alone and between words."""
    kinds = [" ", "\t", "\n", "\r", "\r\n", " \n", "\v", "\f"]
    kinds += [chr(code) for code in (0x85, 0xA0, 0x2003, 0x200B, 0x2028, 0x3000)]
    for kind in kinds:
        yield from (kind * times for times in (1, 2, 3, 4, 5, 8, 16, 17, 33))
        yield from (f"a{kind * times}b" for times in (1, 2, 4))


def _digits() -> Iterator[str]:
    """The digits 1234567890 over and over, of many lengths."""
    for length in (*range(1, 13), 20, 40):
        yield ("1234567890" * 4)[:length]


def _controls() -> Iterator[str]:
    """Every control character (C0, DEL, C1) between two letters."""
    for code in (*range(0x20), *range(0x7F, 0xA0)):
        yield f"x{chr(code)}y"


def _odd_code_points() -> Iterator[str]:
    """Byte order marks, non-characters, private use, joiners, tags, the last code point."""
    for code in (0x00, 0xAD, 0x34F, 0x61C, 0x200C, 0x2060, 0x2066, 0xE000, 0xFDD0, 0xFE00):
        yield chr(code)
    for code in (0xFEFF, 0xFFF9, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF, 0x1FFFE, 0xE0001, 0xE0100):
        yield f"{chr(code)}text{chr(code)}"
    yield from (chr(0xF0000), chr(0x10FFFF), f"x{chr(0x10FFFF)} y")


def _marks() -> Iterator[str]:
    """Combining marks on several bases, from one to a stack."""
    marks = [chr(code) for code in (0x301, 0x323, 0x308, 0x327, 0x489, 0x20DD)]
    for base in ("a", "e", "Q", "1", " ", chr(0x915), chr(0x627), chr(0x304B)):
        yield from (base + "".join(marks[:count]) for count in (1, 2, 6))
        yield base + marks[0] * 20


def _repeats() -> Iterator[str]:
    """One unit again and again, up to a thousand times."""
    units = ["a", "ab", "A ", "ha", "=", "-", ".", "0", "\\", "\n#"]
    units += [chr(code) for code in (0xE9, 0x6C49, 0x0E01, 0x1F600)]
    for unit in units:
        yield from (unit * times for times in (10, 100, 1000))


_RANGES = (
    *[(0x20, 0x7E)] * 6,
    *[(0x61, 0x7A)] * 4,
    *((0xA0, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F)),
    *((0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0xDFF), (0xE00, 0xFFF), (0x1100, 0x11FF)),
    *((0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2100, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x9FFF)),
    *((0xAC00, 0xD7A3), (0xF900, 0xFFEF), (0x10000, 0x10FFF), (0x1D400, 0x1D7FF)),
    *((0x1F300, 0x1FAFF), (0x20000, 0x2A6DF)),
)


def _mixtures() -> Iterator[str]:
    """Endlessly many strings of code points from all over, 1 to 40 characters each."""
    draws = _draws()
    while True:
        characters = (
            chr(low + next(draws) % (high - low + 1))
            for low, high in (_RANGES[next(draws) % len(_RANGES)] for _ in range(40))
        )
        yield "".join(islice(characters, 1 + next(draws) % 40))


def _draws() -> Iterator[int]:
    """Numbers below 2**31 of a 64-bit linear congruential generator."""
    state = 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33
