"""SentencePiece's format: a `.model` file, BPE or Unigram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain, groupby
from struct import error as struct_error
from typing import Any

import numpy as np
import pyarrow as pa

from datapipe_tokenizers.errors import MissingPackageError, TokenizerFormatError
from datapipe_tokenizers.groups import Counts, Ids, encode_in_groups
from datapipe_tokenizers.huggingface import without_tokens
from datapipe_tokenizers.model import FastSource, check_ids
from datapipe_tokenizers.panics import leave_interruptions
from datapipe_tokenizers.vocabulary import Vocabulary
from datapipe_tokenizers.windows import Windows, encode_long

__all__ = ["SentencePieceModel"]

BATCH_BYTES = 1 << 20
"""Text given to the library at once."""

_BPE = Windows(chars=1 << 19, most_chars=8 << 20)
"""It needs 30-60 bytes for each byte of a text, which is one word to it."""

_UNIGRAM = Windows(chars=8 << 20, most_chars=8 << 20)
"""It adds up scores over the text, with rounding that depends on its length: a text stays whole."""

_PROBES = ("<0x0A>", "<0x41>", "\N{LOWER ONE EIGHTH BLOCK}", " \N{LOWER ONE EIGHTH BLOCK}a ")


class SentencePieceModel:
    """Pieces with scores. The library never finds its control symbols in a text.

    Args:
        data: The file.

    Raises:
        TokenizerFormatError: it isn't such a file.
        MissingPackageError: sentencepiece isn't installed.
    """

    reference_name = "sentencepiece"

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._processor = _load(data)
        count = self._processor.get_piece_size()
        self._pieces = [str(self._processor.id_to_piece(number)) for number in range(count)]
        check_ids(dict(enumerate(map(str.encode, self._pieces))))

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """Piece -> id."""
        return {piece: number for number, piece in enumerate(self._pieces)}

    @cached_property
    def added(self) -> dict[str, int]:
        """Control symbols and the unknown piece."""
        known = self._processor
        return {
            piece: number
            for number, piece in enumerate(self._pieces)
            if known.is_control(number) or known.is_unknown(number)
        }

    @property
    def probes(self) -> list[str]:
        """Control symbols, and texts that look like pieces."""
        return [*_PROBES, *self.added]

    @property
    def unknown_id(self) -> int | None:
        """The id of `<unk>`."""
        number = int(self._processor.unk_id())
        return number if number >= 0 else None

    @property
    def eos(self) -> str | None:
        """The piece that the model calls the end of a sentence."""
        number = int(self._processor.eos_id())
        return self._pieces[number] if number >= 0 else None

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Pieces as UTF-8, as a tokenizer.json of the same model has them."""
        tokens = {number: piece.encode() for number, piece in enumerate(self._pieces)}
        return Vocabulary(tokens=tokens, specials=self.added)

    def reference(self, *, reserved: frozenset[str], threads: int) -> SentencePieceEncoder:
        """Returns the encoder of the library.

        Raises:
            TokenizerFormatError: a control symbol isn't reserved; the library finds none.
        """
        if not self.added.keys() - self._unknown <= reserved:
            raise TokenizerFormatError(
                "SentencePiece never reads special tokens out of a text, so `special_text: "
                "special` can't be done with its .model; use the tokenizer's tokenizer.json"
            )
        return SentencePieceEncoder(self._processor, threads=threads)

    @property
    def _unknown(self) -> set[str]:
        return set() if self.unknown_id is None else {self._pieces[self.unknown_id]}

    def fast(self, *, reserved: frozenset[str]) -> FastSource:
        """Returns gigatoken's tokenizer of the model without its reserved tokens."""
        try:
            from gigatoken._load.sentencepiece import sentencepiece_to_tokenizer_json as convert

            data = without_tokens(convert(self._data).encode(), reserved)
        except ImportError as error:
            raise MissingPackageError(
                f"gigatoken isn't installed, or reads no SentencePiece models ({error})"
            ) from error
        except (ValueError, AssertionError, struct_error) as error:
            raise TokenizerFormatError(f"gigatoken can't use it: {error}") from error
        return FastSource(load=lambda library: library.Tokenizer.from_json(data))


class SentencePieceEncoder:
    """Encodes with sentencepiece. Threads may share one."""

    name = "sentencepiece"

    def __init__(self, processor: Any, *, threads: int = 1) -> None:
        self._processor = processor
        self._threads = threads
        self._is_bpe = _is_bpe(processor)
        self._windows = _BPE if self._is_bpe else _UNIGRAM

    def encode(self, texts: pa.LargeStringArray) -> tuple[Ids, Counts]:
        """Returns the ids of all texts, one after the other, and how many each has."""
        return encode_in_groups(texts, self._encode_group, limit=BATCH_BYTES, threads=self._threads)

    def _encode_group(self, texts: pa.LargeStringArray) -> tuple[Ids, Counts]:
        documents = texts.to_pylist()
        if len(documents) == 1 and len(documents[0]) > self._windows.chars:
            return self._encode_long(documents[0])
        lists = self._processor.encode(documents, out_type=int, num_threads=1)
        counts = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        ids = np.fromiter(chain.from_iterable(lists), dtype=np.uint32, count=int(counts.sum()))
        return ids, counts

    def _encode_long(self, document: str) -> tuple[Ids, Counts]:
        ids = encode_long(
            document,
            self._encode_text,
            windows=self._windows,
            name=self.name,
            has_words=None if self._is_bpe else lambda _: False,
        )
        return ids, np.array([len(ids)], dtype=np.int64)

    def _encode_text(self, text: str) -> Ids:
        return np.array(self._processor.encode(text, out_type=int), dtype=np.uint32)

    def produces(self, number: int) -> bool:
        """Whether the model itself finds the token `number` in its own text."""
        return number in self._processor.encode(self._processor.id_to_piece(number))

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of `ids`; what a control symbol parts is decoded on its own."""
        parts = groupby(ids, key=self._processor.is_control)
        return "".join(
            "".join(map(self._processor.id_to_piece, part))
            if control
            else str(self._processor.decode(list(part)))
            for control, part in parts
        )


def _is_bpe(processor: Any) -> bool:
    """Whether a model merges pieces by rank: its scores are ranks, Unigram's are logarithms."""
    numbers = range(processor.get_piece_size())
    return all(float(processor.get_score(number)).is_integer() for number in numbers)


def _load(data: bytes) -> Any:
    try:
        import sentencepiece
    except ImportError as error:
        raise MissingPackageError(
            f"the package `sentencepiece` can't be imported ({error}); a SentencePiece model can't "
            "be read without it. Run `pip install 'datapipe-train[build]'`"
        ) from error
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=data)
    except BaseException as error:
        leave_interruptions(error)
        raise TokenizerFormatError(
            f"sentencepiece can't read the model ({' '.join(str(error).split())[:200]}); the file "
            "is damaged or no SentencePiece model. Fetch it again, or name a tokenizer.json"
        ) from error
