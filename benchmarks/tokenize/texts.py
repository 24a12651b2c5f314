"""What is encoded: English, many languages, code; each a column of documents of a given size."""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import zstandard

__all__ = ["CORPORA", "write_texts"]

CORPORA = {
    "english": ("en_books",),
    "many languages": ("manpages_multilang", "zh_poetry"),
    "code": (),  # the standard library of this Python
}


def write_texts(corpus: str, data: Path, megabytes: float, path: Path) -> int:
    """Writes about so many MB of a corpus as an Arrow file, column `text`; returns the bytes."""
    texts: list[str] = []
    size = 0
    for text in _texts(corpus, data):
        texts.append(text)
        size += len(text.encode())
        if size >= megabytes * 1e6:
            break
    table = pa.table({"text": pa.array(texts, pa.large_string())})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return size


def _texts(corpus: str, data: Path) -> Iterator[str]:
    if not CORPORA[corpus]:
        for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
            if "site-packages" not in path.parts:
                yield path.read_text(encoding="utf-8", errors="replace")
    files = [data / "text" / f"{name}.jsonl.zst" for name in CORPORA[corpus]]
    readers = [_lines(path) for path in files]
    while readers:  # in turn, so that each is there
        for reader in list(readers):
            line = next(reader, None)
            if line is None:
                readers.remove(reader)
            else:
                yield json.loads(line)["text"]


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        rest = b""
        while chunk := stream.read(1 << 20):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
        if rest:
            yield rest
