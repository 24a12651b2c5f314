"""Sizes in bytes as people write them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator

__all__ = ["Size", "parse_size"]

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgtp]?)(i?)(b?)\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def parse_size(size: object) -> int:
    """Returns bytes: `64MiB` is 64 x 1,048,576, `64MB` is 64 x 1,000,000, `64` is 64.

    Raises:
        ValueError: it isn't a size, or not a whole number of bytes.
    """
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if match is None or (match[3] and not match[2]):
        raise ValueError("not a size; write bytes as a whole number, or like 64MiB, 1.5GiB, 10MB")
    base = 1024 if match[3] else 1000
    count = Decimal(match[1]) * base ** _POWERS[match[2].lower()]
    if count != int(count):
        raise ValueError("not a whole number of bytes")
    return int(count)


Size = Annotated[int, BeforeValidator(parse_size)]
"""A number of bytes, as people write it."""
