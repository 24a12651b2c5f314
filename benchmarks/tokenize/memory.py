"""Memory and speed while a process encodes text whose words never end.

python -m benchmarks.tokenize.memory TOKENIZER [--backend auto] [--megabytes 1000] [--eos TOKEN]

Documents of random words of eight scripts, 1,000 words each, are made and encoded 4 MB at a time.
After each tenth it prints what the process holds, and MB/s of its CPU time in the encoder alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe_tokenizers import load

SCRIPTS = (0x61, 0xE0, 0x3B1, 0x430, 0x5D0, 0x627, 0x905, 0x4E00)
BATCH_BYTES = 4 << 20
WORDS = 1000


def main() -> None:
    arguments = _arguments()
    loaded = load(arguments.tokenizer, backend=arguments.backend, eos=arguments.eos)
    draw = np.random.default_rng(7)
    rows, total, next_row = [], 0, 0
    encoded, seconds, tokens = 0, 0.0, 0
    loaded_bytes = _resident_bytes()
    while total < arguments.megabytes * 1e6:
        column = random_documents(draw)
        size = column.buffers()[2].size
        started = time.process_time()
        ids, _ = loaded.encode_batch(column)
        seconds += time.process_time() - started
        total, encoded, tokens = total + size, encoded + size, tokens + len(ids)
        del column, ids
        next_row += size
        if next_row >= arguments.megabytes * 1e5:
            rows.append([total / 1e6, _resident_bytes() / 1e6, encoded / 1e6 / seconds])
            print(f"{rows[-1][0]:8.0f} MB {rows[-1][1]:7.0f} MB held {rows[-1][2]:6.1f} MB/s")
            encoded, seconds, next_row = 0, 0.0, 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    result = {
        "tokenizer": Path(arguments.tokenizer).name,
        "backend": loaded.backend,
        "tokens": tokens,
        "loaded_mb": round(loaded_bytes / 1e6),
        "peak_mb": round(peak),
        "rows": [[round(value, 1) for value in row] for row in rows],
    }
    print(json.dumps(result))


def random_documents(draw: np.random.Generator) -> pa.LargeStringArray:
    """Returns about BATCH_BYTES of documents; no two words are likely to be equal."""
    texts, size = [], 0
    while size < BATCH_BYTES:
        text = _document(draw)
        texts.append(text)
        size += len(text.encode())
    return pa.array(texts, pa.large_string())


def _document(draw: np.random.Generator) -> str:
    lengths = draw.integers(4, 13, WORDS)
    starts = np.repeat(draw.choice(SCRIPTS, WORDS), lengths)
    letters: npt.NDArray[np.int64] = starts + draw.integers(0, 24, lengths.sum())
    spaced = np.insert(letters, np.cumsum(lengths)[:-1], 0x20)
    return spaced.astype("<u4").tobytes().decode("utf-32-le")


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    return pages * resource.getpagesize()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("tokenizer")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--eos")
    return parser.parse_args()


if __name__ == "__main__":
    main()
