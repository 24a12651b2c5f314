"""Tokens per second of one process, page cache warm, beside a memmap Dataset and a plain memcpy.

python benchmarks/loader/bench.py [--tokens-millions 256] [--seconds 3] [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xxhash
from torch.utils.data import DataLoader

sys.path.insert(0, str(Path(__file__).resolve().parent))

from rivals import MemmapRows

from datapipe.dataset import Dataset
from datapipe.load import TokenStream
from datapipe.testing import make_dataset

SEQ_LEN, BATCH = 2048, 16
SHARD_TOKENS = 1 << 25  # 64 MiB of uint16
RUNS = 5


def main() -> None:
    arguments = _arguments()
    torch.set_num_threads(1)  # one process, one thread: rivals' collate would share its work
    with tempfile.TemporaryDirectory(prefix="datapipe-bench-") as folder:
        dataset = _dataset(Path(folder), arguments.tokens_millions * 1_000_000)
        _check_same_rows(dataset)
        results = [
            _measure(name, supply, seconds=arguments.seconds)
            for name, supply in _supplies(dataset).items()
        ]
    report = {"machine": _machine(), "settings": _settings(arguments), "results": results}
    _write(report, Path(arguments.out))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens-millions", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--out", default=str(Path(__file__).resolve().parents[1] / "results"))
    return parser.parse_args()


def _dataset(folder: Path, num_tokens: int) -> Dataset:
    rng = np.random.default_rng(7)
    shards = []
    for _ in range(max(num_tokens // SHARD_TOKENS, 1)):
        tokens = rng.integers(1, 50_000, SHARD_TOKENS, dtype=np.uint16)
        ends = np.arange(1000, SHARD_TOKENS, 1000)
        tokens[ends - 1] = 0
        tokens[-1] = 0
        shards.append(np.split(tokens, ends))
    return make_dataset(folder, {"web": shards}, max_id=49_999)


# -- what supplies batches


def _supplies(dataset: Dataset) -> dict[str, Callable[[], Iterator[Any]]]:
    def stream(workers: int | None) -> Callable[[], Iterator[Any]]:
        def supply() -> Iterator[Any]:
            made = _stream(dataset, epochs=1000)
            return iter(made if workers is None else _loader(made, workers))

        return supply

    def memmap(workers: int) -> Callable[[], Iterator[Any]]:
        return lambda: _endless(lambda: _memmap_loader(dataset, workers))

    return {
        "TokenStream, iterated": stream(None),
        "TokenStream, DataLoader, 0 workers": stream(0),
        "TokenStream, DataLoader, 2 workers": stream(2),
        "memmap Dataset, DataLoader, 0 workers": memmap(0),
        "memmap Dataset, DataLoader, 2 workers": memmap(2),
        "memcpy of the bytes delivered": _memcpy,
    }


def _stream(dataset: Dataset, *, epochs: int) -> TokenStream:
    return TokenStream(
        dataset, seq_len=SEQ_LEN, batch_size=BATCH, tail="drop", epochs=epochs, seed=1
    )


def _loader(stream: TokenStream, workers: int) -> DataLoader[Any]:
    return DataLoader(stream, batch_size=None, num_workers=workers)


def _memmap_loader(dataset: Dataset, workers: int) -> DataLoader[Any]:
    rows = MemmapRows(_files(dataset), dtype="<u2", seq_len=SEQ_LEN)
    order = torch.Generator().manual_seed(1)
    return DataLoader(
        rows, batch_size=BATCH, shuffle=True, generator=order, drop_last=True, num_workers=workers
    )


def _files(dataset: Dataset) -> list[Path]:
    digests = dataset.shards("web").stored_sha256
    return [Path(dataset.url) / "tokens" / d[:2] / f"{d}.bin" for d in digests]


def _endless(make: Callable[[], DataLoader[Any]]) -> Iterator[Any]:
    while True:
        yield from make()


def _memcpy() -> Iterator[Any]:
    source = torch.ones((2, BATCH, SEQ_LEN), dtype=torch.int64)
    target = torch.zeros_like(source)  # reused: new memory for every batch is three times slower
    while True:
        np.copyto(target.numpy(), source.numpy())
        yield {"input_ids": target[0], "labels": target[1]}


# -- correctness


def _check_same_rows(dataset: Dataset) -> None:
    """Both deliver the same rows, each once, but for the last, partial batch."""
    ours = _digests(_loader(_stream(dataset, epochs=1), 0))
    theirs = _digests(_memmap_loader(dataset, 0))
    every = _digests(MemmapRows(_files(dataset), dtype="<u2", seq_len=SEQ_LEN))
    assert len(set(every)) == len(every), "rows of random tokens must differ"
    for name, rows in (("TokenStream", ours), ("memmap", theirs)):
        assert len(rows) == len(every) // BATCH * BATCH, f"{name} lost or repeated rows"
        assert len(set(rows)) == len(rows), f"{name} repeated rows"
        assert set(rows) <= set(every), f"{name} delivered rows that aren't in the data"


def _digests(batches: Any) -> list[int]:
    found = []
    for batch in batches:
        pairs = torch.stack([batch["input_ids"], batch["labels"]], dim=-2).reshape(-1, 2 * SEQ_LEN)
        found += [xxhash.xxh3_64_intdigest(row) for row in pairs.numpy()]
    return found


# -- measuring


def _measure(name: str, supply: Callable[[], Iterator[Any]], *, seconds: float) -> dict[str, Any]:
    begun = time.perf_counter()
    batches = supply()
    batch = next(batches)
    first_ms = (time.perf_counter() - begun) * 1e3
    _take(batches, seconds)  # every block checked, every page cached
    rates, cpus, waits = [], [], []
    for _ in range(RUNS):
        cpu = _cpu_seconds()
        num, elapsed, longest = _take(batches, seconds)
        tokens = num * batch["input_ids"].numel()
        rates.append(tokens / elapsed / 1e6)
        cpus.append((_cpu_seconds() - cpu) / tokens * 1e9)
        waits.append(longest * 1e3)
    result = {
        "name": name,
        "million_tokens_per_second": {
            "min": round(min(rates), 1),
            "median": round(statistics.median(rates), 1),
            "max": round(max(rates), 1),
        },
        "cpu_ns_per_token": round(statistics.median(cpus), 3),
        "first_batch_ms": round(first_ms, 2),
        "longest_wait_ms": round(max(waits), 2),
    }
    print(json.dumps(result), flush=True)
    return result


def _take(batches: Iterator[Any], seconds: float) -> tuple[int, float, float]:
    begun = last = time.perf_counter()
    num, longest = 0, 0.0
    while last - begun < seconds:
        next(batches)
        now = time.perf_counter()
        longest = max(longest, now - last)
        last, num = now, num + 1
    return num, last - begun, longest


def _cpu_seconds() -> float:
    """CPU time of this process; workers that run still aren't counted."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


# -- results


def _machine() -> dict[str, Any]:
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "load_average": os.getloadavg()[0],
    }


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "command": f"python benchmarks/loader/bench.py --tokens-millions "
        f"{arguments.tokens_millions} --seconds {arguments.seconds}",
        "seq_len": SEQ_LEN,
        "batch_size": BATCH,
        "token_dtype": "uint16",
        "runs": RUNS,
        "page_cache": "warm",
    }


def _write(report: dict[str, Any], folder: Path) -> None:
    name = f"loader_{os.cpu_count()}core_{time.strftime('%Y%m')}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
    (folder / f"{name}.md").write_text(_table(report))
    print(_table(report))


def _table(report: dict[str, Any]) -> str:
    machine, settings = report["machine"], report["settings"]
    lines = [
        "# Loader: tokens per second of one process, page cache warm",
        "",
        f"`{settings['command']}` on {machine['cpu']}, {machine['cores']} cores, Python "
        f"{machine['python']}, torch {machine['torch']}, numpy {machine['numpy']}; load average "
        f"before {machine['load_average']:.1f}. Rows of {SEQ_LEN} tokens, batches of {BATCH}, "
        f"stored as uint16, delivered as two int64 tensors; torch on one thread; {RUNS} runs of "
        "each, median (min - max). Both deliver the same rows, each once: checked beforehand.",
        "",
        "| | million tokens/s | CPU ns/token, consumer | first batch ms | longest wait ms |",
        "|---|---|---|---|---|",
    ]
    for row in report["results"]:
        rate = row["million_tokens_per_second"]
        lines.append(
            f"| {row['name']} | {rate['median']:.0f} ({rate['min']:.0f} - {rate['max']:.0f}) | "
            f"{row['cpu_ns_per_token']:.2f} | {row['first_batch_ms']:.1f} | "
            f"{row['longest_wait_ms']:.1f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
