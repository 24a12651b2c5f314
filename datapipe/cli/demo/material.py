"""Real input that every machine has: the running Python installation, in several formats.

Sources, documentation and licence texts of the standard library and of the installed packages; of
each group the first files by path are taken, so a machine gives the same input twice.
"""

from __future__ import annotations

import gzip
import json
import os
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

__all__ = ["Material", "make_material"]

_SUFFIXES = {".py", ".pyi", ".txt", ".md", ".rst", ".toml", ".cfg", ".json", ".html", ".css", ".js"}
_MOST_BYTES = 400_000  # of one file: generated tables say little and are large
_BUDGET_BYTES = {"jsonl": 3_500_000, "gzip": 2_000_000, "zstd": 2_500_000, "parquet": 2_500_000}
_BUDGET_BYTES |= {"text": 1_000_000, "later": 1_500_000}
_DAMAGED_LINE = '{"id": "damaged", "text": "this line was cut in the mid\n'


@dataclass(frozen=True, slots=True)
class Material:
    """The folders that the demo builds from."""

    stdlib: Path
    packages: Path
    texts: Path
    later: Path
    files: int
    text_bytes: int


def make_material(folder: Path) -> Material:
    """Writes the input files below `folder`; returns where they are."""
    stdlib, packages, texts, later = (
        folder / name for name in ("stdlib", "packages", "texts", "later")
    )
    for path in (stdlib, packages, texts, later):
        path.mkdir(parents=True)
    python = Path(sysconfig.get_paths()["stdlib"])
    site = Path(sysconfig.get_paths()["purelib"])
    library = _read(_files(python, skip=("site-packages", "test", "idlelib")))
    installed = _read(_files(site, skip=("torch",)))
    parts = [
        (_jsonl, stdlib / "modules.jsonl", library, "jsonl"),
        (_jsonl_gzip, stdlib / "more.jsonl.gz", library, "gzip"),
        (_jsonl_zstd, packages / "packages.jsonl.zst", installed, "zstd"),
        (_parquet, packages / "packages.parquet", installed, "parquet"),
        (_jsonl, later / "later.jsonl", installed, "later"),
    ]
    files = text_bytes = 0
    for write, path, documents, budget in parts:
        taken = list(_take(documents, _BUDGET_BYTES[budget]))
        write(path, taken)
        files += len(taken)
        text_bytes += sum(len(text.encode()) for _, text in taken)
    licences = list(_take(_read(_licences(site)), _BUDGET_BYTES["text"]))
    if not licences:  # packages may lie elsewhere (`pip install --user`)
        licences = list(_take(library, _BUDGET_BYTES["text"]))
    _texts(texts, licences)
    text_bytes += sum(len(text.encode()) for _, text in licences)
    return Material(stdlib, packages, texts, later, files + len(licences), text_bytes)


def _files(root: Path, *, skip: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    for name, path in _walk(root, skip=skip):
        if path.suffix in _SUFFIXES:
            yield name, path


def _licences(site: Path) -> Iterator[tuple[str, Path]]:
    names = ("LICENSE", "LICENCE", "COPYING", "NOTICE")
    for name, path in _walk(site, skip=("torch",)):
        if path.name.upper().startswith(names):
            yield name, path


def _walk(root: Path, *, skip: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Yields files by path; lazily, since a few of the thousands are enough."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - {*skip, "__pycache__"})
        for name in sorted(files):
            path = Path(folder) / name
            if path.is_file():
                yield path.relative_to(root).as_posix(), path


def _read(files: Iterable[tuple[str, Path]]) -> Iterator[tuple[str, str]]:
    for name, path in files:
        if path.stat().st_size <= _MOST_BYTES:
            try:
                yield name, path.read_text(encoding="utf-8")
            except (UnicodeDecodeError, OSError):
                continue


def _take(documents: Iterator[tuple[str, str]], budget_bytes: int) -> Iterator[tuple[str, str]]:
    left = budget_bytes
    for name, text in documents:
        yield name, text
        left -= len(text)
        if left <= 0:
            return


def _lines(documents: Iterable[tuple[str, str]]) -> bytes:
    return "".join(
        json.dumps({"id": name, "text": text}) + "\n" for name, text in documents
    ).encode()


def _jsonl(path: Path, documents: list[tuple[str, str]]) -> None:
    half = len(documents) // 2
    damaged = _DAMAGED_LINE.encode() if path.name == "modules.jsonl" else b""
    path.write_bytes(_lines(documents[:half]) + damaged + _lines(documents[half:]))


def _jsonl_gzip(path: Path, documents: list[tuple[str, str]]) -> None:
    path.write_bytes(gzip.compress(_lines(documents), compresslevel=1, mtime=0))


def _jsonl_zstd(path: Path, documents: list[tuple[str, str]]) -> None:
    path.write_bytes(zstandard.compress(_lines(documents), 1))


def _parquet(path: Path, documents: list[tuple[str, str]]) -> None:
    names, texts = [name for name, _ in documents], [text for _, text in documents]
    pq.write_table(pa.table({"id": names, "text": texts}), path, row_group_size=200)


def _texts(folder: Path, documents: list[tuple[str, str]]) -> None:
    for number, (name, text) in enumerate(documents):
        (folder / f"{number:04d}-{Path(name).parts[0]}.txt").write_text(text, encoding="utf-8")
