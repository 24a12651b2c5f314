"""tiktoken's format: a file of byte strings with their ranks, and an encoding beside it.

Byte-level BPE: the rank of a token is its id and its priority in merging. Tekken files hold the
same with shifted ids.
"""

from __future__ import annotations

import base64
import binascii
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from datapipe_tokenizers.encodings import (
    KNOWN,
    SCHEMES,
    Encoding,
    import_tiktoken,
    parse_encoding,
)
from datapipe_tokenizers.errors import LimitError, TokenizerFormatError
from datapipe_tokenizers.groups import Counts, Ids, encode_in_groups
from datapipe_tokenizers.model import FastSource, check_ids
from datapipe_tokenizers.panics import leave_interruptions
from datapipe_tokenizers.vocabulary import Vocabulary
from datapipe_tokenizers.windows import Windows, encode_long

__all__ = ["RankModel", "dump_ranks", "parse_ranks", "rank_model"]

BATCH_BYTES = 1 << 20
"""Text that a thread encodes at once."""

WINDOWS = Windows(chars=1 << 17, most_chars=1 << 20)
"""It fails on runs of some hundred thousand white-space characters."""


def rank_model(ranks: bytes, encoding: bytes) -> RankModel:
    """Returns the tokenizer of a rank file and its encoding.json.

    Raises:
        TokenizerFormatError: one of them isn't what it should be.
        MissingPackageError: tiktoken isn't installed.
    """
    parsed, settings = parse_ranks(ranks), parse_encoding(encoding)
    known = KNOWN.get(settings.name)
    if known and known.pattern == settings.pattern and len(parsed) != known.num_ranks:
        raise TokenizerFormatError(
            f"the rank file of {known.name} has {len(parsed):,} tokens, the published one has "
            f"{known.num_ranks:,}; it is cut off or another encoding's. Fetch it again, or give it "
            "another name and an encoding.json"
        )
    return RankModel(ranks=parsed, encoding=settings)


def parse_ranks(data: bytes) -> dict[bytes, int]:
    """Returns token -> rank of a rank file: a line for each, base64 and a number.

    Raises:
        TokenizerFormatError: a line is something else.
    """
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise TokenizerFormatError(
                f"line {number} of the rank file is {line[:40]!r}, not a base64 text and a number; "
                "the file is damaged or no rank file. Fetch it again"
            ) from error
    return ranks


def dump_ranks(ranks: Mapping[bytes, int]) -> bytes:
    """Returns the rank file, by rank."""
    ordered = sorted(ranks.items(), key=lambda item: item[1])
    return b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in ordered)


@dataclass(frozen=True, kw_only=True)
class RankModel:
    """Byte-level BPE by ranks."""

    ranks: Mapping[bytes, int]
    """Token -> its id, ascending as it is merged."""
    encoding: Encoding
    format: str = "rank file"
    reference_name: str = "tiktoken"
    unknown_id: int | None = None
    eos: str | None = None

    def __post_init__(self) -> None:
        import_tiktoken()
        taken = set(self.ranks.values())
        self._refuse(len(taken) != len(self.ranks), "gives two tokens the same id")
        bytes_missing = 256 - sum(bytes([byte]) in self.ranks for byte in range(256))
        self._refuse(bytes_missing > 0, f"lacks {bytes_missing} of the 256 bytes")
        shared = [n for n, number in self.encoding.special_tokens.items() if number in taken]
        self._refuse(bool(shared), f"gives special tokens the ids of others ({shared[:3]})")

    def _refuse(self, wrong: bool, what: str) -> None:
        if wrong:
            raise TokenizerFormatError(
                f"the {self.format} {what}, so it can't encode every text; it is damaged or "
                "incomplete. Fetch it again"
            )

    @property
    def added(self) -> Mapping[str, int]:
        """Its special tokens."""
        return self.encoding.special_tokens

    @property
    def probes(self) -> list[str]:
        """Its special tokens."""
        return list(self.added)

    @cached_property
    def ids(self) -> dict[str, int]:
        """Text -> id of the tokens that are text, and of the specials."""
        texts: dict[str, int] = {}
        for token, number in self.ranks.items():
            try:
                texts[token.decode()] = number
            except UnicodeDecodeError:
                continue
        return texts | dict(self.added)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Tokens and special tokens."""
        tokens = {number: token for token, number in self.ranks.items()}
        tokens |= {number: name.encode() for name, number in self.added.items()}
        check_ids(tokens)
        return Vocabulary(tokens=tokens, specials=self.added)

    def reference(self, *, reserved: frozenset[str], threads: int) -> TiktokenEncoder:
        """Returns the encoder of tiktoken."""
        return TiktokenEncoder(self, allowed=self.added.keys() - reserved, threads=threads)

    def fast(self, *, reserved: frozenset[str]) -> FastSource:
        """Returns gigatoken's tokenizer of the ranks."""
        scheme = SCHEMES.get(self.encoding.pattern)
        if scheme is None:
            raise TokenizerFormatError(
                f"gigatoken doesn't know the pattern of {self.encoding.name}"
            )
        found = {n: number for n, number in self.added.items() if n not in reserved}
        return _fast_source(self.ranks, found, scheme)


class TiktokenEncoder:
    """Encodes with tiktoken. Threads may share one.

    Args:
        model: The ranks.
        allowed: Special tokens that are found in a text; others are ordinary text.
        threads: Threads that encode one batch.
    """

    name = "tiktoken"

    def __init__(self, model: RankModel, *, allowed: set[str], threads: int = 1) -> None:
        self._allowed = allowed
        self._threads = threads
        try:
            self._encoding = import_tiktoken().Encoding(
                model.encoding.name,
                pat_str=model.encoding.pattern,
                mergeable_ranks=dict(model.ranks),
                special_tokens=dict(model.added),
            )
        except BaseException as error:
            leave_interruptions(error)
            raise TokenizerFormatError(
                f"tiktoken can't use the {model.format} of {model.encoding.name}: {error}. "
                "Check its pattern and special tokens"
            ) from error

    def encode(self, texts: pa.LargeStringArray) -> tuple[Ids, Counts]:
        """Returns the ids of all texts, one after the other, and how many each has.

        Raises:
            LimitError: a text that tiktoken can't split.
        """
        return encode_in_groups(texts, self._encode_group, limit=BATCH_BYTES, threads=self._threads)

    def _encode_group(self, texts: pa.LargeStringArray) -> tuple[Ids, Counts]:
        arrays = [self._encode_text(text) for text in texts.to_pylist()]
        counts = np.array([len(array) for array in arrays], dtype=np.int64)
        return np.concatenate([np.empty(0, np.uint32), *arrays]), counts

    def _encode_text(self, text: str) -> Ids:
        if len(text) <= WINDOWS.chars:
            return self._encode_one(text)
        return encode_long(text, self._encode_one, windows=WINDOWS, name=self.name)

    def _encode_one(self, text: str) -> Ids:
        try:
            ids: Ids = self._encoding.encode_to_numpy(
                text, allowed_special=self._allowed, disallowed_special=()
            )
        except BaseException as error:
            leave_interruptions(error)
            raise LimitError(
                f"tiktoken can't encode a text of {len(text):,} characters ({error}); it fails on "
                "runs of some hundred thousand white-space characters. Repair or drop the "
                "document, or use the tokenizer's tokenizer.json"
            ) from error
        return ids

    def produces(self, number: int) -> bool:
        """Whether the model itself finds the token `number` in its own text."""
        text = self.decode([number])
        return bool(text) and number in self._encoding.encode_ordinary(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of `ids`, special tokens included."""
        return str(self._encoding.decode(ids))


def _fast_source(
    ranks: Mapping[bytes, int], specials: Mapping[str, int], scheme: str
) -> FastSource:
    """Gives gigatoken the tokens numbered without holes, as it needs them."""
    ordered = sorted(ranks.items(), key=lambda item: item[1])
    dense = {token: place for place, (token, _) in enumerate(ordered)}
    numbers = np.array([number for _, number in ordered] + [*specials.values()], dtype=np.uint32)
    load = _load_ranks(dense, {n: len(dense) + i for i, n in enumerate(specials)}, scheme)
    same = bool((numbers == np.arange(len(numbers))).all())
    return FastSource(load=load, numbers=None if same else numbers)


def _load_ranks(
    ranks: Mapping[bytes, int], specials: Mapping[str, int], scheme: str
) -> Callable[[Any], Any]:
    data = dump_ranks(ranks)

    def load(library: Any) -> Any:
        with tempfile.NamedTemporaryFile(suffix=".tiktoken") as file:  # it reads only files
            file.write(data)
            file.flush()
            return library.Tokenizer.from_tiktoken(
                file.name, pretokenizer=scheme, special_tokens=dict(specials) or None
            )

    return load
