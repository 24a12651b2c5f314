"""What both programs read: the first megabytes of real corpora, and documents that tell them apart.

Documents are copied line by line, byte for byte, and dealt to several zstd files a corpus, so that
two workers have something to share.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import zstandard

__all__ = ["CORPORA", "OLDER", "TRICKY", "Inputs", "prepare", "write_tricky"]

CORPORA = ("en_books", "linux_doc_6.12", "manpages_multilang")
OLDER = "linux_doc_6.1"
"""Holds thousands of documents of linux_doc_6.12 again: what deduplication finds."""

_FILES = 4  # a corpus

TRICKY: dict[str, list[object]] = {
    "special_token_text": [
        "before <|endoftext|> behind",
        "<|endoftext|>",
        "not quite: <|endoftext |> <| endoftext|>",
    ],
    "empty": [""],
    "white_space": [" ", "\n\n\t  ", "\u3000"],
    "not_normalised": ["cafe\u0301", "line\r\nline\rline", "a\x00b\x1bc", "\ufefftext"],
    "scripts": ["\u4e2d\u6587\u3002", "\u0928\u092e\u0938\u094d\u0924\u0947", "\U0001f468\u200d"],
    "long": ["word " * 40_000, "a" * 20_000, "\n" * 5_000],
    "same_text_twice": ["the same", "the same"],
    "text_is_null": [None],
    "text_is_a_number": [5],
}
"""Texts by kind; each kind becomes a file of its own."""

_RAW_TRICKY = {
    "broken_line": [b'{"id": 0, "text": "cut in the mid', b'{"id": 1, "text": "whole"}'],
    "no_text_key": [b'{"id": 0, "body": "elsewhere"}', b'{"id": 1, "text": "here"}'],
    "lone_surrogate": [rb'{"id": 0, "text": "half \ud83d of it"}'],
    "invalid_utf8": [b'{"id": 0, "text": "\xff\xfe"}', b'{"id": 1, "text": "ok"}'],
    "not_an_object": [b'["id", "text"]', b'{"id": 1, "text": "an object"}'],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """A folder of files that both read."""

    folder: Path
    documents: int
    text_bytes: int
    files: int
    stored_bytes: int


def prepare(folder: Path, *, data: Path, names: tuple[str, ...], text_bytes: int) -> Inputs:
    """Returns a folder with the first documents of each corpus, `text_bytes` of text in all."""
    folder.mkdir(parents=True)
    documents = total = 0
    for name in names:
        lines = list(_first(data / f"{name}.jsonl.zst", text_bytes // len(names)))
        documents += len(lines)
        total += sum(size for _, size in lines)
        for number in range(_FILES):
            part = b"".join(line for line, _ in lines[number::_FILES])
            packed = zstandard.ZstdCompressor(level=3).compress(part)
            (folder / f"{name}_{number}.jsonl.zst").write_bytes(packed)
    files = list(folder.iterdir())
    return Inputs(
        folder=folder,
        documents=documents,
        text_bytes=total,
        files=len(files),
        stored_bytes=sum(file.stat().st_size for file in files),
    )


def _first(path: Path, limit: int) -> Iterator[tuple[bytes, int]]:
    """Yields (line, bytes of its text) until the texts have `limit` bytes."""
    with path.open("rb") as file:
        seen = 0
        for line in io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file)):
            if seen >= limit:
                return
            size = len(json.loads(line)["text"].encode())
            seen += size
            yield line, size


def write_tricky(folder: Path) -> None:
    """Writes one file a kind of document that programs may treat differently."""
    folder.mkdir(parents=True)
    for kind, texts in TRICKY.items():
        records = [{"id": number, "text": text} for number, text in enumerate(texts)]
        lines = "".join(json.dumps(row) + "\n" for row in records)
        (folder / f"{kind}.jsonl").write_text(lines)
    for kind, rows in _RAW_TRICKY.items():
        (folder / f"{kind}.jsonl").write_bytes(b"".join(row + b"\n" for row in rows))
