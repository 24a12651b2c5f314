"""Makes a dataset of N documents without texts: ids, hashes, URLs and domains are random.

    python benchmarks/index/make.py DATASET --documents 100000000

Everything is what a build would have written (docmaps of 50,000 documents, a table of dropped rows,
one more for every 10 kept), but each document has a single token, so that the tokens take little
space. Nothing of it is special for the index.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.dataset import (
    Repository,
    ShardRecord,
    SourceCounts,
    VersionDraft,
    begin_transaction,
    commit_version,
)
from datapipe.dataset.tables import DOCMAP, DROPPED
from datapipe.testing import small_tokenizer

SHARD_DOCUMENTS = 50_000
NUM_DOMAINS = 1_000_000
DROPPED_SHARE = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--documents", type=int, default=100_000_000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    started = time.perf_counter()
    repository = Repository(given.dataset)
    repository.create()
    shards = given.documents // SHARD_DOCUMENTS
    with begin_transaction(
        repository, base_version=0, author="benchmark", time_seconds=time.time()
    ) as transaction:
        with ProcessPoolExecutor(given.workers) as pool:
            jobs = [(given.dataset, number) for number in range(shards)]
            records = list(pool.map(write_shard, jobs, chunksize=4))
        draft = make_draft(records, dropped_rows(int(given.documents * DROPPED_SHARE)))
        print(f"{len(records)} shards in {time.perf_counter() - started:.0f} s", flush=True)
        committed = commit_version(
            repository,
            draft,
            author="benchmark",
            reason="synthetic documents",
            input_roots=[],
            time_seconds=time.time(),
            transaction=transaction,
        )
    seconds = time.perf_counter() - started
    print(f"version {committed.version}: {given.documents:,} documents in {seconds:.0f} s")


def write_shard(job: tuple[str, int]) -> ShardRecord:
    url, number = job
    rng = np.random.default_rng([7, number])
    count = SHARD_DOCUMENTS
    columns = {
        **origin(rng, count, file=f"part-{number // 10:05}.jsonl", first=number % 10 * count),
        "token_start": pa.array(np.arange(count)),
        "num_tokens": pa.array(np.ones(count, dtype=np.int64)),
        "text_bytes": pa.array(np.full(count, 4, dtype=np.int64)),
        "record_id": pa.nulls(count, pa.string()),
        "domain": domains(rng, count),
        "licence": names(["CC0-1.0"], np.zeros(count, dtype=np.int32)),
        "language": names(["en", "de", "fr"], rng.integers(0, 3, count, dtype=np.int32)),
        "crawled_at": pa.array(rng.integers(1.6e9, 1.7e9, count), pa.timestamp("s", tz="UTC")),
    }
    return Repository(url).write_shard(
        rng.integers(1, 999, count, dtype=np.uint16),
        source="web",
        number=number,
        docmap=pa.table([columns[name] for name in DOCMAP.names], names=DOCMAP.names),
        text_bytes=4 * count,
    )


def dropped_rows(count: int) -> pa.Table:
    rng = np.random.default_rng(8)
    columns = {
        **origin(rng, count, file="dropped.jsonl", first=0),
        "source": names(["web"], np.zeros(count, dtype=np.int32)),
        "stage": names(["dedup_exact"], np.zeros(count, dtype=np.int32)),
        "rule": names(["duplicate"], np.zeros(count, dtype=np.int32)),
        "survivor": hashes(rng, count),
    }
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(count, field.type)
        for field in DROPPED
    ]
    return pa.table(arrays, names=DROPPED.names)


def origin(rng: np.random.Generator, count: int, *, file: str, first: int) -> dict[str, pa.Array]:
    lengths = rng.integers(500, 5000, count)
    return {
        "doc_id": hashes(rng, count),
        "content_hash": hashes(rng, count),
        "source_file": names([file], np.zeros(count, dtype=np.int32)),
        "source_offset": pa.array(first * 2500 + np.cumsum(lengths) - lengths),
        "source_length": pa.array(lengths),
        "url_hash": pa.array(rng.integers(0, 2**64, count, dtype=np.uint64)),
    }


def hashes(rng: np.random.Generator, count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(16), count, [None, pa.py_buffer(rng.bytes(16 * count))])


def domains(rng: np.random.Generator, count: int) -> pa.DictionaryArray:
    """Few domains have many documents, many have few."""
    ranks = np.minimum(rng.zipf(1.3, count), NUM_DOMAINS)
    found, codes = np.unique(ranks, return_inverse=True)
    return names([f"www.site-{rank}.example.org" for rank in found], codes.astype(np.int32))


def names(values: list[str], codes: npt.NDArray[np.int32]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(values, pa.string()))


def make_draft(records: list[ShardRecord], dropped: pa.Table) -> VersionDraft:
    kept = sum(record.num_documents for record in records)
    counts = SourceCounts(
        source="web",
        kept=kept,
        text_bytes=4 * kept,
        dropped={"dedup_exact.duplicate": dropped.num_rows} if dropped.num_rows else {},
    )
    return VersionDraft(
        operation="build",
        parent=None,
        recipe={"name": "synthetic"},
        shards=records,
        counts=[counts],
        tokenizer=small_tokenizer(),
        environment={},
        dropped=dropped,
    )


if __name__ == "__main__":
    main()
