"""Documents without a break: time and memory grow with their length; ids are the reference's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from datapipe_tokenizers import LimitError, load_files
from datapipe_tokenizers.encodings import KNOWN, Encoding, dump_encoding
from datapipe_tokenizers.huggingface import HuggingFaceFile
from datapipe_tokenizers.tiktoken import dump_ranks

UNITS = {"letter": "a", "space": " ", "digit": "7", "emoji": "\U0001f600", "line": "\n"}
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "tokenizers" / "hf"

MEASURE = """
import json, resource, sys, time
import pyarrow as pa
import datapipe_tokenizers

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

tokenizer = datapipe_tokenizers.load(sys.argv[1])
measured = []
for size in map(int, sys.argv[3:]):
    text = pa.array([sys.argv[2] * (size // len(sys.argv[2].encode()))], pa.large_string())
    before, started = peak(), time.process_time()
    ids, _ = tokenizer.encode_batch(text)
    measured.append([time.process_time() - started, peak() - before, len(ids)])
print(json.dumps([tokenizer.backend, measured]))
"""


def measure(path: Path, unit: str, *sizes: int) -> tuple[str, list[list[float]]]:
    result = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path), unit, *map(str, sizes)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    backend, measured = json.loads(result.stdout)
    return backend, measured


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_memory_is_linear(tmp_path: Path, bpe_json: bytes, unit: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(bpe_json)
    backend, (_, long) = measure(path, unit, 1_000_000, 8_000_000)
    assert backend == "gigatoken"
    assert long[1] < 60 * 8_000_000


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"{SHARED} isn't there")
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_documents_of_200_mb(unit: str) -> None:
    _, (short, long) = measure(SHARED / "gpt2", unit, 20_000_000, 200_000_000)
    assert long[0] < 20 * short[0] + 0.5
    assert long[1] < 512_000_000 + 8 * (200_000_000 + long[2])


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_ids_of_long_runs_are_those_of_the_reference(bpe_json: bytes, unit: str) -> None:
    texts = [unit * 100_000, unit * 99_999 + "x"]
    ours, theirs = (
        load_files({"tokenizer.json": bpe_json}, backend=backend).encode_batch(texts)
        for backend in ("gigatoken", "reference")
    )
    np.testing.assert_array_equal(ours[1], theirs[1])
    np.testing.assert_array_equal(ours[0], theirs[0])


def test_text_that_tiktoken_cannot_take_at_once_is_encoded_in_windows(bpe_json: bytes) -> None:
    files = rank_files(bpe_json)
    texts = pa.array(["a", " " * 1_000_000 + "x", "b"])
    tokenizer = load_files(files, backend="tiktoken")
    assert tokenizer.decode(tokenizer.encode_batch(texts.slice(1, 1))[0]) == texts[1].as_py()
    assert load_files(files).compare(texts) is None


def test_text_that_cannot_be_taken_apart_is_named_and_passed_over(bpe_json: bytes) -> None:
    texts = pa.array(["a", "\n" + " " * 3_000_000 + "x", "b"])
    files = rank_files(bpe_json)
    with pytest.raises(LimitError, match="tiktoken can't encode a text of 3,000,002 characters"):
        load_files(files, backend="tiktoken").encode_batch(texts)
    quick = load_files(files)
    assert quick.compare(texts) is None
    assert quick.decode(quick.encode_batch(texts.slice(1, 1))[0]) == texts[1].as_py()


def rank_files(bpe_json: bytes) -> dict[str, bytes]:
    tokens = HuggingFaceFile(bpe_json).vocabulary.tokens
    encoding = Encoding(
        name="x", pattern=KNOWN["r50k_base"].pattern, special_tokens={"<|endoftext|>": 0}
    )
    return {
        "ranks.tiktoken": dump_ranks({token: n for n, token in tokens.items() if n}),
        "encoding.json": dump_encoding(encoding),
    }
