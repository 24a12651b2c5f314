"""What a process found of a tokenizer, for itself and for other processes on the same machine.

Loading a tokenizer to compare its backends takes 1-4 s for large vocabularies; with this a worker
process loads the fast backend alone, and the reference when it is first needed.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version

import pyarrow as pa

from datapipe_tokenizers.groups import Counts, Ids
from datapipe_tokenizers.model import Reference

__all__ = ["Facts", "LazyReference", "environment"]

_PACKAGES = ("gigatoken", "sentencepiece", "tiktoken", "tokenizers")


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What encoding needs to know of a tokenizer."""

    environment: str
    """Where it was found; elsewhere libraries may read the tokenizer otherwise."""
    fast: bool
    """Whether the fast backend gives the reference's ids."""
    eos_name: str
    eos_id: int
    specials: Mapping[str, int]
    """Text -> id of the tokens that are declared special."""
    reserved: Mapping[str, int]
    """Text -> id of the tokens that no text produces."""
    max_id: int


def environment() -> str:
    """Returns the machine and the versions of the libraries that encode."""
    packages = " ".join(f"{name}={_version(name)}" for name in _PACKAGES)
    return f"{platform.node()} {platform.machine()} {packages}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


class LazyReference:
    """A reference that is made when it is first used."""

    def __init__(self, name: str, make: Callable[[], Reference]) -> None:
        self.name = name
        self._make = make

    @cached_property
    def _reference(self) -> Reference:
        return self._make()

    def encode(self, texts: pa.LargeStringArray) -> tuple[Ids, Counts]:
        """See Reference."""
        return self._reference.encode(texts)

    def produces(self, number: int) -> bool:
        """See Reference."""
        return self._reference.produces(number)

    def decode(self, ids: Sequence[int]) -> str:
        """See Reference."""
        return self._reference.decode(ids)
