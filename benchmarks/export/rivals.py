"""Megatron-core reading an export, and writing the same documents itself.

Runs in the environment that setup_rivals.sh makes and imports nothing of the project.

    rivals.py read LIST...            every document of every data file, through IndexedDataset
    rivals.py write LIST --out PREFIX  the documents again, through IndexedDatasetBuilder
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from megatron.core.datasets.indexed_dataset import (  # type: ignore[import-not-found]
    DType,
    IndexedDataset,
    IndexedDatasetBuilder,
)
from megatron.core.datasets.utils import get_blend_from_list  # type: ignore[import-not-found]


def prefixes(listing: str) -> list[str]:
    """Reads a list as `--data-args-path` does."""
    blend = get_blend_from_list(Path(listing).read_text().split())
    assert blend is not None
    names, weights = blend
    assert weights is not None
    assert len(weights) == len(names)
    return names


def documents(listing: str) -> Iterator[np.ndarray[Any, Any]]:
    for prefix in prefixes(listing):
        dataset = IndexedDataset(prefix)
        assert dataset.document_indices.tolist() == list(range(len(dataset) + 1))
        for number in range(len(dataset)):
            yield dataset[number]


def read(listings: list[str]) -> dict[str, Any]:
    found = {}
    for listing in listings:
        started, digest, count, tokens = time.perf_counter(), hashlib.sha256(), 0, 0
        for ids in documents(listing):
            digest.update(len(ids).to_bytes(8, "little"))
            digest.update(ids.astype("<i8").tobytes())
            count, tokens = count + 1, tokens + len(ids)
        found[listing] = {
            "documents": count,
            "tokens": tokens,
            "sha256": digest.hexdigest(),
            "seconds": time.perf_counter() - started,
        }
    return found


def write(listing: str, out: str) -> dict[str, Any]:
    dtype = IndexedDataset(prefixes(listing)[0]).index.dtype
    assert dtype in (DType.optimal_dtype(65_499), DType.optimal_dtype(None))
    # Copies: the reader unmaps its file when it goes, whoever still looks at it.
    tensors = [torch.from_numpy(ids.astype(np.int64)) for ids in documents(listing)]
    started = time.perf_counter()
    builder = IndexedDatasetBuilder(f"{out}.bin", dtype=dtype)
    for tensor in tensors:
        builder.add_document(tensor, [len(tensor)])
    builder.finalize(f"{out}.idx")
    return {"seconds": time.perf_counter() - started}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["read", "write"])
    parser.add_argument("listings", nargs="+")
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.what == "read":
        result: dict[str, Any] = read(options.listings)
    else:
        result = write(options.listings[0], options.out)
    versions = {name: version(name) for name in ("megatron-core", "torch", "numpy")}
    json.dump({"versions": versions, "result": result}, sys.stdout)


if __name__ == "__main__":
    main()
