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
    rows = []
    with tempfile.TemporaryDirectory(prefix="datapipe-bench-") as scratch:
        for corpus in CORPORA:
            path = Path(scratch) / f"{corpus}.arrow"
            size = write_texts(corpus, data, options.mb, path)
            for name in options.tokenizers:
                for threads in options.threads:
                    rows += _measure(name, corpus, data, path, size, threads, options.runs)
    result = {
        "question": "How fast are texts encoded, and are the ids the same?",
        "command": "python benchmarks/tokenize/bench.py " + " ".join(sys.argv[1:]),
        "machine": {"cores": os.cpu_count(), "load": os.getloadavg()},
        "versions": {"python": platform.python_version()}
        | {name: metadata.version(name) for name in ("gigatoken", "tokenizers", "pyarrow")},
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
    parser.add_argument("--data", default=str(ROOT.parent / "shared" / "data"))
    parser.add_argument("--write", help="name of the result files")
    return parser.parse_args()


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
        "| tokenizer | text | threads | | first MB/s | again MB/s | x tokenizers | memory MB "
        "| same ids |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in result["rows"]:
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
    own = _ratios(groups, "datapipe", "gigatoken")
    fallback = _ratios(groups, "datapipe, huggingface", "tokenizers")
    lines += [
        "",
        f"Medians over the rows: datapipe has {statistics.median(own):.2f} of the speed of "
        f"gigatoken called directly, its fallback {statistics.median(fallback):.2f} of that of "
        "tokenizers.",
        "",
    ]
    return "\n".join(lines)


def _ratios(
    groups: dict[tuple[str, str, int], list[dict[str, Any]]], ours: str, theirs: str
) -> list[float]:
    speeds = [{row["contestant"]: row["again_mb_s"] for row in rows} for rows in groups.values()]
    return [each[ours] / each[theirs] for each in speeds]


if __name__ == "__main__":
    main()
