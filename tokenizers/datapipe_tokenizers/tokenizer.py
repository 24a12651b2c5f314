"""A loaded tokenizer: texts to ids and back, and the facts that a dataset keeps of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe_tokenizers.canary import canary_digest
from datapipe_tokenizers.choice import (
    BACKENDS,
    Choice,
    Difference,
    choose_backend,
    first_difference,
)
from datapipe_tokenizers.eos import choose_eos
from datapipe_tokenizers.errors import (
    BackendError,
    EndOfTextError,
    TextError,
    TokenizerFormatError,
)
from datapipe_tokenizers.files import read_files
from datapipe_tokenizers.formats import open_model
from datapipe_tokenizers.huggingface import use_own_threads
from datapipe_tokenizers.model import Model, Reference

__all__ = ["Tokenizer", "load", "load_files"]


def load(
    path: str | Path,
    *,
    eos: str | int | None = None,
    threads: int = 1,
    backend: str = "auto",
) -> Tokenizer:
    """Returns the tokenizer at `path`.

    Args:
        path: A Hugging Face tokenizer.json, a SentencePiece .model, a tekken.json, a rank file of
            tiktoken, a folder with one of them, or the name of an encoding of tiktoken. A file
            stands for itself; of a folder, tokenizer_config.json and special_tokens_map.json are
            read too: they name the end-of-text token.
        eos: The token that closes a document, by its text or id; where not given, the
            tokenizer's own `eos_token`, else a well-known name (`eos.WELL_KNOWN`).
        threads: Threads that encode one batch. The default is 1 because the work is spread over
            processes; Hugging Face's own pool of threads is switched off for this process and its
            children, unless the environment sets TOKENIZERS_PARALLELISM.
        backend: Which library encodes, one of BACKENDS; all give the same ids. "auto" takes
            gigatoken where it agrees with the tokenizer's reference on some thousand strings.

    Raises:
        TokenizerError: the tokenizer can't be used; the message says why and what to do.
    """
    files = read_files(path)
    try:
        return load_files(files, eos=eos, threads=threads, backend=backend)
    except (TokenizerFormatError, EndOfTextError) as error:
        raise type(error)(f"{path}: {error}") from error


def load_files(
    files: Mapping[str, bytes],
    *,
    eos: str | int | None = None,
    threads: int = 1,
    backend: str = "auto",
) -> Tokenizer:
    """Returns the tokenizer of `files`, as `Tokenizer.files` gives them; see `load`.

    Raises:
        TokenizerError: the tokenizer can't be used; the message says why and what to do.
    """
    if threads < 1:
        raise ValueError(f"threads is {threads}; at least one thread has to encode")
    if backend not in BACKENDS:
        raise BackendError(
            f"there is no backend {backend!r}; choose {', '.join(BACKENDS[:-1])} or {BACKENDS[-1]}"
        )
    use_own_threads()
    model = open_model(files)
    specials = model.vocabulary.specials
    eos_id = choose_eos(eos, vocabulary=model.ids, specials=specials, files=files, own=model.eos)
    eos_name = next(name for name, number in model.ids.items() if number == eos_id)
    reserved = frozenset(specials) | {eos_name}
    reference = model.reference(reserved=reserved, threads=threads)
    _check_eos(eos_name, model, reference)
    choice = choose_backend(model, reference, reserved=reserved, backend=backend, threads=threads)
    return Tokenizer(
        model,
        choice=choice,
        reference=reference,
        eos_id=eos_id,
        files=files,
        settings={"threads": threads, "backend": backend},
    )


def _check_eos(name: str, model: Model, encoder: Reference) -> None:
    """Refuses an end-of-text token that a document's own text contains."""
    number = model.ids[name]
    ordinary = name not in model.added and encoder.produces(number)
    if ordinary or number == model.unknown_id:
        meaning = "is ordinary text" if ordinary else "also stands for unknown text"
        raise EndOfTextError(
            f"the end-of-text token `{name}` (id {number}) {meaning} for this tokenizer: documents "
            "that contain it would be cut there. Name a special token with "
            "`tokenize: {eos: TOKEN}` in the recipe or `--eos TOKEN`"
        )


class Tokenizer:
    """Texts to ids and back. Threads may share one; it pickles as its files.

    Made by `load` and `load_files`.
    """

    def __init__(
        self,
        model: Model,
        *,
        choice: Choice,
        reference: Reference,
        eos_id: int,
        files: Mapping[str, bytes],
        settings: Mapping[str, Any],
    ) -> None:
        self._model = model
        self._encoder = choice.encoder
        self._reference = reference
        self._settings = dict(settings)
        self.backend_reason = choice.reason
        self.eos_id = eos_id
        self.files = dict(files)
        self._max_id = model.vocabulary.max_id

    def encode_batch(
        self, texts: pa.Array | pa.ChunkedArray | Sequence[str]
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Returns the ids of all texts, one after the other, and where each begins.

        No special tokens are added, and the text of a special token ("<|endoftext|>" in a
        document) is encoded as the characters that it is. Added tokens that the tokenizer doesn't
        declare special (runs of spaces, say) are used as it means them. Truncation, padding and
        dropout that its file may set are off.

        Args:
            texts: Strings (an Arrow column without nulls, or a sequence of str).

        Returns:
            uint32 ids, and int64 offsets [len(texts) + 1] into them: text i has
            ids[offsets[i]:offsets[i + 1]].

        Raises:
            TextError: a null, something else than text, or text that isn't valid Unicode.
        """
        ids, counts = self._encoder.encode(_as_column(texts))
        offsets = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=offsets[1:])
        return ids, offsets

    def compare(self, texts: pa.Array | pa.ChunkedArray | Sequence[str]) -> Difference | None:
        """Returns where the ids of `texts` first differ from the reference's, None if nowhere.

        As slow as the reference. Texts as in `encode_batch`.
        """
        if self._encoder is self._reference:
            return None
        column = _as_column(texts)
        return first_difference(self._encoder.encode(column), self._reference.encode(column))

    def decode(self, ids: Sequence[int] | npt.NDArray[np.integer]) -> str:
        """Returns the text of `ids`; special tokens appear as their text.

        Raises:
            ValueError: an id that isn't in the vocabulary.
        """
        numbers = np.asarray(ids, dtype=np.int64)
        inside = (numbers >= 0) & (numbers <= self.max_id)
        known = inside & self._is_token[np.where(inside, numbers, 0)]
        if not known.all():
            raise ValueError(
                f"id {numbers[~known][0]} isn't in the vocabulary (largest id {self.max_id}): "
                "these ids belong to another tokenizer"
            )
        return self._reference.decode(numbers.tolist())

    @property
    def vocab_size(self) -> int:
        """Number of tokens, added ones included. Ids may have holes: see `max_id`."""
        return len(self._model.vocabulary.tokens)

    @property
    def max_id(self) -> int:
        """The largest id, added tokens included."""
        return self._max_id

    @property
    def token_dtype(self) -> np.dtype[np.unsignedinteger]:
        """The dtype of stored ids: little-endian uint16 if `max_id` < 65,536, else uint32."""
        return self._model.vocabulary.token_dtype

    @property
    def special_tokens(self) -> dict[str, int]:
        """Text -> id of the tokens that the tokenizer declares special, ascending by id."""
        return dict(self._model.vocabulary.specials)

    @property
    def backend(self) -> str:
        """Name of the library that encodes."""
        return self._encoder.name

    @cached_property
    def vocabulary(self) -> str:
        """SHA-256 (hex) of the vocabulary: which bytes each id stands for, and the specials."""
        return self._model.vocabulary.digest()

    @cached_property
    def canary(self) -> str:
        """SHA-256 (hex) of the ids of the canary strings: tells a change in how text is split."""
        return canary_digest(self.encode_batch)

    @cached_property
    def _is_token(self) -> npt.NDArray[np.bool_]:
        """By id: whether there is such a token."""
        known = np.zeros(self.max_id + 1, dtype=np.bool_)
        known[list(self._model.vocabulary.tokens)] = True
        return known

    def __repr__(self) -> str:
        return (
            f"<Tokenizer {self.vocab_size:,} tokens, eos {self.eos_id}, "
            f"{self.token_dtype.name}, {self.backend}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _reload, (self.files, self.eos_id, self._settings)


def _reload(files: Mapping[str, bytes], eos_id: int, settings: Mapping[str, Any]) -> Tokenizer:
    return load_files(files, eos=eos_id, **settings)


def _as_column(texts: pa.Array | pa.ChunkedArray | Sequence[str]) -> pa.LargeStringArray:
    if not isinstance(texts, pa.Array | pa.ChunkedArray):
        texts = _from_python(texts)
    if texts.null_count:
        raise TextError(
            f"{texts.null_count} of {len(texts)} texts are null and can't be encoded; "
            "drop or fill them before"
        )
    try:
        column = texts.cast(pa.large_string())
    except pa.ArrowException as error:
        raise TextError(
            f"a column of {texts.type} can't be encoded as text ({error}); pass strings"
        ) from error
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _from_python(texts: Sequence[str]) -> pa.LargeStringArray:
    if isinstance(texts, str):
        raise TextError("one str was given where a sequence of texts belongs; pass [text]")
    try:
        return pa.array(texts, type=pa.large_string())
    except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
        raise TextError(
            f"a text can't be encoded: {error}. Pass str without lone surrogates"
        ) from error
