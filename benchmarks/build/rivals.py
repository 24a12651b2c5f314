"""What runs beside `datapipe build`: datatrove's pipelines, and the bare encoder as the floor.

Runs in the environment that setup_rivals.sh makes and imports nothing of the project.

    rivals.py tokenize|clean|each|encoder --inputs DIR --tokenizer FILE --out DIR [--workers N]
"""

from __future__ import annotations

import argparse
import io
import json
import re
import unicodedata
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

SEED = 7
EOS = "<|endoftext|>"
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def tokenize(options: argparse.Namespace) -> None:
    """Read, tokenize, shuffle, write: datatrove's own steps and defaults, one task a file."""
    _run(options, "tokenize", [_reader(options.inputs), *_ends(options)])


def clean(options: argparse.Namespace) -> None:
    """As `tokenize`, with normalisation, empty documents out, and datatrove's exact dedup."""
    from datatrove.pipeline.dedup.exact_dedup import (  # type: ignore[import-not-found]
        ExactDedupConfig,
        ExactDedupFilter,
        ExactDedupSignature,
        ExactFindDedups,
    )

    config = ExactDedupConfig(content_getter=_text)
    signatures, duplicates = f"{options.out}/signatures", f"{options.out}/duplicates"
    first = [_reader(options.inputs), normalize, drop_empty]
    _run(options, "sign", [*first, ExactDedupSignature(signatures, config)])
    _run(options, "find", [ExactFindDedups(signatures, duplicates, config)], tasks=1)
    _run(options, "tokenize", [*first, ExactDedupFilter(duplicates, config), *_ends(options)])


def each(options: argparse.Namespace) -> None:
    """As `tokenize`, every file by itself: says of each what became of it."""
    outcome = {}
    for file in sorted(Path(options.inputs).iterdir()):
        alone = argparse.Namespace(**vars(options) | {"out": f"{options.out}/{file.stem}"})
        try:
            _run(alone, "tokenize", [_reader(options.inputs, file.name), *_ends(alone)], tasks=1)
            outcome[file.name] = ""
        except Exception as error:
            outcome[file.name] = f"{type(error).__name__}: {error}"
    (Path(options.out) / "outcome.json").write_text(json.dumps(outcome))


def encoder(options: argparse.Namespace) -> None:
    """Hugging Face's encoder on the same texts and nothing else: no output, no document kept."""
    import zstandard
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(options.tokenizer)
    num_tokens = 0
    for path in sorted(Path(options.inputs).iterdir()):
        with path.open("rb") as file:
            lines = io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file))
            texts = [json.loads(line)["text"] for line in lines]
        for start in range(0, len(texts), 100):
            batch = tokenizer.encode_batch_fast(texts[start : start + 100])
            num_tokens += sum(len(encoding.ids) for encoding in batch)
    print(num_tokens)


def normalize(data: Iterator[Any], rank: int = 0, world_size: int = 1) -> Iterator[Any]:  # noqa: ARG001
    """The rules of datapipe's `normalize`, in plain Python: datatrove has no such step."""
    for document in data:
        text = document.text.replace("\r\n", "\n").replace("\r", "\n")
        text = _CONTROLS.sub("", text).lstrip("\ufeff")
        document.text = unicodedata.normalize("NFC", text)
        yield document


def drop_empty(data: Iterator[Any], rank: int = 0, world_size: int = 1) -> Iterator[Any]:  # noqa: ARG001
    for document in data:
        if document.text.strip():
            yield document


def _note_ids(
    data: Iterator[Any],
    rank: int = 0,
    world_size: int = 1,  # noqa: ARG001
    *,
    folder: str,
) -> Iterator[Any]:
    """Writes down which documents reach the tokenizer, in order, for the comparison."""
    ids = []
    for document in data:
        ids.append(f"{Path(document.metadata['file_path']).name}:{document.id}")
        yield document
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / f"{rank:05d}.json").write_text(json.dumps(ids))


def _text(document: Any) -> str:
    return str(document.text)


def _reader(inputs: str, pattern: str | None = None) -> Any:
    from datatrove.pipeline.readers import JsonlReader  # type: ignore[import-not-found]

    return JsonlReader(inputs, glob_pattern=pattern)


def _ends(options: argparse.Namespace) -> list[Any]:
    from datatrove.pipeline.tokens import DocumentTokenizer  # type: ignore[import-not-found]

    tokens = DocumentTokenizer(
        f"{options.out}/tokens", tokenizer_name_or_path=options.tokenizer, eos_token=EOS, seed=SEED
    )
    note = [partial(_note_ids, folder=f"{options.out}/ids")] if options.ids else []
    return [*note, tokens]


def _run(
    options: argparse.Namespace, name: str, steps: list[Any], *, tasks: int | None = None
) -> None:
    from datatrove.executor import LocalPipelineExecutor  # type: ignore[import-not-found]

    LocalPipelineExecutor(
        pipeline=steps,
        tasks=tasks or len(list(Path(options.inputs).iterdir())),
        workers=options.workers,
        logging_dir=f"{options.out}/logs/{name}",
    ).run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["tokenize", "clean", "each", "encoder"])
    parser.add_argument("--inputs", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--ids", action="store_true", help="write down the documents' ids")
    options = parser.parse_args()
    {"tokenize": tokenize, "clean": clean, "each": each, "encoder": encoder}[options.what](options)


if __name__ == "__main__":
    main()
