"""The reference backend: Hugging Face's `tokenizers`, on the bytes of a tokenizer.json."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
import pyarrow as pa

from datapipe_tokenizers.closed import close_tokens, mark_special
from datapipe_tokenizers.errors import MissingPackageError, TokenizerFormatError
from datapipe_tokenizers.groups import (
    Counts,
    Ids,
    encode_in_groups,
    replace_documents,
    rows_with,
)
from datapipe_tokenizers.model import FastSource, check_ids
from datapipe_tokenizers.panics import leave_interruptions
from datapipe_tokenizers.vocabulary import Vocabulary, piece_bytes
from datapipe_tokenizers.windows import Windows, encode_long

if TYPE_CHECKING:
    from tokenizers import Tokenizer as HFTokenizer

__all__ = [
    "HuggingFaceEncoder",
    "HuggingFaceFile",
    "import_tokenizers",
    "parse_config",
    "use_own_threads",
    "without_tokens",
]

BATCH_BYTES = 1 << 20
"""Text given to the encoder at once; costs it 50-150 times as much memory."""

_FEW_WORDS = 4


def import_tokenizers() -> Any:
    """Returns Hugging Face's package.

    Raises:
        MissingPackageError: it isn't installed.
    """
    try:
        import tokenizers
    except ImportError as error:
        raise MissingPackageError(
            f"the package `tokenizers` can't be imported ({error}); a tokenizer.json can't be "
            "read without it. Run `pip install 'datapipe-train[build]'`"
        ) from error
    return tokenizers


def use_own_threads() -> None:
    """Keeps Hugging Face from starting a thread for every core in each process.

    It reads the environment at every call, worker processes inherit it, and who has set it keeps
    their setting.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


_BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")


@dataclass(frozen=True)
class HuggingFaceFile:
    """What a tokenizer.json says of its vocabulary, read when it is asked for.

    Raises:
        TokenizerFormatError: on the first question, if it isn't JSON or no tokenizer.
    """

    data: bytes
    """The file."""

    reference_name: ClassVar[str] = "huggingface"
    eos: ClassVar[None] = None  # the files beside it name one

    @cached_property
    def tokenizer(self) -> HFTokenizer:
        """As loaded; encoders share it, with everything off that would change or cut a document."""
        return _as_plain_text(_load(self.data))

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """Every token's text as the file has it -> id."""
        return self.tokenizer.get_vocab(with_added_tokens=True)

    @cached_property
    def added(self) -> Mapping[str, int]:
        """Those of `ids` that are looked for in a text before the model runs, special or not."""
        added = self.tokenizer.get_added_tokens_decoder()
        return {token.content: number for number, token in added.items()}

    @property
    def probes(self) -> list[str]:
        """Its added tokens."""
        return list(self.added)

    @cached_property
    def _config(self) -> dict[str, Any]:
        return _parse_settings(self.data)

    @property
    def is_bpe(self) -> bool:
        """Whether its model merges pieces by rank."""
        return "merges" in self._config["model"]

    @property
    def unknown_id(self) -> int | None:
        """The id that stands for what the vocabulary lacks."""
        return _unknown_id(self._config["model"], self.ids)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What each id stands for."""
        byte_level = _is_byte_level(self._config)
        added = self.tokenizer.get_added_tokens_decoder()
        tokens = {n: piece_bytes(piece, byte_level=byte_level) for piece, n in self.ids.items()}
        tokens |= {n: token.content.encode() for n, token in added.items()}
        check_ids(tokens)
        specials = {token.content: n for n, token in sorted(added.items()) if token.special}
        return Vocabulary(tokens=tokens, specials=specials)

    def _refuse_reserved_bytes(self, reserved: frozenset[str]) -> None:
        """Taken out of the model's reach, such a token would take text with it."""
        byte_level = _is_byte_level(self._config)
        fallback = bool(self._config["model"].get("byte_fallback"))
        bytes_ = {
            name
            for name in reserved
            if (byte_level and len(name) == 1) or (fallback and _BYTE_PIECE.fullmatch(name))
        }
        lost = sorted(bytes_ & _model_pieces(self.data)) if bytes_ else []
        if lost:
            raise TokenizerFormatError(
                f"the special token `{lost[0]}` is also the model's only piece for a byte, which "
                "texts would lose; take it out of `added_tokens`, or make it not special"
            )

    def reference(self, *, reserved: frozenset[str], threads: int) -> HuggingFaceEncoder:
        """Returns the encoder of Hugging Face's library.

        Raises:
            TokenizerFormatError: a reserved token is the only way to write a byte.
        """
        self._refuse_reserved_bytes(reserved)
        return HuggingFaceEncoder(self, reserved=reserved, threads=threads)

    def fast(self, *, reserved: frozenset[str]) -> FastSource:
        """Returns gigatoken's tokenizer of the file without its reserved tokens."""
        data = without_tokens(self.data, reserved)
        return FastSource(load=lambda library: library.Tokenizer.from_json(data))


class HuggingFaceEncoder:
    """Encodes texts so that no text produces a reserved token. Threads may share one.

    Args:
        file: The tokenizer.
        reserved: Texts of the tokens that are the caller's alone.
        threads: Threads that encode one batch.
        batch_bytes: Text given to Hugging Face's encoder at once, and the length from which on a
            document is encoded in windows.
    """

    name = "huggingface"

    def __init__(
        self,
        file: HuggingFaceFile,
        *,
        reserved: frozenset[str],
        threads: int = 1,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._file = file
        self._reserved = reserved
        self._threads = threads
        self._batch_bytes = batch_bytes
        self._windows = Windows(chars=batch_bytes // 2, most_chars=batch_bytes * 4)
        special = reserved & file.added.keys()
        same = special == file.vocabulary.specials.keys()
        self._tokenizer = file.tokenizer if same else _with_special(file.data, special)
        self._is_reserved = np.zeros(file.vocabulary.max_id + 1, dtype=np.bool_)
        self._is_reserved[[file.ids[name] for name in reserved]] = True
        if file.unknown_id is not None:
            self._is_reserved[file.unknown_id] = False

    def encode(self, texts: pa.LargeStringArray) -> tuple[Ids, Counts]:
        """Returns the ids of all texts, one after the other, and how many each has."""
        return encode_in_groups(
            texts, self._encode_group, limit=self._batch_bytes, threads=self._threads
        )

    def produces(self, number: int) -> bool:
        """Whether the model itself finds the token `number` in its own text."""
        text = self.decode([number])
        return bool(text) and number in self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of `ids`, special tokens included."""
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))

    def _encode_group(self, texts: pa.LargeStringArray) -> tuple[Ids, Counts]:
        documents = texts.to_pylist()
        ids, counts = self._run(self._tokenizer, documents)
        if self._is_reserved[ids].any():
            return self._without_reserved(documents, ids, counts)
        return ids, counts

    def _without_reserved(
        self, documents: list[str], ids: Ids, counts: Counts
    ) -> tuple[Ids, Counts]:
        """Encodes those documents again in which the model found a reserved token."""
        rows = rows_with(np.flatnonzero(self._is_reserved[ids]), counts)
        closed = [self._run(self._closed, [documents[row]])[0] for row in rows]
        repaired, counts = replace_documents(
            ids, counts, rows, [self._closed_ids[part] for part in closed]
        )
        if self._is_reserved[repaired].any():
            raise TokenizerFormatError(
                "a text produces a special token of this tokenizer in a way that can't be closed; "
                "documents would be cut there. Use another tokenizer, or remove that text"
            )
        return repaired, counts

    def _run(self, tokenizer: HFTokenizer, documents: list[str]) -> tuple[Ids, Counts]:
        if len(documents) == 1 and len(documents[0]) > self._windows.chars:
            return self._run_long(tokenizer, documents[0])
        lists = _encode_all(tokenizer, documents)
        counts = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        ids = np.fromiter(chain.from_iterable(lists), dtype=np.uint32, count=int(counts.sum()))
        return ids, counts

    def _run_long(self, tokenizer: HFTokenizer, document: str) -> tuple[Ids, Counts]:
        ids = encode_long(
            document,
            lambda text: np.array(_encode_all(tokenizer, [text])[0], dtype=np.uint32),
            windows=self._windows,
            name=self.name,
            has_words=None if self._file.is_bpe else lambda text: _has_words(tokenizer, text),
        )
        return ids, np.array([len(ids)], dtype=np.int64)

    @cached_property
    def _closed(self) -> HFTokenizer:
        config = mark_special(parse_config(self._file.data), self._reserved)
        return _as_plain_text(_load(_dump(close_tokens(config, self._reserved))))

    @cached_property
    def _closed_ids(self) -> Ids:
        """Id of the closed tokenizer -> id; only added tokens differ."""
        closed = self._closed.get_vocab(with_added_tokens=True)
        numbers = np.arange(max(closed.values()) + 1, dtype=np.uint32)
        for name, number in self._file.added.items():
            numbers[closed[name]] = number
        return numbers


def _model_pieces(data: bytes) -> frozenset[str]:
    """Returns the pieces of a model whose vocabulary is a mapping; of others none."""
    vocab = parse_config(data)["model"].get("vocab")
    return frozenset(vocab) if isinstance(vocab, dict) else frozenset()


def without_tokens(data: bytes, names: frozenset[str]) -> bytes:
    """Returns a tokenizer.json without the added tokens called `names`, and which adds nothing."""
    config = _parse_head(data)
    added = config.get("added_tokens") or []
    config["added_tokens"] = [token for token in added if token["content"] not in names]
    config["truncation"] = config["padding"] = config["post_processor"] = None
    return _dump(config) if isinstance(config["model"], dict) else msgspec.json.encode(config)


def _parse_head(data: bytes) -> dict[str, Any]:
    """Returns a tokenizer.json as JSON values, its model as it stands where msgspec can read it.

    A model has some 10 MB of merges and pieces that need not become Python objects and text again.
    """
    try:
        raw = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        head = {name: msgspec.json.decode(value) for name, value in raw.items() if name != "model"}
        return head | {"model": raw["model"]}
    except (msgspec.DecodeError, KeyError):  # half of a surrogate pair, which json takes
        return parse_config(data)


def _parse_settings(data: bytes) -> dict[str, Any]:
    """Returns a tokenizer.json as JSON values, without its model's pieces and merges."""
    config = _parse_head(data)
    if isinstance(config["model"], msgspec.Raw):
        try:
            model = msgspec.json.decode(config["model"], type=dict[str, msgspec.Raw])
            small = model.keys() - {"vocab", "merges"}
            settings = {name: msgspec.json.decode(model[name]) for name in small}
            # That there are merges tells BPE from others, whatever `type` says.
            return config | {"model": settings | {name: [] for name in model.keys() & {"merges"}}}
        except msgspec.DecodeError:
            return parse_config(data)
    return config


def parse_config(data: bytes) -> dict[str, Any]:
    """Returns a tokenizer.json as JSON values.

    Raises:
        TokenizerFormatError: it isn't one.
    """
    try:
        config = json.loads(data)
    except ValueError as error:
        raise TokenizerFormatError(
            f"the tokenizer file isn't JSON ({error}); it can't be read. Name a Hugging Face "
            "tokenizer.json or a folder that has one"
        ) from error
    if not isinstance(config, dict) or not isinstance(config.get("model"), dict):
        keys = ", ".join(sorted(config)[:6]) if isinstance(config, dict) else type(config).__name__
        raise TokenizerFormatError(
            f"the tokenizer file is JSON but has no `model` (found: {keys}), so it isn't a "
            "tokenizer. Name a Hugging Face tokenizer.json or a folder that has one"
        )
    return config


def _load(data: bytes) -> HFTokenizer:
    try:
        tokenizer: HFTokenizer = import_tokenizers().Tokenizer.from_buffer(data)
    except MissingPackageError:
        raise
    except BaseException as error:
        leave_interruptions(error)
        version = import_tokenizers().__version__
        raise TokenizerFormatError(
            f"Hugging Face `tokenizers` {version} can't read the tokenizer: {error}. "
            "Check that the file is complete, or upgrade `tokenizers`"
        ) from error
    return tokenizer


def _with_special(data: bytes, names: frozenset[str]) -> HFTokenizer:
    """Loads the tokenizer anew with those added tokens special that are called `names`."""
    return _as_plain_text(_load(_dump(mark_special(parse_config(data), names))))


def _as_plain_text(tokenizer: HFTokenizer) -> HFTokenizer:
    """Switches off what a file may set that would change, cut or fill up a document."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    if getattr(tokenizer.model, "dropout", None):
        tokenizer.model.dropout = None
    return tokenizer


def _dump(config: dict[str, Any]) -> bytes:
    return json.dumps(config, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _is_byte_level(config: dict[str, Any]) -> bool:
    """Whether pieces are written in the byte alphabet, told by the decoder or pre-tokenizer."""
    parts = [config.get("decoder") or {}, config.get("pre_tokenizer") or {}]
    for key in ("decoders", "pretokenizers"):
        parts += [inner for part in parts for inner in part.get(key) or []]
    return any(part.get("type") == "ByteLevel" for part in parts)


def _unknown_id(model: dict[str, Any], ids: Mapping[str, int]) -> int | None:
    number = model.get("unk_id")
    return number if isinstance(number, int) else ids.get(model.get("unk_token") or "")


def _encode_all(tokenizer: HFTokenizer, texts: list[str]) -> list[list[int]]:
    try:
        encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    except BaseException as error:
        leave_interruptions(error)
        raise TokenizerFormatError(
            f"the tokenizer can't encode a text: {error}. Its file is incomplete; use another one"
        ) from error
    return [encoding.ids for encoding in encodings]


def _has_words(tokenizer: HFTokenizer, text: str) -> bool:
    """Whether the pre-tokenizer finds some words in a text."""
    words = tokenizer.encode(text, add_special_tokens=False).word_ids
    return len(set(words)) > _FEW_WORDS
