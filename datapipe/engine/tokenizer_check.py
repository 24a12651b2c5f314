"""What a tokenizer is, and whether and how fast its backends encode given documents."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.engine.sampling import list_samples, sample_batches
from datapipe.errors import InputError
from datapipe.observe import NO_PROGRESS, Progress
from datapipe_tokenizers import Tokenizer, first_difference, load

__all__ = ["check_tokenizer", "show_tokenizer"]

_FAST = "gigatoken"
_MAX_DIFFERENCES = 10


def show_tokenizer(path: str, *, eos: str | None = None) -> dict[str, Any]:
    """Returns the facts of the tokenizer at `path` as JSON values.

    Raises:
        TokenizerError: it can't be used.
    """
    tokenizer = load(path, eos=eos)
    return {
        "tokenizer": path,
        "files": {name: len(data) for name, data in sorted(tokenizer.files.items())},
        "vocab_size": tokenizer.vocab_size,
        "max_id": tokenizer.max_id,
        "token_dtype": tokenizer.token_dtype.name,
        "eos": {"id": tokenizer.eos_id, "token": tokenizer.decode([tokenizer.eos_id])},
        "special_tokens": tokenizer.special_tokens,
        "backend": tokenizer.backend,
        "reference": tokenizer.reference,
        "backend_reason": tokenizer.backend_reason,
        "vocabulary": tokenizer.vocabulary,
        "canary": tokenizer.canary,
    }


@dataclass(kw_only=True, slots=True)
class _Backend:
    """A backend and what it did."""

    name: str
    tokenizer: Tokenizer | None
    reason: str | None = None
    seconds: float = 0.0

    def encode(self, texts: pa.Array) -> Any:
        started = time.perf_counter()
        assert self.tokenizer is not None
        encoded = self.tokenizer.encode_batch(texts)
        self.seconds += time.perf_counter() - started
        return encoded


@dataclass(kw_only=True, slots=True)
class _Share:
    """Documents of one kind and what became of them."""

    documents: Counter[str] = field(default_factory=Counter)
    text_bytes: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)

    def add(self, names: Sequence[str | None], sizes: Sequence[int], counts: Sequence[int]) -> None:
        for name, size, count in zip(names, sizes, counts, strict=True):
            if name is not None:
                self.documents[name] += 1
                self.text_bytes[name] += size
                self.tokens[name] += count

    def to_json(self) -> dict[str, Any]:
        return {
            name: {
                "documents": count,
                "bytes": self.text_bytes[name],
                "tokens": self.tokens[name],
                "tokens_per_byte": round(self.tokens[name] / max(self.text_bytes[name], 1), 4),
            }
            for name, count in self.documents.items()
        }


def check_tokenizer(
    path: str,
    inputs: Sequence[str] = (),
    *,
    eos: str | None = None,
    text_field: str = "text",
    language_field: str = "language",
    max_bytes: int = 20_000_000,
    progress: Progress = NO_PROGRESS,
) -> dict[str, Any]:
    """Encodes documents with every backend that reads the tokenizer, and compares the ids.

    Every backend has been compared on the canary strings when it was loaded.

    Args:
        path: the tokenizer.
        inputs: files, folders and patterns of documents; none: the canary strings alone.
        eos: its end-of-text token, where it names none.
        text_field: field that holds the text.
        language_field: field that holds the language.
        max_bytes: UTF-8 bytes to encode, spread over the files by their sizes.
        progress: listener.

    Returns:
        JSON values: `backends` with their speed in MB/s of text, `differences` (the first ten),
        tokens per byte of each file and language.

    Raises:
        TokenizerError: the tokenizer can't be used.
        InputError: there is no text in the inputs.
    """
    backends = _backends(path, eos)
    files, languages = _Share(), _Share()
    differences: list[str] = []
    progress.begin("encode", 0, "bytes")
    batches: Iterable[tuple[str, pa.RecordBatch]] = ()
    if inputs:
        source = list_samples(inputs, text_field=text_field, language_field=language_field)
        batches = sample_batches(source, max_bytes=max_bytes)
    for file, batch in batches:
        sizes = pc.binary_length(batch.column("text")).to_pylist()
        counts = _encode(backends, file, batch, differences)
        files.add([file] * batch.num_rows, sizes, counts)
        languages.add(batch.column("language").to_pylist(), sizes, counts)
        progress.advance(sum(sizes))
    progress.end()
    text_bytes = sum(files.text_bytes.values())
    if inputs and not text_bytes:
        raise InputError(f"there is no text in {', '.join(inputs)}: nothing can be checked with it")
    return {
        "tokenizer": path,
        "reference": backends[-1].name,
        "backends": [_described(backend, text_bytes) for backend in backends],
        "documents": sum(files.documents.values()),
        "bytes": text_bytes,
        "differences": differences,
        "files": files.to_json(),
        "languages": languages.to_json(),
    }


def _backends(path: str, eos: str | None) -> list[_Backend]:
    reference = load(path, eos=eos, backend="reference")
    chosen = load(path, eos=eos)
    usable = chosen.backend == _FAST
    fast = _Backend(name=_FAST, tokenizer=chosen if usable else None, reason=chosen.backend_reason)
    return [fast, _Backend(name=reference.backend, tokenizer=reference)]


def _encode(
    backends: Sequence[_Backend], file: str, batch: pa.RecordBatch, differences: list[str]
) -> list[int]:
    """Encodes a batch with each backend; returns how many tokens each document has."""
    texts = batch.column("text")
    fast, reference = backends
    ids, offsets = reference.encode(texts)
    if fast.tokenizer is not None:
        ours, ours_offsets = fast.encode(texts)
        difference = first_difference((ours, np.diff(ours_offsets)), (ids, np.diff(offsets)))
        if difference is not None and len(differences) < _MAX_DIFFERENCES:
            place = batch.column("source_offset")[difference.row].as_py()
            differences.append(
                f"{file} at {place}: token {difference.token} is {difference.found} by "
                f"{fast.name}, {difference.expected} by {reference.name}"
            )
    return [int(count) for count in np.diff(offsets)]


def _described(backend: _Backend, text_bytes: int) -> Mapping[str, Any]:
    speed = text_bytes / 1e6 / backend.seconds if backend.seconds else None
    return {
        "name": backend.name,
        "usable": backend.tokenizer is not None,
        "reason": backend.reason,
        "mb_per_second": None if speed is None else round(speed, 2),
    }
