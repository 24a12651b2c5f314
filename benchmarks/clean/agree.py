"""How often the profiles decide as the real tools do, on real text, and how fast each of them is.

Usage: python benchmarks/clean/agree.py [--documents N] [--data FOLDER] [--out FILE.json]
Both sides get the same texts, one core each; `rivals.py` runs the tools in their environments.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import subprocess
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import zstandard

from datapipe.documents import batch_from_columns
from datapipe.signals import PROFILES, rules_of
from datapipe.signals.measure import measure
from datapipe.signals.names import SIGNALS
from datapipe.signals.quality import Quality, QualityOptions

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPORA = {
    "c4": "jsonl/wimbd/test_fixtures/c4-sample.00000-of-00001.json.gz",
    "cc_en": "jsonl/dolma/tests/data/multiple_files/cc_en_head-0091.jsonl.gz",
    "books": "text/en_books.jsonl.zst",
    "kernel docs": "text/linux_doc_6.12.jsonl.zst",
    "manual pages": "text/manpages_multilang.jsonl.zst",
    "chinese poems": "text/zh_poetry.jsonl.zst",
}
DOLMA = {
    "word_count": "words",
    "median_word_length": "median_word_length",
    "symbol_to_word_ratio": "symbol_word_fraction",
    "fraction_of_words_with_alpha_character": "alpha_word_fraction",
    "required_word_count": "stop_words",
    "character_count": "chars",
    "fraction_of_lines_starting_with_bullet_point": "dolma_{}_bullet_line_fraction",
    "fraction_of_lines_ending_with_ellipsis": "dolma_{}_ellipsis_line_fraction",
    "fraction_of_duplicate_lines": "dolma_{}_dup_line_fraction",
    "fraction_of_characters_in_duplicate_lines": "dolma_{}_dup_line_char_fraction",
}
DOLMA |= {
    f"fraction_of_characters_in_most_common_{n}grams": f"dolma_top_{n}_gram_fraction"
    for n in (2, 3, 4)
}
DOLMA |= {
    f"fraction_of_characters_in_duplicate_{n}grams": f"dolma_dup_{n}_gram_fraction"
    for n in range(5, 11)
}


def read_texts(path: Path, documents: int) -> list[str]:
    """Returns about `documents` texts, evenly spread over the file."""
    with path.open("rb") as file:
        packed = zstandard.ZstdDecompressor().stream_reader(file)
        stream: Any = packed if path.suffix == ".zst" else gzip.GzipFile(fileobj=file)
        texts = [json.loads(line)["text"] for line in io.TextIOWrapper(stream, encoding="utf-8")]
    texts = [text for text in texts if text and len(text) < 200_000]
    return texts[:: max(1, len(texts) // documents)][:documents]


def run_tool(tool: str, texts: list[str]) -> dict[str, Any]:
    environment = ".rivals" if tool == "datatrove" else ".rivals-dolma"
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.json", Path(folder) / "out.json"
        source.write_text(json.dumps(texts))
        python = str(HERE / environment / "bin" / "python")
        command = [python, str(HERE / "rivals.py"), tool, str(source), str(target)]
        subprocess.run(command, check=True, capture_output=True)
        return json.loads(target.read_text())  # type: ignore[no-any-return]


def decided(texts: list[str], profile: str) -> tuple[list[str | None], dict[int, str]]:
    rows = list(range(len(texts)))
    batch = batch_from_columns(
        texts, source="s", source_file="f", offsets=rows, lengths=[1] * len(rows)
    )
    result = Quality(QualityOptions(profile=(profile,))).apply(batch)
    reasons: list[str | None] = [None] * len(rows)
    dropped = result.dropped
    for row, rule in zip(
        dropped["source_offset"].to_pylist(), dropped["rule"].to_pylist(), strict=True
    ):
        reasons[row] = rule.replace("empty_lines", "empty")
    kept = result.batch.to_pydict()
    return reasons, dict(zip(kept["source_offset"], kept["text"], strict=True))


def compare_datatrove(texts: list[str], found: dict[str, Any]) -> dict[str, Any]:
    rows = {}
    for profile in found["results"][0]:
        wanted = [result[profile] for result in found["results"]]
        reasons, kept = decided(texts, profile)
        pairs = list(zip(reasons, (want["reason"] for want in wanted), strict=True))
        rows[profile] = {
            "documents": len(texts),
            "kept": sum(1 for _, want in pairs if want is None),
            "same_decision": sum(1 for got, want in pairs if (got is None) == (want is None)),
            "same_reason": sum(1 for got, want in pairs if got == want),
            "same_text": sum(
                1 for i, want in enumerate(wanted) if want.get("text", kept.get(i)) == kept.get(i)
            ),
            "differing": Counter(f"{got} instead of {want}" for got, want in pairs if got != want),
        }
    return rows


def compare_dolma(texts: list[str], found: dict[str, Any]) -> dict[str, Any]:
    rows = {}
    for version in ("v1", "v2"):
        names = {tool: ours.format(version) for tool, ours in DOLMA.items()}
        signals = measure(pa.array(texts, pa.large_string()), names.values())
        theirs = {
            ours: np.array(
                [result[f"gopher_{version}"].get(tool, 0.0) for result in found["results"]]
            )
            for tool, ours in names.items()
        }
        profile = "gopher@dolma-1.2" if version == "v1" else "gopher-v2@dolma-1.2"
        same = np.ones(len(texts), dtype=bool)
        for rule in rules_of(PROFILES[profile]):
            same &= rule.failing(signals[rule.signal]) == rule.failing(theirs[rule.signal])
        rows[profile] = {
            "documents": len(texts),
            "same_decision": int(same.sum()),
            "largest_difference": float(
                max(np.abs(signals[name] - values).max() for name, values in theirs.items())
            ),
        }
    return rows


def speed(texts: list[str]) -> dict[str, float]:
    """Returns MB/s of CPU time for each profile's signals and all together, best of three."""
    column = pa.array(texts, pa.large_string())
    num_bytes = sum(len(text.encode()) for text in texts)
    found = {}
    wanted = {
        name: [rule.signal for rule in rules_of(filters)] for name, filters in PROFILES.items()
    }
    wanted["all signals"] = list(SIGNALS)
    rows = list(range(len(texts)))
    batch = batch_from_columns(texts, source="s", source_file="f", offsets=rows, lengths=rows)
    for name, signals in wanted.items():
        stage = None if name == "all signals" else Quality(QualityOptions(profile=(name,)))
        best = float("inf")
        for _ in range(4):
            start = time.process_time()
            if stage is None:
                measure(column, signals)
            else:
                stage.apply(batch)
            best = min(best, time.process_time() - start)
        found[name] = round(num_bytes / best / 1e6, 1)
    half = [column.slice(0, len(texts) // 2), column.slice(len(texts) // 2)]
    start = time.perf_counter()
    for part in half:
        measure(part, SIGNALS)
    alone = time.perf_counter() - start
    start = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda part: measure(part, SIGNALS), half))
    found["two threads as fast as one, times"] = round(alone / (time.perf_counter() - start), 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report: dict[str, Any] = {"corpora": {}, "cpus": os.cpu_count()}
    for name, path in CORPORA.items():
        if not (options.data / path).exists():
            continue
        texts = read_texts(options.data / path, options.documents)
        num_bytes = sum(len(text.encode()) for text in texts)
        trove, dolma = run_tool("datatrove", texts), run_tool("dolma", texts)
        report["versions"] = {**dolma["versions"], **trove["versions"]}
        rows = compare_datatrove(texts, trove) | compare_dolma(texts, dolma)
        for profile, seconds in trove["seconds"].items():
            rows[profile]["tool_mb_per_second"] = round(num_bytes / seconds / 1e6, 2)
        report["corpora"][name] = {
            "bytes": num_bytes,
            "profiles": rows,
            "dolma_mb_per_second": round(num_bytes / dolma["seconds"]["gopher_v1"] / 1e6, 2),
            "our_mb_per_second": speed(texts),
        }
        print(name, json.dumps(report["corpora"][name], indent=1), flush=True)
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
