"""Verification of whole shards, beside SHA-256 alone over the same bytes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from opening import spread

from datapipe.dataset import Dataset, Repository, document_hash, hashed_tuple, verify_dataset
from datapipe.dataset.tables import DOCMAP
from datapipe.testing import commit_small, small_draft

__all__ = ["measure_verifying"]

SHARD_TOKENS = 1 << 25  # 64 MiB of uint16
MAX_ID = 50_256
BLOCK_BYTES = 1 << 20


def measure_verifying(
    folder: str, *, lengths: list[int], shards: int, runs: int
) -> list[dict[str, Any]]:
    """Returns a row a length of documents and kind of work; page cache warm."""
    rows = []
    for length in lengths:
        print(f"verifying documents of {length:,} tokens", flush=True)
        dataset = _dataset(f"{folder}/verifying-{length}", length, shards)
        num_bytes = int(dataset.shards("web").stored_bytes.sum())
        for workers in (1, 2):
            works: dict[str, Callable[[int], None]] = {
                "datapipe verify": lambda n, d=dataset: _verify(d, n),  # type: ignore[misc]
                "hashlib SHA-256 alone": lambda n, d=dataset: _hash(d, n),  # type: ignore[misc]
            }
            for name, work in works.items():
                rows.append(
                    {"work": name, "document_tokens": length, "workers": workers}
                    | _rates(work, workers, num_bytes=num_bytes, runs=runs)
                )
    return rows


def _rates(
    work: Callable[[int], None], workers: int, *, num_bytes: int, runs: int
) -> dict[str, Any]:
    """Returns GB of tokens a second of the processor, and of the clock."""
    processor, clock = [], []
    for _ in range(runs + 1):
        started = time.process_time(), time.perf_counter()
        work(workers)
        processor.append(num_bytes / 1e9 / (time.process_time() - started[0]))
        clock.append(num_bytes / 1e9 / (time.perf_counter() - started[1]))
    return {"gb_per_core_second": spread(processor[1:]), "gb_per_second": spread(clock[1:])}


def _verify(dataset: Dataset, workers: int) -> None:
    report = verify_dataset(dataset, workers=workers)
    assert report.problems == []


def _hash(dataset: Dataset, workers: int) -> None:
    """The rival: every token file read in blocks and hashed, and nothing else."""
    digests = list(dataset.shards("web").stored_sha256)
    with ThreadPoolExecutor(workers) as threads:
        found = list(threads.map(lambda d: _file_sha256(Path(dataset.url), d), digests))
    assert found == digests


def _file_sha256(root: Path, digest: str) -> str:
    found, buffer = hashlib.sha256(), memoryview(bytearray(BLOCK_BYTES))
    with (root / "tokens" / digest[:2] / f"{digest}.bin").open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            found.update(buffer[:count])
    return found.hexdigest()


# -- the dataset


def _dataset(root: str, length: int, shards: int) -> Dataset:
    """Returns a version whose documents have URLs, domains and record ids, as web data has."""
    repository = Repository(root)
    repository.create()
    rng = np.random.default_rng(length)
    count = SHARD_TOKENS // length
    records = []
    for number in range(shards):
        tokens = rng.integers(1, MAX_ID, count * length, dtype=np.uint16)
        tokens[length - 1 :: length] = 0
        records.append(
            repository.write_shard(
                tokens,
                source="web",
                number=number,
                docmap=_docmap(rng, number * count, count, length),
                text_bytes=4 * length * count,
            )
        )
    draft = small_draft(repository, {"web": [[3]]}, max_id=MAX_ID)
    kept = {"kept": shards * count, "text_bytes": 4 * length * count * shards}
    counts = [replace(draft.counts[0], **kept)]
    commit_small(repository, replace(draft, shards=records, counts=counts, signatures=None))
    return repository.open()


def _docmap(rng: np.random.Generator, first: int, count: int, length: int) -> pa.Table:
    offsets = [4_200 * n for n in range(first, first + count)]
    files = [f"part-{n // 5_000:05}.jsonl.zst" for n in range(first, first + count)]
    hashes = [rng.bytes(16) for _ in range(count)]
    ids = [
        document_hash(hashed_tuple("web", file, offset, 4_100, content))
        for file, offset, content in zip(files, offsets, hashes, strict=True)
    ]
    domains = [f"www{n}.example.org" for n in rng.zipf(1.5, count) % 20_000]
    columns: dict[str, Any] = {
        "doc_id": ids,
        "content_hash": hashes,
        "token_start": np.arange(count, dtype=np.int64) * length,
        "num_tokens": np.full(count, length),
        "text_bytes": np.full(count, 4 * length),
        "source_file": files,
        "source_offset": offsets,
        "source_length": np.full(count, 4_100),
        "record_id": [f"<urn:uuid:{content.hex()}>" for content in hashes],
        "url_hash": rng.integers(0, 1 << 63, count, dtype=np.uint64),
        "domain": domains,
        "licence": ["CC0-1.0"] * count,
        "language": ["en"] * count,
        "crawled_at": 1_700_000_000 + np.arange(count, dtype=np.int64),
    }
    return pa.table(
        [pa.array(columns[field.name], _plain(field.type)) for field in DOCMAP], DOCMAP.names
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
