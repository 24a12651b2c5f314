"""Looks documents up in a dataset that `make.py` made and `datapipe index` indexed.

    python benchmarks/index/bench.py DATASET [--lookups 200] [--scan]

Every answer is compared with the row it must be. "Cold" means that the kernel was told to forget
the files before each lookup; the program itself is warm. `--scan` also looks for one document
without the index, and with DuckDB over the docmap files.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from datapipe.dataset import Dataset, open_dataset
from datapipe.dataset.find import Wanted, domain_wanted, find, id_wanted, url_wanted
from datapipe.dataset.index import id_key

Row = tuple[int, int, dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--lookups", type=int, default=200)
    parser.add_argument("--scan", action="store_true")
    given = parser.parse_args()
    dataset = open_dataset(given.dataset)
    rows = sample_rows(dataset, given.lookups)
    result = {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}",
        "versions": {"python": platform.python_version(), "pyarrow": pa.__version__},
        "documents": dataset.manifest.totals.kept,
        "dropped": dataset.manifest.totals.dropped,
        "docmap_bytes_per_document": docmap_bytes(dataset) / dataset.manifest.totals.kept,
        "index": {
            kind: {
                "bytes": sum(file.bytes for file in files),
                "bytes_per_row": sum(f.bytes for f in files) / sum(f.rows for f in files),
            }
            for kind, files in dataset.manifest.indexes.items()
        },
        "milliseconds": lookups(given.dataset, dataset, rows),
    }
    if given.scan:
        result["scan_seconds"] = scans(dataset, rows[len(rows) // 2])
    print(json.dumps(result, indent=2))


def sample_rows(dataset: Dataset, count: int) -> list[Row]:
    """Returns rows of random shards, as (shard, row, values)."""
    rng = np.random.default_rng(3)
    shards = rng.integers(0, dataset.sources[0].num_shards, count)
    rows = []
    for shard in shards.tolist():
        docmap = dataset.docmap("web", shard)
        row = int(rng.integers(docmap.num_rows))
        rows.append((shard, row, docmap.slice(row, 1).to_pylist()[0]))
    return rows


def docmap_bytes(dataset: Dataset) -> int:
    store = dataset.repository.store
    return sum(info.size for info in store.list("docmap/"))


def lookups(url: str, dataset: Dataset, rows: list[Row]) -> dict[str, Any]:
    def by_id(row: Row) -> Wanted:
        return id_wanted(row[2]["doc_id"].hex())

    def by_url(row: Row) -> Wanted:
        return url_wanted(row[2]["url_hash"])

    def by_domain(row: Row) -> Wanted:
        return domain_wanted(row[2]["domain"])

    def look(at: Dataset, row: Row, wanted: Callable[[Row], Wanted]) -> None:
        found = [(r.table.number, r.row, r.values) for r in find(at, wanted(row), limit=10)]
        assert row in found or (wanted is by_domain and len(found) == 10), (row, found)

    def place(row: Row) -> None:
        index = dataset.index("doc")
        assert index is not None
        (found,) = index.find(id_key(row[2]["doc_id"]))
        assert (found.table.number, found.row) == row[:2]

    def fresh(row: Row) -> None:
        look(open_dataset(url), row, by_id)

    def forget(row: Row) -> None:
        forget_files(dataset, row[0])

    return {
        "open the dataset and the index, find one by id": timed(fresh, rows[:20]),
        "the same, cold": timed(fresh, rows[:20], before=forget),
        "place in the index by id": timed(place, rows),
        "place by id, cold": timed(place, rows, before=forget),
        "document by id, with its row": timed(lambda row: look(dataset, row, by_id), rows),
        "document by id, cold": timed(lambda row: look(dataset, row, by_id), rows, before=forget),
        "document by URL": timed(lambda row: look(dataset, row, by_url), rows),
        "first 10 documents of a domain": timed(lambda row: look(dataset, row, by_domain), rows),
    }


def forget_files(dataset: Dataset, shard: int) -> None:
    digest = dataset.shards("web").docmap_sha256[shard]
    root = Path(dataset.url)
    for path in (*root.glob("index/*/*"), root / f"docmap/{digest[:2]}/{digest}.parquet"):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def timed(
    run: Callable[[Row], None], rows: list[Row], before: Callable[[Row], None] = lambda _: None
) -> dict[str, float]:
    wall, cpu = [], []
    for row in rows:
        before(row)
        started, worked = time.perf_counter(), time.process_time()
        run(row)
        wall.append(1e3 * (time.perf_counter() - started))
        cpu.append(1e3 * (time.process_time() - worked))
    return {
        "runs": len(rows),
        "min": round(min(wall), 2),
        "median": round(statistics.median(wall), 2),
        "max": round(max(wall), 2),
        "median_cpu": round(statistics.median(cpu), 2),
    }


def scans(dataset: Dataset, row: Row) -> dict[str, float]:
    import duckdb

    doc_id = row[2]["doc_id"]
    started = time.perf_counter()
    index, dataset.index = dataset.index, lambda _: None  # type: ignore[method-assign]
    (found,) = find(dataset, id_wanted(doc_id.hex()))
    dataset.index = index  # type: ignore[method-assign]
    assert (found.table.number, found.row) == row[:2]
    seconds = {"without the index": round(time.perf_counter() - started, 1)}
    started = time.perf_counter()
    files = f"{dataset.url}/docmap/*/*.parquet"
    query = "select * from read_parquet(?) where doc_id = ?"
    assert len(duckdb.execute(query, [files, doc_id]).fetchall()) == 1
    seconds["DuckDB over the docmap files"] = round(time.perf_counter() - started, 1)
    return seconds


if __name__ == "__main__":
    main()
