"""A whole version: the log, the manifest, the tables, the tokenizer, and every shard."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from datapipe.dataset import layout
from datapipe.dataset.reader import Dataset
from datapipe.dataset.verify.chain import check_chain
from datapipe.dataset.verify.report import Findings, VerifyReport
from datapipe.dataset.verify.runs import check_references, check_runs
from datapipe.dataset.verify.shards import check_shard
from datapipe.dataset.verify.tables import check_manifest, check_tables, check_tokenizer
from datapipe.observe import NO_PROGRESS, Progress

__all__ = ["verify_dataset"]

_SHARDS_AT_ONCE = 256

_Job = tuple[str, int, str]


def verify_dataset(
    dataset: Dataset,
    *,
    sample: float = 1.0,
    progress: Progress = NO_PROGRESS,
    workers: int | None = None,
) -> VerifyReport:
    """Checks everything that a version consists of; reports damage and doesn't raise for it.

    Tags, holds and run records are of the whole dataset, and are checked with any version.

    Args:
        dataset: the version.
        sample: fraction of the shards whose tokens and docmaps are read, 0..1, chosen by digest;
            everything else is always checked.
        progress: hears of bytes of shards.
        workers: threads; default: one a processor. Hashing runs outside Python's lock.

    Raises:
        ValueError: `sample` isn't a fraction.
    """
    if not 0.0 <= sample <= 1.0:
        raise ValueError(f"sample is {sample}; nothing was verified; give a fraction, 0 to 1")
    findings = Findings(store=dataset.repository.store)
    check_chain(findings, dataset)
    check_manifest(findings, dataset)
    check_tables(findings, dataset)
    check_tokenizer(findings, dataset)
    check_references(findings)
    check_runs(findings, dataset.repository)
    path = layout.manifest_path(dataset.manifest_sha256)
    with findings.attempt(path):
        _check_shards(findings, dataset, sample=sample, progress=progress, workers=workers)
    problems = list(dict.fromkeys(findings.problems))
    return VerifyReport(objects=findings.objects, bytes=findings.num_bytes, problems=problems)


def _check_shards(
    findings: Findings,
    dataset: Dataset,
    *,
    sample: float,
    progress: Progress,
    workers: int | None,
) -> None:
    total = sum(int(dataset.shards(s.name).stored_bytes.sum()) for s in dataset.sources)
    progress.begin("verify", round(total * sample), "bytes")
    jobs = _jobs(dataset, sample)
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as threads:
        while batch := list(itertools.islice(jobs, _SHARDS_AT_ONCE)):
            results = threads.map(lambda job: check_shard(dataset, *job), batch)
            for (source, number, _), found in zip(batch, results, strict=True):
                findings.merge(found)
                progress.advance(int(dataset.shards(source).stored_bytes[number]))
    progress.end()


def _jobs(dataset: Dataset, sample: float) -> Iterator[_Job]:
    for source in dataset.sources:
        table = dataset.shards(source.name)
        logical = dataset.details(source.name).docmap_logical_sha256
        for number in range(len(table)):
            # Equal digests are chosen together, in every version that holds them.
            if int(table.raw_sha256[number][:12], 16) < sample * (1 << 48):
                yield source.name, number, logical[number]
