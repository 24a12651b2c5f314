"""MB/s of the stages that look for something in texts."""

from __future__ import annotations

import argparse
import gzip
import io
import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import zstandard

from datapipe.documents import Stage, batch_from_columns
from datapipe.engine.stages import document_stage

KINDS = ("email", "ipv4", "ipv6", "phone", "iban", "card", "secrets")
STAGES: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        f"pii: {kind}": ("pii", {k: "mask" if k == kind else "keep" for k in KINDS})
        for kind in KINDS
    },
    "pii: all": ("pii", dict.fromkeys(KINDS, "tag")),
    "duplicate_lines": ("duplicate_lines", {}),
    "duplicate_paragraphs": ("duplicate_paragraphs", {}),
    "c4_lines": ("c4_lines", {}),
    "refinedweb_lines": ("refinedweb_lines", {}),
    "line_rules": ("line_rules", {}),
    "normalize, all options": (
        "normalize",
        {"zero_width": "strip", "line_ends": "all", "trailing_spaces": "strip"},
    ),
    "fix_text": ("fix_text", {}),
    "language": ("language", {"keep": ["en"]}),
}


def texts_of(path: Path, most: int) -> list[str]:
    opened = {".zst": zstandard.open, ".gz": gzip.open}.get(path.suffix, open)
    texts: list[str] = []
    size = 0
    with opened(path, "rb") as packed:
        for line in io.BufferedReader(packed):
            texts.append(json.loads(line)["text"])
            size += len(texts[-1])
            if size > most:
                break
    return texts


def best(stage: Stage, batch: pa.RecordBatch, runs: int = 3) -> float:
    times = []
    for _ in range(runs):
        start = time.process_time()
        for first in range(0, batch.num_rows, 1000):
            stage.apply(batch.slice(first, 1000))
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--bytes", type=int, default=20_000_000)
    options = parser.parse_args()
    for path in options.files:
        texts = texts_of(path, options.bytes)
        rows = len(texts)
        batch = batch_from_columns(
            texts, source="s", source_file="f", offsets=range(rows), lengths=[1] * rows
        )
        size = sum(len(text.encode()) for text in texts) / 1e6
        print(f"{path.name}: {rows:,} documents, {size:.1f} MB")
        for title, (name, given) in STAGES.items():
            stage = document_stage(name, given)
            print(f"  {title}: {size / best(stage, batch):,.0f} MB/s")
        found = document_stage("pii", dict.fromkeys(KINDS, "tag")).apply(batch).signals
        assert found is not None
        counts = {kind: sum(found.column(f"pii.{kind}").to_pylist()) for kind in KINDS}
        print(f"  found: {counts}")


if __name__ == "__main__":
    main()
