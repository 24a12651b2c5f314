"""Does Megatron read a dataset without a copy of it? See README.md."""

from __future__ import annotations

import argparse
import filecmp
import hashlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from datapipe.dataset import Dataset, open_dataset
from datapipe.dataset.foreign import Exported, export_megatron
from datapipe.testing import make_dataset, read_shard

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results"
EOS = 0


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(dir=options.scratch) as name:
        scratch = Path(name)
        rows = [
            _measure(_dataset(scratch / width, tokens=options.tokens_millions, max_id=max_id),
                     scratch / f"{width}-out", python=_python(), runs=options.runs)
            for width, max_id in (("uint16", 50_256), ("uint32", 151_642))
        ]  # fmt: skip
    text = _report(rows, options)
    print(text)
    if options.write:
        (RESULTS / f"{options.write}.md").write_text(text)
        (RESULTS / f"{options.write}.json").write_text(json.dumps(rows, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens-millions", type=int, default=32)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scratch", type=Path, help="where the data goes; default: /tmp")
    parser.add_argument("--write", metavar="NAME", help="also write benchmarks/results/NAME.*")
    return parser.parse_args()


def _python() -> Path:
    """Returns Megatron's interpreter, in an environment made on first use."""
    python = HERE / ".rivals/bin/python"
    if not python.exists():
        subprocess.run([HERE / "setup_rivals.sh", sys.executable], check=True)
    return python


def _dataset(root: Path, *, tokens: int, max_id: int) -> Dataset:
    """Makes two sources of random ids in shards of about 2 million tokens; mean length 1,000."""
    rng = np.random.default_rng(7)

    def shard() -> list[Any]:
        sizes = rng.geometric(1 / 1000, 2000)
        return [np.append(rng.integers(1, max_id + 1, size), EOS) for size in sizes]

    count = max(2, tokens // 2)
    sources = {"web": [shard() for _ in range(count - 1)], "books": [shard()]}
    make_dataset(root, sources, max_id=max_id, eos_id=EOS)
    return open_dataset(str(root))


def _measure(dataset: Dataset, out: Path, *, python: Path, runs: int) -> dict[str, Any]:
    linked = [_timed(dataset, out / f"linked{n}", copy=False) for n in range(runs)]
    copied = [_timed(dataset, out / f"copied{n}", copy=True) for n in range(runs)]
    expected = {source.name: _digest(dataset, source.name) for source in dataset.sources}
    readers = {"linked": linked[0][1], "copied": copied[0][1]}
    seconds = {kind: _check_read(python, made, expected) for kind, made in readers.items()}
    rival = _check_write(python, copied[0][1], out / "rival")
    totals = dataset.manifest.totals
    return {
        "dtype": dataset.token_dtype.name,
        "shards": totals.num_shards,
        "documents": totals.kept,
        "tokens": totals.num_tokens,
        "linked_seconds": [seconds for seconds, _ in linked],
        "copied_seconds": [seconds for seconds, _ in copied],
        "megatron_writes_web_seconds": rival["result"]["seconds"],
        "megatron_reads_seconds": seconds,
        "versions": rival["versions"],
    }


def _timed(dataset: Dataset, out: Path, *, copy: bool) -> tuple[float, Exported]:
    started = time.perf_counter()
    made = export_megatron(open_dataset(dataset.url), out, copy=copy)
    return time.perf_counter() - started, made


def _digest(dataset: Dataset, source: str) -> dict[str, Any]:
    """Returns what rivals.py must find, read by datapipe's own docmaps and shards."""
    digest, count, tokens = hashlib.sha256(), 0, 0
    for number in range(len(dataset.shards(source))):
        ids = read_shard(dataset, source, number).astype("<i8")
        docmap = dataset.docmap(source, number)
        starts, lengths = docmap["token_start"].to_numpy(), docmap["num_tokens"].to_numpy()
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            digest.update(length.to_bytes(8, "little"))
            digest.update(ids[start : start + length].tobytes())
        count, tokens = count + len(starts), tokens + len(ids)
    return {"documents": count, "tokens": tokens, "sha256": digest.hexdigest()}


def _check_read(python: Path, made: Exported, expected: dict[str, Any]) -> float:
    """Compares every document with what Megatron reads; returns its seconds."""
    listings = [source.listing for source in made.sources]
    found = _rival(python, "read", *listings)["result"]
    for source in made.sources:
        item = found[source.listing]
        seen = {name: item[name] for name in ("documents", "tokens", "sha256")}
        assert seen == expected[source.source], (source.source, seen)
    return float(sum(item["seconds"] for item in found.values()))


def _check_write(python: Path, made: Exported, out: Path) -> dict[str, Any]:
    """Compares the largest source's files, byte for byte, with those that Megatron writes."""
    out.mkdir(parents=True)
    source = max(made.sources, key=lambda found: found.num_tokens)
    written = _rival(python, "write", source.listing, "--out", str(out / "web"))
    for ending in (".bin", ".idx"):
        ours = Path(source.listing).with_suffix(ending)
        assert filecmp.cmp(ours, out / f"web{ending}", shallow=False), ours
    shutil.rmtree(out)
    return written


def _rival(python: Path, *words: str) -> dict[str, Any]:
    command = [python, HERE / "rivals.py", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"rivals.py ended with {done.returncode}: {done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _report(rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in rows[0]["versions"].items())
    lines = [
        "# Export for Megatron: seconds, and what Megatron makes of it",
        "",
        f"`python benchmarks/export/bench.py --tokens-millions {options.tokens_millions}` on "
        f"{os.cpu_count()} cores ({platform.machine()}), load average {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}; {versions}. Median (min - max) of {options.runs} "
        "runs, page cache warm. Megatron's `IndexedDataset` read every document "
        "of both exports with the ids that datapipe reads; the copied files are, byte for byte, "
        "those that Megatron's own `IndexedDatasetBuilder` writes.",
        "",
        "| | shards | documents | tokens | linked, s | copied, s | Megatron writes `web` from "
        "memory, s | Megatron reads linked, copied, s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        reads = row["megatron_reads_seconds"]
        lines.append(
            f"| {row['dtype']} | {row['shards']:,} | {row['documents']:,} | {row['tokens']:,} | "
            f"{_spread(row['linked_seconds'])} | {_spread(row['copied_seconds'])} | "
            f"{row['megatron_writes_web_seconds']:.2f} | {reads['linked']:.2f}, "
            f"{reads['copied']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def _spread(seconds: list[float]) -> str:
    low, high = min(seconds), max(seconds)
    return f"{statistics.median(seconds):.2f} ({low:.2f} - {high:.2f})"


if __name__ == "__main__":
    main()
