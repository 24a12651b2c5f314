"""A loaded tokenizer: texts to ids and back, and the facts that a dataset keeps of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
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
from datapipe_tokenizers.columns import Texts, as_column
from datapipe_tokenizers.eos import check_eos, choose_eos
from datapipe_tokenizers.errors import (
    BackendError,
    EndOfTextError,
    LimitError,
    SpecialTextError,
    TokenizerFormatError,
)
from datapipe_tokenizers.facts import Facts, LazyReference, environment
from datapipe_tokenizers.fast import FastEncoder
from datapipe_tokenizers.files import read_files
from datapipe_tokenizers.formats import open_model
from datapipe_tokenizers.huggingface import use_own_threads
from datapipe_tokenizers.model import Model, Reference
from datapipe_tokenizers.special_text import SPECIAL_TEXT, SpecialText
from datapipe_tokenizers.vocabulary import token_dtype

__all__ = ["Tokenizer", "load", "load_files"]


def load(
    path: str | Path,
    *,
    eos: str | int | None = None,
    threads: int = 1,
    backend: str = "auto",
    special_text: str = "text",
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
        special_text: What the literal text of a special token in a document is, one of
            SPECIAL_TEXT: "text", ordinary characters; "special", that token, except the one that
            closes documents, which stays text; "error", a SpecialTextError.

    Raises:
        TokenizerError: the tokenizer can't be used; the message says why and what to do.
    """
    files = read_files(path)
    try:
        return load_files(
            files, eos=eos, threads=threads, backend=backend, special_text=special_text
        )
    except (TokenizerFormatError, EndOfTextError) as error:
        raise type(error)(f"{path}: {error}") from error


def load_files(
    files: Mapping[str, bytes],
    *,
    eos: str | int | None = None,
    threads: int = 1,
    backend: str = "auto",
    special_text: str = "text",
    facts: Facts | None = None,
) -> Tokenizer:
    """Returns the tokenizer of `files`, as `Tokenizer.files` gives them; see `load`.

    Args:
        files: As `Tokenizer.files`.
        eos: As for `load`.
        threads: As for `load`.
        backend: As for `load`.
        special_text: As for `load`.
        facts: `Tokenizer.facts` of the same files, loaded in the same way. On the machine and with
            the libraries where the backends were compared, they aren't compared again.

    Raises:
        TokenizerError: the tokenizer can't be used; the message says why and what to do.
    """
    if threads < 1:
        raise ValueError(f"threads is {threads}; at least one thread has to encode")
    if backend not in BACKENDS:
        raise BackendError(
            f"there is no backend {backend!r}; choose {', '.join(BACKENDS[:-1])} or {BACKENDS[-1]}"
        )
    if special_text not in SPECIAL_TEXT:
        raise ValueError(f"special_text is {special_text!r}; use one of {', '.join(SPECIAL_TEXT)}")
    use_own_threads()
    settings = {"threads": threads, "backend": backend, "special_text": special_text}
    model = open_model(files)
    if facts is not None and facts.fast and facts.environment == environment():
        return _load_known(model, facts, files=files, settings=settings)
    specials = model.vocabulary.specials
    eos_id = choose_eos(eos, vocabulary=model.ids, specials=specials, files=files, own=model.eos)
    eos_name = next(name for name, number in model.ids.items() if number == eos_id)
    reserved = frozenset({eos_name} if special_text == "special" else {eos_name, *specials})
    reference = model.reference(reserved=reserved, threads=threads)
    check_eos(eos_name, model, reference)
    choice = choose_backend(model, reference, reserved=reserved, backend=backend, threads=threads)
    found = Facts(
        environment=environment(),
        fast=choice.encoder is not reference,
        eos_name=eos_name,
        eos_id=eos_id,
        specials=specials,
        reserved={name: model.ids[name] for name in reserved},
        max_id=model.vocabulary.max_id,
    )
    return Tokenizer(
        model, choice=choice, reference=reference, facts=found, files=files, settings=settings
    )


def _load_known(
    model: Model, facts: Facts, *, files: Mapping[str, bytes], settings: Mapping[str, Any]
) -> Tokenizer:
    """Loads the fast backend alone, which agreed with the reference in this environment."""
    reserved, threads = frozenset(facts.reserved), settings["threads"]
    reference = LazyReference(
        model.reference_name, lambda: model.reference(reserved=reserved, threads=threads)
    )
    fast = FastEncoder(
        model.fast(reserved=reserved),
        reserved=facts.reserved.values(),
        reference=reference,
        threads=threads,
    )
    choice = Choice(encoder=fast, reason=None)
    return Tokenizer(
        model, choice=choice, reference=reference, facts=facts, files=files, settings=settings
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
        facts: Facts,
        files: Mapping[str, bytes],
        settings: Mapping[str, Any],
    ) -> None:
        self._model = model
        self._encoder = choice.encoder
        self._reference = reference
        self._settings = dict(settings)
        self.backend_reason = choice.reason
        self.special_text: str = settings["special_text"]
        self.eos_id = facts.eos_id
        self.facts = facts
        self.files = dict(files)

    def encode_batch(self, texts: Texts) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Returns the ids of all texts, one after the other, and where each begins.

        No special tokens are added, and the text of a special token ("<|endoftext|>" in a
        document) is encoded as the characters that it is, unless `special_text` says otherwise.
        Added tokens that the tokenizer doesn't declare special (runs of spaces, say) are used as
        it means them. Truncation, padding and dropout that its file may set are off.

        Args:
            texts: Texts: an Arrow column of strings or of UTF-8 as binary, without nulls, or a
                sequence of str or bytes.

        Returns:
            uint32 ids, and int64 offsets [len(texts) + 1] into them: text i has
            ids[offsets[i]:offsets[i + 1]].

        Raises:
            TextError: a null, something else than text, or text that isn't valid Unicode.
            SpecialTextError: the text of a special token, where `special_text` refuses it.
        """
        column = as_column(texts)
        if self.special_text == "error":
            self._refuse_special_text(column)
        return self._encode(column)

    def _encode(
        self, column: pa.LargeStringArray
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        ids, counts = self._encoder.encode(column)
        offsets = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=offsets[1:])
        return ids, offsets

    def beyond_limits(self, texts: Texts) -> npt.NDArray[np.bool_]:
        """Returns of each text whether `encode_batch` refuses it with a LimitError."""
        column = as_column(texts)
        return np.array([self._is_beyond(column.slice(row, 1)) for row in range(len(column))], bool)

    def _is_beyond(self, column: pa.LargeStringArray) -> bool:
        try:
            self._encode(column)
        except LimitError:
            return True
        return False

    def with_special_text(self, texts: Texts) -> npt.NDArray[np.int64]:
        """Returns which texts hold the literal text of a special token, ascending."""
        return self._special_text.rows(as_column(texts))

    def with_eos_text(self, texts: Texts) -> npt.NDArray[np.int64]:
        """Returns which texts hold the text of the token that closes documents, ascending."""
        return self._eos_text.rows(as_column(texts))

    def _refuse_special_text(self, column: pa.LargeStringArray) -> None:
        rows = self._special_text.rows(column)
        if len(rows):
            row = int(rows[0])
            token = self._special_text.first(column[row].as_py())
            raise SpecialTextError(
                f"text {row} has the text of the special token `{token}`, which is refused; encode "
                "it with `special_text: text` as ordinary text, or remove it",
                row=row,
                token=token,
            )

    def compare(self, texts: Texts) -> Difference | None:
        """Returns where the ids of `texts` first differ from the reference's, None if nowhere.

        As slow as the reference. Texts that the reference can't encode are passed over.
        """
        if self._encoder is self._reference:
            return None
        column = as_column(texts)
        try:
            return self._compare(column)
        except LimitError:
            return self._compare_each(column)

    def _compare(self, column: pa.LargeStringArray) -> Difference | None:
        return first_difference(self._encoder.encode(column), self._reference.encode(column))

    def _compare_each(self, column: pa.LargeStringArray) -> Difference | None:
        for row in range(len(column)):
            with suppress(LimitError):
                difference = self._compare(column.slice(row, 1))
                if difference is not None:
                    return replace(difference, row=row)
        return None

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
        return self.facts.max_id

    @property
    def token_dtype(self) -> np.dtype[np.unsignedinteger]:
        """The dtype of stored ids: little-endian uint16 if `max_id` < 65,536, else uint32."""
        return token_dtype(self.max_id)

    @property
    def special_tokens(self) -> dict[str, int]:
        """Text -> id of the tokens that the tokenizer declares special, ascending by id."""
        return dict(self.facts.specials)

    @property
    def backend(self) -> str:
        """Name of the library that encodes."""
        return self._encoder.name

    @property
    def reference(self) -> str:
        """Name of the library that defines the ids."""
        return self._reference.name

    @cached_property
    def _eos_text(self) -> SpecialText:
        return SpecialText([self.facts.eos_name])

    @cached_property
    def _special_text(self) -> SpecialText:
        return SpecialText([*self.facts.specials, self.facts.eos_name])

    @cached_property
    def vocabulary(self) -> str:
        """SHA-256 (hex) of the vocabulary: which bytes each id stands for, and the specials."""
        return self._model.vocabulary.digest()

    @cached_property
    def canary(self) -> str:
        """SHA-256 (hex) of the ids of the canary strings: tells a change in how text is split.

        The text of special tokens is ordinary text in it, whatever `special_text` says.
        """
        if self.special_text == "special":
            settings = {**self._settings, "special_text": "text"}
            return load_files(self.files, eos=self.eos_id, **settings).canary
        return canary_digest(lambda texts: self._encode(as_column(texts)))

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
        return _reload, (self.files, self.facts, self._settings)


def _reload(files: Mapping[str, bytes], facts: Facts, settings: Mapping[str, Any]) -> Tokenizer:
    return load_files(files, eos=facts.eos_id, facts=facts, **settings)
