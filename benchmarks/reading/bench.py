"""MB/s of reading and cleaning on one core, by CPU time; see README.md."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pyarrow as pa

from datapipe.clean import DropEmpty, Normalize
from datapipe.read import InputFile, detect_format, list_inputs, plan_ranges, read_range
from datapipe.read.streams import open_input, stream


def measure(work: Callable[[], object], num_bytes: int) -> str:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return f"{num_bytes / best / 1e6:6.0f}"


def unpack(file: InputFile) -> int:
    with open_input(file) as view:
        return sum(map(len, stream(view, compression=detect_format(file).compression)))


def read(file: InputFile) -> list[pa.RecordBatch]:
    parts = plan_ranges(file, detect_format(file), target_bytes=64 << 20)
    results = [result for part in parts for result in read_range(part, source="bench")]
    assert not any(result.quarantined.num_rows for result in results)
    return [result.batch for result in results if result.batch is not None]


def main(paths: list[str]) -> None:
    for file in list_inputs(paths):
        size, batches = unpack(file), read(file)
        columns = {
            "unpack": lambda file=file: unpack(file),
            "read": lambda file=file: read(file),
            "normalize": lambda batches=batches: [Normalize().apply(b) for b in batches],
            "drop_empty": lambda batches=batches: [DropEmpty().apply(b) for b in batches],
        }
        shown = "  ".join(f"{name} {measure(work, size)}" for name, work in columns.items())
        print(f"{file.relative:32} {size / 1e6:6.1f} MB  {shown} MB/s")


if __name__ == "__main__":
    main(sys.argv[1:])
