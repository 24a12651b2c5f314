"""Both outputs read back, document by document, and where they differ."""

from __future__ import annotations

import hashlib
import io
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import zstandard

from datapipe.dataset import open_dataset

__all__ = ["compare", "read_datapipe", "read_datatrove", "read_texts", "rival_digest"]

Tokens = Mapping[str, bytes]
"""`file:id` of a document -> its token ids as uint16, end-of-text included."""


def read_datapipe(folder: Path) -> dict[str, bytes]:
    """Returns the documents of the latest version."""
    dataset = open_dataset(str(folder))
    found: dict[str, bytes] = {}
    for source in dataset.sources:
        for number in range(source.num_shards):
            with dataset.open_shard(source.name, number) as view:
                tokens = np.empty(view.size // 2, dtype="<u2")
                view.read_into(tokens.data.cast("B"), 0)
            docmap = dataset.docmap(source.name, number)
            files = docmap["source_file"].to_pylist()
            names = docmap["record_id"].to_pylist()
            starts = docmap["token_start"].to_pylist()
            counts = docmap["num_tokens"].to_pylist()
            for file, name, start, count in zip(files, names, starts, counts, strict=True):
                _add(found, f"{file}:{name}", tokens[start : start + count])
    return found


def read_datatrove(folder: Path, *, seed: int) -> dict[str, bytes]:
    """Returns the documents of its shuffled files; ids as noted before the tokenizer."""
    found: dict[str, bytes] = {}
    for noted in sorted((folder / "ids").glob("*.json")):
        names = json.loads(noted.read_text())
        path = folder / "tokens" / f"{noted.stem}_00000_doc_shuffled.ds"
        if not names:
            continue
        tokens = np.fromfile(path, dtype="<u2")
        ends = np.fromfile(f"{path}.index", dtype="<u8").astype(np.int64)
        assert len(ends) == len(names), f"{path} holds {len(ends)} documents, {len(names)} went in"
        order = np.random.default_rng(seed).permutation(len(names))
        for place, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            _add(found, names[order[place]], tokens[start:end])
    return found


def _add(found: dict[str, bytes], name: str, tokens: npt.NDArray[np.uint16]) -> None:
    assert name not in found, f"document {name} is there twice"
    found[name] = tokens.tobytes()


def read_texts(folder: Path) -> dict[str, str]:
    """Returns `file:id` -> text of all input lines that are JSON objects with a text."""
    return dict(_texts(folder))


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.iterdir()):
        for line in _lines(path):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and isinstance(record.get("text"), str):
                yield f"{path.name}:{record['id']}", record["text"]


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        if path.suffix == ".zst":
            yield from io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file))
        else:
            yield from file


def rival_digest(folder: Path) -> str:
    """Returns a digest of datatrove's token files, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted((folder / "tokens").glob("*.ds")):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def compare(ours: Tokens, theirs: Tokens, texts: Mapping[str, str]) -> dict[str, object]:
    """Returns how many documents have the same ids, and the others by kind of difference."""
    kinds: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    same = 0
    kept = {"datapipe": Counter(ours.values()), "datatrove": Counter(theirs.values())}
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) == theirs.get(name):
            same += 1
            continue
        kind = _kind(name, ours, theirs, texts, kept)
        kinds[kind] += 1
        examples.setdefault(kind, []).append(name)
    return {
        "documents_datapipe": len(ours),
        "documents_datatrove": len(theirs),
        "tokens_datapipe": sum(map(len, ours.values())) // 2,
        "tokens_datatrove": sum(map(len, theirs.values())) // 2,
        "same": same,
        "different": dict(sorted(kinds.items())),
        "examples": {kind: names[:5] for kind, names in sorted(examples.items())},
    }


def _kind(
    name: str,
    ours: Tokens,
    theirs: Tokens,
    texts: Mapping[str, str],
    kept: Mapping[str, Counter[bytes]],
) -> str:
    text = texts.get(name)
    if name in ours and name in theirs:
        return next((kind for kind, holds in _REASONS.items() if holds(text or "")), UNEXPLAINED)
    where = "datapipe" if name in ours else "datatrove"
    other = "datatrove" if name in ours else "datapipe"
    tokens = ours[name] if name in ours else theirs[name]
    if kept[where][tokens] == kept[other][tokens]:
        return "of equal documents another one is kept"
    if text is None or not text.strip():
        return f"no text or white space alone: only {where} keeps it"
    return f"only {where} keeps it"


UNEXPLAINED = "other ids, unexplained"

_REASONS: dict[str, Callable[[str], bool]] = {
    "text of a special token": lambda text: "<|endoftext|>" in text,
    "not normalised": lambda text: (
        "\r" in text or "\ufeff" in text or unicodedata.normalize("NFC", text) != text
    ),
}
