"""Training of byte-level BPE tokenizers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from datapipe_tokenizers.errors import TrainingError
from datapipe_tokenizers.huggingface import import_tokenizers

__all__ = ["MAX_VOCAB_SIZE", "train_bpe"]

MAX_VOCAB_SIZE = 1 << 22  # the library reserves memory for all of them at once
_NUM_BYTES = 256


def train_bpe(
    texts: Iterable[str],
    *,
    vocab_size: int,
    special_tokens: Sequence[str] = ("<|endoftext|>",),
) -> bytes:
    """Returns the tokenizer.json of a byte-level BPE tokenizer trained on `texts`.

    Special tokens have the first ids, then come all 256 bytes, so that every text can be encoded
    and decoded back, then the merges. Equal texts in equal order give equal bytes, with the same
    version of Hugging Face's `tokenizers`. Runs on one thread.

    Args:
        texts: Read once, one after the other; memory grows with the number of different words.
        vocab_size: Tokens in all. Fewer come out where the texts don't have as many repeated
            pairs.
        special_tokens: Texts of the special tokens; the first is what `load` takes to close a
            document if its name is well known.

    Raises:
        TrainingError: `vocab_size` has no room for the bytes and special tokens, or a special
            token is given twice or empty.
        MissingPackageError: `tokenizers` isn't installed.
    """
    _check(vocab_size, special_tokens)
    hf = import_tokenizers()
    tokenizer = hf.Tokenizer(hf.models.BPE())
    tokenizer.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = hf.decoders.ByteLevel()
    trainer = hf.trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(special_tokens),
        initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    with _one_thread():
        tokenizer.train_from_iterator(iter(texts), trainer)
    return str(tokenizer.to_str()).encode()


def _check(vocab_size: int, special_tokens: Sequence[str]) -> None:
    if "" in special_tokens or len(set(special_tokens)) != len(special_tokens):
        raise TrainingError(
            f"special tokens {list(special_tokens)} hold an empty or repeated one; give each once"
        )
    smallest = _NUM_BYTES + len(special_tokens)
    if vocab_size < smallest:
        raise TrainingError(
            f"vocab_size {vocab_size} has no room for {_NUM_BYTES} bytes and "
            f"{len(special_tokens)} special tokens; use {smallest} or more"
        )
    if vocab_size > MAX_VOCAB_SIZE:
        raise TrainingError(f"vocab_size is {vocab_size}; use {MAX_VOCAB_SIZE:,} or less")


@contextmanager
def _one_thread() -> Iterator[None]:
    name = "TOKENIZERS_PARALLELISM"
    before = os.environ.get(name)
    os.environ[name] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
