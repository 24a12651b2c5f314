from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64encode
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from datapipe_tokenizers import Tokenizer, load, load_files
from datapipe_tokenizers.huggingface import HuggingFaceEncoder, HuggingFaceFile

TEXTS = [f"the fox number {i} jumps <|endoftext|>" for i in range(400)]

COUNT_THREADS = """
import os, sys, datapipe_tokenizers, pyarrow
texts = pyarrow.array(["the quick brown fox"] * 5000)
before = len(os.listdir("/proc/self/task"))
datapipe_tokenizers.load(sys.argv[1]).encode_batch(texts)
print(len(os.listdir("/proc/self/task")) - before, os.environ["TOKENIZERS_PARALLELISM"])
"""


def test_threads_give_the_ids_of_one_thread(bpe_json: bytes) -> None:
    file = HuggingFaceFile(bpe_json)
    expected = load_files({"tokenizer.json": bpe_json}).encode_batch(TEXTS)
    many = HuggingFaceEncoder(
        file, reserved=frozenset(file.vocabulary.specials), threads=3, batch_bytes=256
    )
    ids, counts = many.encode(pa.array(TEXTS, pa.large_string()))
    np.testing.assert_array_equal(ids, expected[0])
    np.testing.assert_array_equal(counts, np.diff(expected[1]))


@pytest.mark.parametrize(
    ("given", "left"), [({}, "false"), ({"TOKENIZERS_PARALLELISM": "0"}, "0")], ids=["unset", "set"]
)
def test_loading_keeps_other_threads_from_starting(
    tmp_path: Path, bpe_json: bytes, given: dict[str, str], left: str
) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(bpe_json)
    clean = {k: v for k, v in os.environ.items() if k != "TOKENIZERS_PARALLELISM"}
    path_variable = {"PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        [sys.executable, "-c", COUNT_THREADS, str(path)],
        env=clean | path_variable | given,
        capture_output=True,
        text=True,
        check=True,
    )
    threads, setting = result.stdout.split()
    assert (int(threads), setting) == (0, left)


COUNT_ENCODING_THREADS = """
import os, sys, threading, time, datapipe_tokenizers, pyarrow
texts = pyarrow.array(["the quick brown fox %d " % i * 300 for i in range(4000)])
path, backend, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
tokenizer = datapipe_tokenizers.load(path, backend=backend, threads=threads, eos=sys.argv[4])
count = lambda: len(os.listdir("/proc/self/task"))
done, most = threading.Event(), []

def watch():
    while not done.is_set():
        most.append(count())
        time.sleep(0.002)

watcher = threading.Thread(target=watch)
before = count() + 1
watcher.start()
tokenizer.encode_batch(texts)
done.set()
watcher.join()
print(tokenizer.backend, max(most) - before)
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("backend", ["gigatoken", "huggingface", "tiktoken"])
def test_no_backend_starts_more_threads_than_it_is_given(
    tmp_path: Path, bpe_json: bytes, backend: str, threads: int
) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(bpe_json)
    if backend == "tiktoken":
        path = tmp_path / "ranks.tiktoken"
        lines = (f"{b64encode(bytes([n])).decode()} {n}\n" for n in range(256))
        path.write_text("".join(lines))
        special = {"name": "bytes", "pattern": r"\S+|\s+", "special_tokens": {"<|endoftext|>": 256}}
        (tmp_path / "encoding.json").write_text(json.dumps(special))
    # What these libraries take from the environment doesn't count: one knob does.
    settings = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "7"}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **settings}
    arguments = [str(path), backend, str(threads), "<|endoftext|>"]
    result = subprocess.run(
        [sys.executable, "-c", COUNT_ENCODING_THREADS, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    name, started = result.stdout.split()
    assert name == backend
    assert int(started) <= (threads if threads > 1 else 0)


def test_spawned_workers_encode_alike(bpe: Tokenizer) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        ids, offsets = pool.submit(bpe.encode_batch, TEXTS).result()
    expected = bpe.encode_batch(TEXTS)
    np.testing.assert_array_equal(ids, expected[0])
    np.testing.assert_array_equal(offsets, expected[1])


def test_fewer_than_one_thread_is_refused(tmp_path: Path, bpe_json: bytes) -> None:
    (tmp_path / "tokenizer.json").write_bytes(bpe_json)
    with pytest.raises(ValueError, match="threads is 0"):
        load(tmp_path, threads=0)
