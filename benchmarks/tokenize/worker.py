"""Encodes an Arrow file with one library and prints what it took, as a line of JSON.

python worker.py NAME TOKENIZER TEXTS RUNS [THREADS]

NAME may be two joined by a plus: they take turns in one process, and only times are printed.

Runs in the environment of whatever NAME needs; imports the project only to measure it.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

Encode = Callable[[pa.ChunkedArray], tuple[Any, Any]]
"""A column -> ids and how many each text has, both as NumPy arrays."""


def main() -> None:
    name, tokenizer, texts, runs, threads = (
        sys.argv[1],
        *sys.argv[2:5],
        int((sys.argv[5:] or [1])[0]),
    )
    with pa.memory_map(texts) as source:
        column = pa.ipc.open_file(source).read_all().column("text")
    if "+" in name:
        encoders = [ENCODERS[each](tokenizer, threads) for each in name.split("+")]
        result = _side_by_side(encoders, column, int(runs))
    else:
        result = _alone(ENCODERS[name](tokenizer, threads), column, int(runs))
    print(json.dumps(result))


def _alone(encode: Encode, column: pa.ChunkedArray, runs: int) -> dict[str, Any]:
    encode(column.slice(0, 20))
    before = _peak_bytes()
    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        ids, counts = encode(column)
        seconds.append(time.perf_counter() - started)
    digest = hashlib.sha256(np.asarray(counts, "<i8").tobytes())
    digest.update(np.asarray(ids, "<u4").tobytes())
    return {
        "seconds": seconds,
        "digest": digest.hexdigest(),
        "tokens": len(ids),
        "grown_mb": (_peak_bytes() - before) / 1e6,
    }


def _side_by_side(
    encoders: list[Encode], column: pa.ChunkedArray, runs: int
) -> dict[str, list[list[float]]]:
    """Wall and CPU seconds of each pass after the first, the encoders taking turns in going first.

    The machine and the process are the same for all, so ratios within a pass tell more than speeds.
    """
    wall: list[list[float]] = [[] for _ in encoders]
    cpu: list[list[float]] = [[] for _ in encoders]
    for run in range(runs + 1):
        order = range(len(encoders)) if run % 2 else reversed(range(len(encoders)))
        for number in order:
            started, used = time.perf_counter(), time.process_time()
            encoders[number](column)
            if run:
                wall[number].append(time.perf_counter() - started)
                cpu[number].append(time.process_time() - used)
    return {"wall": wall, "cpu": cpu}


def _datapipe(tokenizer: str, threads: int) -> Encode:
    from datapipe_tokenizers import load

    loaded = load(tokenizer, threads=threads)

    def encode(column: pa.ChunkedArray) -> tuple[Any, Any]:
        ids, offsets = loaded.encode_batch(column)
        return ids, np.diff(offsets)

    return encode


def _datapipe_reference(tokenizer: str, threads: int) -> Encode:
    from datapipe_tokenizers import load

    loaded = load(tokenizer, threads=threads, backend="huggingface")

    def encode(column: pa.ChunkedArray) -> tuple[Any, Any]:
        ids, offsets = loaded.encode_batch(column)
        return ids, np.diff(offsets)

    return encode


def _huggingface(tokenizer: str, threads: int) -> Encode:
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(f"{tokenizer}/tokenizer.json")
    loaded.no_truncation()
    loaded.encode_special_tokens = True

    def encode(column: pa.ChunkedArray) -> tuple[Any, Any]:
        encodings = []
        for chunk in range(0, len(column), 1000):  # as trainers and datatrove do it
            texts = column.slice(chunk, 1000).to_pylist()
            encodings += [e.ids for e in loaded.encode_batch_fast(texts, add_special_tokens=False)]
        return _joined(encodings)

    return encode


def _gigatoken(tokenizer: str, threads: int) -> Encode:
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    import awkward
    import gigatoken

    loaded = gigatoken.Tokenizer(f"{tokenizer}/tokenizer.json")

    def encode(column: pa.ChunkedArray) -> tuple[Any, Any]:
        layout = loaded.encode_batch(awkward.from_arrow(column), parallel=threads > 1).layout
        return np.asarray(layout.content.data), np.diff(np.asarray(layout.offsets.data))

    return encode


def _tiktoken(tokenizer: str, threads: int) -> Encode:
    import base64

    import tiktoken

    pattern = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
    with open(f"{tokenizer}/r50k_base.tiktoken", "rb") as file:  # noqa: PTH123
        lines = (line.split() for line in file if line.strip())
        ranks = {base64.b64decode(piece): int(rank) for piece, rank in lines}
    encoding = tiktoken.Encoding(
        "r50k", pat_str=pattern, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 50256}
    )

    def encode(column: pa.ChunkedArray) -> tuple[Any, Any]:
        return _joined(encoding.encode_ordinary_batch(column.to_pylist(), num_threads=threads))

    return encode


def _datatrove(tokenizer: str, threads: int) -> Encode:
    """Its tokenizing step, as its pipelines run it: documents in, a file of tokens out."""
    import tempfile
    from pathlib import Path

    from datatrove.data import Document
    from datatrove.pipeline.tokens import DocumentTokenizer

    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    path = f"{tokenizer}/tokenizer.json"

    def encode(column: pa.ChunkedArray) -> tuple[Any, Any]:
        documents = (Document(text=text, id=str(i)) for i, text in enumerate(column.to_pylist()))
        with tempfile.TemporaryDirectory(prefix="datapipe-bench-") as folder:
            step = DocumentTokenizer(
                output_folder=folder, tokenizer_name_or_path=path, shuffle_documents=False
            )
            step.run(documents)
            (tokens,) = Path(folder).glob("*.ds")
            ends = np.fromfile(f"{tokens}.index", "<u8")
            dtype = "<u2" if step.token_size == 2 else "<u4"
            return np.fromfile(tokens, dtype), np.diff(ends, prepend=np.uint64(0))

    return encode


def _joined(lists: list[list[int]]) -> tuple[Any, Any]:
    return np.concatenate([np.array(each, np.uint32) for each in lists]), [len(x) for x in lists]


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


ENCODERS: dict[str, Callable[[str, int], Encode]] = {
    "datapipe": _datapipe,
    "datapipe, huggingface": _datapipe_reference,
    "tokenizers": _huggingface,
    "gigatoken": _gigatoken,
    "tiktoken": _tiktoken,
    "datatrove": _datatrove,
}

if __name__ == "__main__":
    main()
