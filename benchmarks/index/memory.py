"""Makes an index of a dataset without committing it; says how long it took and how much it held.

    python benchmarks/index/memory.py DATASET@1 [KIND...]

Pages of the temporary files are counted apart: the kernel takes them back when it needs them.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

from datapipe.dataset import open_dataset
from datapipe.dataset.index.plan import plan_indexes
from datapipe.dataset.plan import plan_version
from datapipe.dataset.rebase import index_draft
from datapipe.observe import NO_PROGRESS


def main() -> None:
    dataset = open_dataset(sys.argv[1])
    assert not dataset.manifest.indexes, "give a version without indexes"
    kinds = sys.argv[2:] or ["doc"]
    draft = index_draft(dataset, frozenset(kinds))
    peaks, ended = {"RssAnon": 0, "RssFile": 0}, threading.Event()
    threading.Thread(target=watch, args=(peaks, ended), daemon=True).start()
    started, worked = time.perf_counter(), time.process_time()
    store = dataset.repository.store
    plan = plan_indexes(plan_version(draft), draft, store=store, progress=NO_PROGRESS)
    files = plan.index_files
    ended.set()
    print(
        json.dumps(
            {
                "kinds": kinds,
                "rows": [file.entry.rows for file in files],
                "bytes": [file.entry.bytes for file in files],
                "sha256": [file.entry.sha256 for file in files],
                "seconds": round(time.perf_counter() - started, 1),
                "cpu_seconds": round(time.process_time() - worked, 1),
                "peak_kb": peaks,
            },
            indent=2,
        )
    )


def watch(peaks: dict[str, int], ended: threading.Event) -> None:
    while not ended.wait(0.05):
        for line in Path("/proc/self/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in peaks:
                peaks[name] = max(peaks[name], int(value.split()[0]))


if __name__ == "__main__":
    main()
