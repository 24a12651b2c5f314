"""What every format of tokenizer gives: its facts, its reference and what the fast backend takes.

One module a format makes one: `huggingface`, `tiktoken`, `tekken`, `sentencepiece`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from datapipe_tokenizers.errors import TokenizerFormatError
from datapipe_tokenizers.groups import Encoder, Ids
from datapipe_tokenizers.vocabulary import Vocabulary

__all__ = ["MAX_ID", "FastSource", "Model", "Reference", "check_ids"]

MAX_ID = (1 << 24) - 1
"""Larger ids are taken for damage: tables by id are made, and no vocabulary is near it."""


class Reference(Encoder, Protocol):
    """The library that defines a format, which all other backends have to agree with."""

    def produces(self, number: int) -> bool:
        """Whether the model itself finds the token `number` in its own text."""

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of `ids`, special tokens included."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FastSource:
    """How gigatoken gets a tokenizer."""

    load: Callable[[Any], Any]
    """The package -> a tokenizer that knows no reserved token."""
    numbers: Ids | None = None
    """Its id -> the tokenizer's id; None: they are the same."""


class Model(Protocol):
    """A tokenizer as one format describes it."""

    @property
    def ids(self) -> Mapping[str, int]:
        """Every token's text as the file has it -> id."""

    @property
    def added(self) -> Mapping[str, int]:
        """Those of `ids` that are no pieces of ordinary text."""

    @property
    def probes(self) -> Sequence[str]:
        """Texts that backends may read differently, tried in surroundings when one is chosen."""

    @property
    def unknown_id(self) -> int | None:
        """The id that stands for what the vocabulary lacks."""

    @property
    def eos(self) -> str | None:
        """The end-of-text token that the file itself names."""

    @property
    def vocabulary(self) -> Vocabulary:
        """What each id stands for."""

    @property
    def reference_name(self) -> str:
        """Name of the library that defines the format."""

    def reference(self, *, reserved: frozenset[str], threads: int) -> Reference:
        """Returns the encoder of that library; no text makes it produce a reserved token."""

    def fast(self, *, reserved: frozenset[str]) -> FastSource:
        """Returns what gigatoken encodes with.

        Raises:
            TokenizerFormatError: it can't.
        """


def check_ids(tokens: Mapping[int, bytes]) -> None:
    """Raises: TokenizerFormatError: no tokens, or an id that no real vocabulary has."""
    if not tokens:
        raise TokenizerFormatError(
            "the tokenizer has no tokens, so nothing can be encoded; take another file, "
            "this one may be a part of a tokenizer"
        )
    if min(tokens) < 0 or max(tokens) > MAX_ID:
        number = min(tokens) if min(tokens) < 0 else max(tokens)
        raise TokenizerFormatError(
            f"the tokenizer has a token with id {number:,}; ids from 0 to {MAX_ID:,} can be used. "
            "Its file is damaged; use another one"
        )
