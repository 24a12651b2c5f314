"""Open time, memory and planning time of the order at 1 million shards; see README.md."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from datapipe.order import Batches, Order, OrderSource, OrderSpec, Phase, Segment, plan

SHARDS, SHARD_TOKENS, SEQ_LEN, LANES, BATCH = 1_000_000, 15_000_000, 4096, 64, 1024
PLANNED = 300  # batches a run
RESULTS = Path(__file__).resolve().parents[1] / "results"
TARGETS = {"open_seconds": 1.0, "added_peak_mb": 150.0, "plan_ms": 2.0}


def simulated(num_sources: int) -> tuple[OrderSpec, dict[str, Any]]:
    generator = np.random.default_rng(1)
    size = SHARDS // num_sources
    names = [f"source{i}" for i in range(num_sources)]
    tokens = {n: SHARD_TOKENS - generator.integers(0, 5000, size, dtype=np.int64) for n in names}
    weights = [{name: 1.0 + (i * k) % 5 for i, name in enumerate(names)} for k in (1, 2)]
    spec = OrderSpec(
        sources=tuple(OrderSource(name=n, order_digest="0" * 64, shards_to=size) for n in names),
        seq_len=SEQ_LEN,
        lanes=LANES,
        seed=7,
        phases=(Phase(0, weights[0]), Phase(10**9, weights[1])),
    )
    return spec, tokens


def memory_mb(field: str) -> float:
    """Resident memory now (VmRSS) or its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    [line] = [line for line in lines if line.startswith(field)]
    return int(line.split()[1]) / 1024


def timed_ms(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def planned_ms(order: Order, batches: Batches, *, first: int) -> float:
    """Median of consecutive batches, each asserted to be given back by the inverse."""
    times, seen = [], []
    for batch in range(first, first + PLANNED):
        start = time.perf_counter()
        samples = batches.samples(batch)
        places = order.locate(samples)
        order.token_runs(places)
        times.append((time.perf_counter() - start) * 1000)
        back = order.inverse(places.source, places.shard, places.sample, places.epoch)
        assert np.array_equal(back, samples), f"batch {batch}: the inverse gives other numbers"
        seen.append(np.stack([places.source, places.shard, places.sample, places.epoch]))
    assert np.unique(np.concatenate(seen, axis=1), axis=1).shape[1] == PLANNED * BATCH
    return statistics.median(times)


def one_run(run: int) -> dict[str, float]:
    spec, tokens = simulated(1)
    segment = Segment(global_batch_size=BATCH, dp_world_size=8)
    batches = Batches(segment, spec=spec)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    before = memory_mb("VmRSS")
    start = time.perf_counter()
    order = Order.open(spec, tokens)
    opened = (time.perf_counter() - start) * 1000
    order.locate(batches.samples(0))
    ready = time.perf_counter() - start
    result = {
        "open_seconds": ready,
        "open_without_first_batch_ms": opened,
        "added_mb": memory_mb("VmRSS") - before,
        "added_peak_mb": memory_mb("VmHWM") - before,
    }
    total = order.num_samples["source0"]
    first = int(np.random.default_rng(run).integers(0, total // BATCH - PLANNED))
    result["plan_ms"] = planned_ms(order, batches, first=first)
    places = order.locate(batches.samples(first))
    columns = (places.source, places.shard, places.sample, places.epoch)
    result["inverse_ms"] = min(timed_ms(lambda: order.inverse(*columns)) for _ in range(20))
    result["new_epoch_ms"] = timed_ms(lambda: order.locate(batches.samples(5 * total // BATCH)))
    uses = plan(order, segment=segment, ranks=range(8))
    result["first_planned_use_ms"] = timed_ms(lambda: next(uses))
    mixture, counts = simulated(8)
    mixed = Order.open(mixture, counts)
    near_phase = 10**9 // BATCH - PLANNED // 2
    result["plan_mixture_ms"] = planned_ms(mixed, Batches(segment, spec=mixture), first=near_phase)
    return result | {"samples": total}


def summary(runs: list[dict[str, float]]) -> dict[str, Any]:
    columns = {name: [run[name] for run in runs] for name in runs[0] if name != "samples"}
    return {
        "question": "Does the order stay small and quick at 15 trillion tokens?",
        "command": "python benchmarks/order/bench.py " + " ".join(sys.argv[1:]),
        "dataset": f"{SHARDS} shards, {int(runs[0]['samples'])} samples of {SEQ_LEN} tokens",
        "machine": f"{platform.machine()}, {_processor()}, {len(_cores())} cores",
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "runs": len(runs),
        "targets": TARGETS,
        "results": {
            name: {
                "min": round(min(values), 4),
                "median": round(statistics.median(values), 4),
                "max": round(max(values), 4),
            }
            for name, values in columns.items()
        },
    }


def _cores() -> list[str]:
    lines = Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
    return [line.split(":")[1].strip() for line in lines if line.startswith("model name")]


def _processor() -> str:
    return (_cores() or ["unknown processor"])[0]


def as_markdown(result: dict[str, Any]) -> str:
    head = [
        f"# {result['question']}",
        "",
        f"{result['dataset']}. `{result['command']}` on {result['machine']}; "
        + ", ".join(f"{name} {version}" for name, version in result["versions"].items())
        + f"; {result['runs']} runs, each a fresh process. Nothing is read from disk.",
        "",
        "| | min | median | max | target |",
        "|---|---|---|---|---|",
    ]
    targets = {name: f"< {value:g}" for name, value in TARGETS.items()}
    rows = [
        f"| {name} | {value['min']:g} | {value['median']:g} | {value['max']:g} "
        f"| {targets.get(name, '')} |"
        for name, value in result["results"].items()
    ]
    return "\n".join([*head, *rows, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="fresh processes")
    parser.add_argument("--write", metavar="NAME", help="write results/NAME.json and .md")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(one_run(options.one)))
        return
    command = [sys.executable, __file__, "--one"]
    runs = [
        json.loads(subprocess.run([*command, str(i)], check=True, capture_output=True).stdout)
        for i in range(options.runs)
    ]
    result = summary(runs)
    print(as_markdown(result))
    if options.write:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{options.write}.json").write_text(json.dumps(result, indent=2) + "\n")
        (RESULTS / f"{options.write}.md").write_text(as_markdown(result))


if __name__ == "__main__":
    main()
