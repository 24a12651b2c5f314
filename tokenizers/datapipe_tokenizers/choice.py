"""Which backend encodes: the fast one where it agrees with the reference, else the reference.

Agreement is seen, not assumed: both encode the canary strings and every added token of the
tokenizer in several surroundings. One different id rules the fast backend out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa

from datapipe_tokenizers.canary import canary_strings
from datapipe_tokenizers.errors import BackendError, MissingPackageError, TokenizerFormatError
from datapipe_tokenizers.fast import FastEncoder
from datapipe_tokenizers.groups import Counts, Encoder, Ids
from datapipe_tokenizers.model import Model, Reference

__all__ = ["BACKENDS", "Choice", "Difference", "choose_backend", "first_difference"]

BACKENDS = ("auto", "gigatoken", "reference", "huggingface", "tiktoken", "sentencepiece")
"""What can be asked for; "auto" takes the fastest that agrees with the reference."""

_FRAMES = ("{}", " {} ", "x{}y", "{}{}", "a {}\n")
_MAX_ADDED = 512  # added tokens tried; some vocabularies have thousands of one kind


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """An encoder, and why it isn't the fast one."""

    encoder: Encoder
    reason: str | None
    """None: nothing faster was passed over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """The first token in which two encodings differ."""

    row: int
    """Which text."""
    token: int
    """Which token of it."""
    found: int | None
    """The id there; None: there are no more."""
    expected: int | None


def choose_backend(
    model: Model,
    reference: Reference,
    *,
    reserved: frozenset[str],
    backend: str,
    threads: int,
) -> Choice:
    """Returns what encodes the texts of `model`.

    Args:
        model: The tokenizer.
        reference: Its encoder in the library that defines it.
        reserved: Texts of the tokens that no text may produce.
        backend: One of BACKENDS.
        threads: Threads that encode one batch.

    Raises:
        BackendError: the backend asked for by name can't be used.
    """
    if backend in ("reference", model.reference_name):
        return Choice(encoder=reference, reason=None)
    _refuse_other_reference(backend, model)
    try:
        fast = FastEncoder(
            model.fast(reserved=reserved),
            reserved=[model.ids[name] for name in reserved],
            reference=reference,
            threads=threads,
        )
        reason = _disagreement(fast, reference, model)
    except (MissingPackageError, TokenizerFormatError) as error:
        reason = str(error)
    if reason is None:
        return Choice(encoder=fast, reason=None)
    if backend == "gigatoken":
        raise BackendError(
            f"the backend gigatoken can't encode with this tokenizer: {reason}. Leave the choice "
            "to datapipe with `tokenize: {backend: auto}`"
        )
    return Choice(encoder=reference, reason=reason)


def _refuse_other_reference(backend: str, model: Model) -> None:
    if backend not in ("auto", "gigatoken"):
        raise BackendError(
            f"the backend {backend} doesn't read this tokenizer, {model.reference_name} does; "
            "leave the choice to datapipe with `tokenize: {backend: auto}`"
        )


def first_difference(found: tuple[Ids, Counts], expected: tuple[Ids, Counts]) -> Difference | None:
    """Returns where two encodings of the same texts first differ, None if nowhere."""
    if np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1]):
        return None
    pairs = zip(_documents(found), _documents(expected), strict=True)
    row, (ours, theirs) = next(
        (row, pair) for row, pair in enumerate(pairs) if not np.array_equal(*pair)
    )
    shared = min(len(ours), len(theirs))
    unequal = np.flatnonzero(ours[:shared] != theirs[:shared])
    token = int(unequal[0]) if len(unequal) else shared
    return Difference(row=row, token=token, found=_at(ours, token), expected=_at(theirs, token))


def _disagreement(fast: Encoder, reference: Encoder, model: Model) -> str | None:
    strings = [*canary_strings(), *_around(islice(model.probes, _MAX_ADDED))]
    column = pa.array(strings, pa.large_string())
    difference = first_difference(fast.encode(column), reference.encode(column))
    if difference is None:
        return None
    return (
        f"{fast.name} encodes {strings[difference.row]!r:.80} otherwise than {reference.name}: "
        f"token {difference.token} is {difference.found}, not {difference.expected}"
    )


def _around(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from (frame.replace("{}", name) for frame in _FRAMES)


def _documents(encoded: tuple[Ids, Counts]) -> list[Ids]:
    ids, counts = encoded
    return np.split(ids, np.cumsum(counts)[:-1]) if len(counts) else []


def _at(ids: Ids, token: int) -> int | None:
    return int(ids[token]) if token < len(ids) else None
