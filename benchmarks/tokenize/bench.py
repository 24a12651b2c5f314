"""Our `encode_batch` beside the libraries themselves, on the same column: MB/s, memory, ids.

python benchmarks/tokenize/bench.py [--mb 16] [--runs 5] [--threads 1 2] [--write NAME]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.tokenize.texts import CORPORA, write_texts

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULTS = HERE.parent / "results"
RIVAL = HERE / ".rivals" / "bin" / "python"
CONTESTANTS = (
    *("datapipe", "gigatoken", "tokenizers", "datapipe, huggingface", "tiktoken"),
    "datatrove",
)
SLOW = ("tokenizers", "datapipe, huggingface", "datatrove")
PAIRS = (("datapipe", "gigatoken"), ("datapipe, huggingface", "tokenizers"))
"""Ours and the library that does the work, side by side in one process."""
FEW_MB = 1
"""Text for a pair that encodes some MB a second."""
IN_RIVALS = ("tiktoken", "datatrove")


def main() -> None:
    options = _arguments()
    data = Path(options.data)
    folder = data / "tokenizers" / "hf"
    if not folder.is_dir():
        print(f"skipped: there is no {folder}; name another place with --data")
        return
    if not RIVAL.exists():
        subprocess.run([str(HERE / "setup_rivals.sh"), sys.executable], check=True)
    rows: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="datapipe-bench-") as scratch:
        for corpus in CORPORA:
            path = Path(scratch) / f"{corpus}.arrow"
            size = write_texts(corpus, data, options.mb, path)
            few = Path(scratch) / f"{corpus}-few.arrow"
            write_texts(corpus, data, min(options.mb, FEW_MB), few)
            for name in options.tokenizers:
                for threads in options.threads:
                    pairs += _pairs(name, corpus, folder / name, (path, few), threads, options.runs)
                    if not options.pairs_only:
                        rows += _measure(name, corpus, data, path, size, threads, options.runs)
    result = {
        "question": "How fast are texts encoded, and are the ids the same?",
        "command": "python -m benchmarks.tokenize.bench " + " ".join(sys.argv[1:]),
        "machine": {"cores": os.cpu_count(), "load": os.getloadavg()},
        "versions": {"python": platform.python_version()}
        | {name: metadata.version(name) for name in ("gigatoken", "tokenizers", "pyarrow")},
        "pairs": pairs,
        "rows": rows,
    }
    print(as_markdown(result))
    if options.write:
        (RESULTS / f"{options.write}.json").write_text(json.dumps(result, indent=2) + "\n")
        (RESULTS / f"{options.write}.md").write_text(as_markdown(result))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, default=16, help="text of each corpus, MB")
    parser.add_argument("--runs", type=int, default=5, help="passes of the fast libraries")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--tokenizers", nargs="+", default=["gpt2", "llama3", "qwen3", "deepseek_v3"]
    )
    parser.add_argument("--pairs-only", action="store_true", help="the first table alone")
    parser.add_argument("--data", default=str(ROOT.parent / "shared" / "data"))
    parser.add_argument("--write", help="name of the result files")
    return parser.parse_args()


def _pairs(
    name: str, corpus: str, tokenizer: Path, texts: tuple[Path, Path], threads: int, runs: int
) -> list[dict[str, Any]]:
    """Returns the median ratios of speed, ours to theirs, of passes right after each other."""
    rows = []
    for ours, theirs in PAIRS:
        times = 3 if theirs in SLOW else 3 * runs
        command = [sys.executable, str(HERE / "worker.py"), f"{ours}+{theirs}", str(tokenizer)]
        done = subprocess.run(
            [*command, str(texts[theirs in SLOW]), str(times), str(threads)],
            check=True,
            capture_output=True,
            text=True,
        )
        found = json.loads(done.stdout)
        ratios = {
            clock: statistics.median(b / a for a, b in zip(*found[clock], strict=True))
            for clock in ("wall", "cpu")
        }
        rows.append(
            {
                "tokenizer": name,
                "corpus": corpus,
                "threads": threads,
                "pair": f"{ours} / {theirs}",
                "passes": times,
                **ratios,
            }
        )
        print(f"{name}, {corpus}, {threads} threads, {ours} / {theirs}: {ratios}", flush=True)
    return rows


def _measure(
    name: str, corpus: str, data: Path, texts: Path, size: int, threads: int, runs: int
) -> list[dict[str, Any]]:
    rows = []
    for contestant in CONTESTANTS:
        if contestant == "tiktoken" and name != "gpt2":
            continue
        python, tokenizer = sys.executable, data / "tokenizers" / "hf" / name
        if contestant in IN_RIVALS:
            python = str(RIVAL)
        if contestant == "tiktoken":
            tokenizer = data / "tokenizers" / "tiktoken"
        times = 1 if contestant in SLOW else runs
        command = [python, str(HERE / "worker.py"), contestant, str(tokenizer), str(texts)]
        done = subprocess.run(
            [*command, str(times), str(threads)], check=True, capture_output=True, text=True
        )
        found = json.loads(done.stdout)
        seconds = found.pop("seconds")
        rows.append(
            {
                "tokenizer": name,
                "corpus": corpus,
                "threads": threads,
                "contestant": contestant,
                "mb": size / 1e6,
                "first_mb_s": size / 1e6 / seconds[0],
                "again_mb_s": size / 1e6 / statistics.median(seconds[1:] or seconds),
                **found,
            }
        )
        print(
            f"{name}, {corpus}, {threads} threads, {contestant}: {rows[-1]['again_mb_s']:.1f} MB/s"
        )
    return rows


def as_markdown(result: dict[str, Any]) -> str:
    """Returns the page."""
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    load = ", ".join(f"{value:.1f}" for value in result["machine"]["load"])
    lines = [
        f"# {result['question']}",
        "",
        f"`{result['command']}` on {result['machine']['cores']} cores (load average {load} at the "
        f"end). {versions}.",
        "",
        "## Side by side in one process",
        "",
        "Speed of ours over that of the library alone: median over passes of the whole column,",
        "the two taking turns; by wall time and by CPU time of the process.",
        "",
        "| tokenizer | text | threads | | passes | wall | CPU |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {row['tokenizer']} | {row['corpus']} | {row['threads']} | {row['pair']} "
            f"| {row['passes']} | {row['wall']:.2f} | {row['cpu']:.2f} |"
            for row in result["pairs"]
        ),
        "",
        *_medians(result["pairs"]),
        "",
    ]
    return "\n".join(lines + (_table(result["rows"]) if result["rows"] else []))


def _medians(pairs: list[dict[str, Any]]) -> list[str]:
    lines = []
    for pair in dict.fromkeys(row["pair"] for row in pairs):
        rows = [row for row in pairs if row["pair"] == pair]
        wall, cpu = (statistics.median(row[clock] for row in rows) for clock in ("wall", "cpu"))
        lines.append(f"- {pair}, median of all rows: {wall:.2f} by wall time, {cpu:.2f} by CPU")
    return lines


def _table(rows_of_all: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## Each in a process of its own",
        "",
        "| tokenizer | text | threads | | first MB/s | again MB/s | x tokenizers | memory MB "
        "| same ids |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in rows_of_all:
        groups.setdefault((row["tokenizer"], row["corpus"], row["threads"]), []).append(row)
    for key, rows in groups.items():
        reference = next(row for row in rows if row["contestant"] == "tokenizers")
        for row in rows:
            ratio = row["again_mb_s"] / reference["again_mb_s"]
            same = "yes" if row["digest"] == reference["digest"] else "**no**"
            lines.append(
                f"| {' | '.join(map(str, key))} | {row['contestant']} | {row['first_mb_s']:.1f} "
                f"| {row['again_mb_s']:.1f} | {ratio:.1f} | {row['grown_mb']:.0f} | {same} |"
            )
    return [*lines, ""]


if __name__ == "__main__":
    main()
