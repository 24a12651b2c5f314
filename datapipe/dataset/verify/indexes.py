"""The indexes of a version: their bytes, their order, and that no table is left out."""

from __future__ import annotations

import numpy as np

from datapipe.dataset.index.covered import covered_by, missing
from datapipe.dataset.index.files import IndexReader
from datapipe.dataset.layout import INDEX_KINDS, index_path, manifest_path
from datapipe.dataset.manifest import IndexFile
from datapipe.dataset.objects import stream_sha256
from datapipe.dataset.reader import Dataset
from datapipe.dataset.verify.report import Findings
from tiering.errors import ObjectNotFoundError, StoreError

__all__ = ["check_indexes"]


def check_indexes(findings: Findings, dataset: Dataset) -> None:
    """Checks every file of every known index; a file may be larger than memory."""
    manifest = dataset.manifest
    for kind in INDEX_KINDS:
        files = manifest.indexes.get(kind)
        if files is None:
            continue
        for file in files:
            path = index_path(kind, file.sha256)
            with findings.attempt(path):
                if _has_its_bytes(findings, path, file):
                    _check_entries(findings, path, file)
        gap = missing(manifest, files)
        if gap.num_tables:
            findings.add(
                manifest_path(dataset.manifest_sha256),
                f"its index {kind} leaves out {gap.num_tables} tables, the first is "
                f"{next(gap.names())}",
            )


def _has_its_bytes(findings: Findings, path: str, file: IndexFile) -> bool:
    """Returns whether it has, after a repair if need be; notes the problem."""
    problem = _problem(findings, path, file)
    if problem and findings.restore(path, file.sha256, problem=problem):
        problem = _problem(findings, path, file)
        if problem:
            findings.add(path, f"{problem}, although it was just fetched from the copy")
    return not problem


def _problem(findings: Findings, path: str, file: IndexFile) -> str:
    try:
        with findings.store.open(path) as view:
            sha256, size = stream_sha256(view)
    except ObjectNotFoundError:
        return "it is missing"
    except StoreError as error:
        return f"it can't be read: {error}"
    findings.objects += 1
    findings.num_bytes += size
    if sha256 == file.sha256:
        return ""
    return f"SHA-256 {file.sha256} expected, {sha256} read ({size} bytes)"


def _check_entries(findings: Findings, path: str, file: IndexFile) -> None:
    size = findings.store.head(path).size
    findings.expect(path, "its size in bytes", expected=file.bytes, found=size)
    reader = IndexReader(findings.store, path)
    rows, before = 0, (-1, -1)
    num_tables = covered_by(file).num_tables
    try:
        for block in reader.blocks():
            rows += len(block)
            follows = (block.hash[1:] > block.hash[:-1]) | (
                (block.hash[1:] == block.hash[:-1]) & (block.place[1:] > block.place[:-1])
            )
            first = int(block.hash[0]), int(block.place[0])
            if first <= before or not follows.all():
                findings.add(path, "its rows aren't sorted")
                return
            if int(np.max(block.table)) >= num_tables:
                findings.add(path, f"it names table {int(np.max(block.table))} of {num_tables}")
                return
            before = int(block.hash[-1]), int(block.place[-1])
    finally:
        reader.close()
    findings.expect(path, "its number of rows", expected=file.rows, found=rows)
