"""Training a tokenizer on input files: a fair share of every file, in the files' order."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from datapipe.dataset.local import local_path
from datapipe.engine.sampling import list_samples, sample_batches
from datapipe.engine.sources import SourceInputs
from datapipe.errors import FailedError, InputError, UsageError
from datapipe.observe import NO_PROGRESS, Progress
from datapipe_tokenizers import load_files, train_bpe
from tiering.errors import remedy_of

__all__ = ["train_tokenizer"]


def train_tokenizer(
    paths: Sequence[str],
    *,
    out: str | Path,
    vocab_size: int,
    text_field: str = "text",
    max_bytes: int = 100_000_000,
    overwrite: bool = False,
    progress: Progress = NO_PROGRESS,
) -> dict[str, Any]:
    """Trains a byte-level BPE tokenizer and writes it as a tokenizer.json.

    Args:
        paths: files, folders and patterns to learn from.
        out: the file to write.
        vocab_size: number of tokens, specials included.
        text_field: field that holds the text.
        max_bytes: UTF-8 bytes to learn from, spread over the files by their sizes.
        overwrite: whether `out` may exist.
        progress: listener.

    Raises:
        UsageError: `out` exists, or there is no text in the inputs.
    """
    target = local_path(out, "out")
    if os.path.lexists(target) and not overwrite:
        raise UsageError(f"{target} exists and was left as it is; name another, or give --force")
    source = list_samples(paths, text_field=text_field)
    progress.begin("read text", 0, "bytes")
    texts = list(_texts(source, max_bytes, progress))
    progress.end()
    if not any(texts):
        raise InputError(f"there is no text in {', '.join(paths)}: nothing can be learned from it")
    progress.begin("train tokenizer", 0, "bytes")
    data = train_bpe(iter(texts), vocab_size=vocab_size)
    progress.end()
    _write(target, data)
    tokenizer = load_files({"tokenizer.json": data})
    return {
        "tokenizer": str(target),
        "vocab_size": tokenizer.vocab_size,
        "eos": tokenizer.decode([tokenizer.eos_id]),
        "text_bytes": sum(len(text.encode()) for text in texts),
        "vocabulary": tokenizer.vocabulary,
        "canary": tokenizer.canary,
    }


def _texts(source: SourceInputs, max_bytes: int, progress: Progress) -> Iterator[str]:
    for _, batch in sample_batches(source, max_bytes=max_bytes):
        texts: list[str] = batch.column("text").to_pylist()
        yield from texts
        progress.advance(sum(len(text.encode()) for text in texts))


def _write(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise FailedError(
            f"{target} can't be written: {error.strerror}; no tokenizer was kept; "
            f"{remedy_of(error, making=True)}"
        ) from error
