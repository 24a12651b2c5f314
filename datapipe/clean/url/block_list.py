"""Lists of millions of names in bounded memory: 16 bytes an entry, whatever its length.

Entries are kept as 128-bit hashes (BLAKE2b) in a sorted array. With ten million names and ten
billion look-ups the chance that another name is taken for one of them is 1 in 10^21.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from datapipe.errors import InputError

__all__ = ["BlockList", "read_block_list"]

Hashes: TypeAlias = npt.NDArray[np.uint64]

_AT_ONCE = 1 << 17


class BlockList:
    """A set of texts that can only be asked whether a text is in it."""

    def __init__(self, names: Iterable[str]) -> None:
        parts = [np.zeros((0, 2), np.uint64)]
        pending = iter(names)
        while batch := list(islice(pending, _AT_ONCE)):
            parts.append(_hashes(batch))
        hashes = np.concatenate(parts)
        del parts
        order = np.lexsort((hashes[:, 1], hashes[:, 0]))
        self._high = np.ascontiguousarray(hashes[order, 0])
        self._low = np.ascontiguousarray(hashes[order, 1])

    def __len__(self) -> int:
        return len(self._high)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return self._high.nbytes + self._low.nbytes

    def __contains__(self, name: str) -> bool:
        if not len(self._high):
            return False
        high, low = _hashes([name])[0]
        start = int(np.searchsorted(self._high, high, side="left"))
        while start < len(self._high) and self._high[start] == high:  # one, but for a wonder
            if self._low[start] == low:
                return True
            start += 1
        return False


def _hashes(names: list[str]) -> Hashes:
    data = b"".join(blake2b(name.encode(), digest_size=16).digest() for name in names)
    return np.frombuffer(data, "<u8").reshape(-1, 2)


def read_block_list(path: str, *, entry: Callable[[str], str]) -> BlockList:
    """Returns the list in a text file: one name a line; blank lines and those with # are skipped.

    Args:
        path: the file; the form of hosts files ("0.0.0.0 NAME") is understood.
        entry: how a line is written in the list.

    Raises:
        InputError: the file can't be read.
    """
    try:
        return BlockList(_entries(path, entry))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the list {path} of url_filter can't be read: {error}; nothing was built; give a file "
            "of UTF-8 text, one entry each line"
        ) from error


def _entries(path: str, entry: Callable[[str], str]) -> Iterator[str]:
    with Path(path).expanduser().open(encoding="utf-8-sig") as lines:
        for line in lines:
            text = line.strip()
            if text and not text.startswith("#"):
                yield entry(
                    text.split()[-1] if text.startswith(("0.0.0.0 ", "127.0.0.1 ")) else text
                )
