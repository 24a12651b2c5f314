"""A whole version: the log, the manifest, the tables, the tokenizer, and every shard."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from datapipe.dataset import layout
from datapipe.dataset.log import find_newest_number
from datapipe.dataset.objects import to_repair
from datapipe.dataset.reader import Dataset
from datapipe.dataset.repository import (
    OpenCheck,
    Repository,
    find_repository,
    rollback_check,
)
from datapipe.dataset.verify.chain import check_chain
from datapipe.dataset.verify.indexes import check_indexes
from datapipe.dataset.verify.origin import Origin
from datapipe.dataset.verify.references import check_references
from datapipe.dataset.verify.report import Findings, Repaired, VerifyReport
from datapipe.dataset.verify.runs import check_runs
from datapipe.dataset.verify.shards import Shard, check_shard, shard_at
from datapipe.dataset.verify.signatures import check_signatures
from datapipe.dataset.verify.tables import check_manifest, check_tables, check_tokenizer
from datapipe.dataset.witnesses import check_log
from datapipe.errors import DamagedError, UnknownReferenceError
from datapipe.observe import NO_PROGRESS, Progress

__all__ = ["verify_dataset", "verify_reference"]

_SHARDS_AT_ONCE = 256


def verify_dataset(
    dataset: Dataset,
    *,
    sample: float = 1.0,
    origin: Origin | None = None,
    progress: Progress = NO_PROGRESS,
    workers: int | None = None,
) -> VerifyReport:
    """Checks everything that a version consists of; reports damage and doesn't raise for it.

    Tags, holds, signatures and run records are of the whole dataset: checked with any version.

    Args:
        dataset: the version.
        sample: fraction of the shards whose tokens and docmaps are read, 0..1, chosen by digest;
            everything else is always checked.
        origin: another copy, from which damaged and missing objects are restored; None: they are
            only named.
        progress: hears of bytes of shards.
        workers: threads; default: one a processor. Hashing runs outside Python's lock.

    Raises:
        ValueError: `sample` isn't a fraction.
        SpaceError, DatasetError: a restored object can't be written.
    """
    if not 0.0 <= sample <= 1.0:
        raise ValueError(f"sample is {sample}; nothing was verified; give a fraction, 0 to 1")
    findings = Findings(store=dataset.repository.store, origin=origin)
    check_chain(findings, version=dataset.version, manifest=dataset.manifest_sha256)
    check_tables(findings, dataset)  # before all that is read through them
    check_manifest(findings, dataset)
    check_tokenizer(findings, dataset)
    check_indexes(findings, dataset)
    check_references(findings)
    check_signatures(findings)
    check_runs(findings, dataset.repository)
    with findings.attempt(layout.manifest_path(dataset.manifest_sha256)):
        _check_shards(findings, dataset, sample=sample, progress=progress, workers=workers)
    return _report(findings)


def verify_reference(
    ref: str,
    *,
    repair_from: str | None = None,
    sample: float = 1.0,
    accept_rollback: bool = False,
    on_open: Callable[[Dataset], object] = lambda _: None,
    progress: Progress = NO_PROGRESS,
    workers: int | None = None,
) -> tuple[Dataset, VerifyReport]:
    """Opens and verifies a version, even one whose log or manifest is damaged.

    Args:
        ref: "URL" or "URL@VERSION".
        repair_from: URL of another copy of the dataset's objects, from which damaged and missing
            ones are restored; None: they are only named.
        accept_rollback: as in `open_dataset`.
        on_open: called with the version before it is verified; raises to refuse it.
        sample, progress, workers: as in `verify_dataset`.

    Raises:
        UnknownReferenceError: no dataset or version is there, or no store is known for a URL.
        UsageError: the copy is the dataset itself.
        RollbackError: versions that this user saw before are gone.
        DamagedError: what opening needs is damaged and wasn't restored.
        SpaceError, DatasetError: a restored object can't be written.
    """
    repository, version = find_repository(ref)
    origin = None if repair_from is None else Origin.at(repair_from, dataset=repository.url)
    check = rollback_check(repository, accept=accept_rollback)
    dataset, repaired = _open(repository, version, origin=origin, check=check)
    on_open(dataset)
    report = verify_dataset(
        dataset, sample=sample, origin=origin, progress=progress, workers=workers
    )
    return dataset, replace(report, repaired=repaired + report.repaired)


def _open(
    repository: Repository, version: str | None, *, origin: Origin | None, check: OpenCheck
) -> tuple[Dataset, list[Repaired]]:
    """Returns the version, and what had to be repaired to open it."""
    try:
        return repository.open(version, check=check), []
    except UnknownReferenceError:
        check_log(repository)  # lost entries are no missing version
        raise
    except DamagedError:
        findings = Findings(store=repository.store, origin=origin)
        check_chain(findings, version=find_newest_number(repository.store))
    try:
        return repository.open(version, check=check), findings.repaired
    except DamagedError as error:
        problems = "; ".join(findings.problems) or str(error)
        raise DamagedError(
            f"{repository.url} can't be opened: {problems}; {to_repair(repository.url)}"
        ) from error


def _report(findings: Findings) -> VerifyReport:
    return VerifyReport(
        objects=findings.objects,
        bytes=findings.num_bytes,
        problems=list(dict.fromkeys(findings.problems)),
        repaired=findings.repaired,
    )


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
            results = threads.map(lambda shard: check_shard(findings.fresh(), shard), batch)
            for shard, found in zip(batch, results, strict=True):
                findings.merge(found)
                progress.advance(shard.stored_bytes)
    progress.end()


def _jobs(dataset: Dataset, sample: float) -> Iterator[Shard]:
    for source in dataset.sources:
        table, details = dataset.shards(source.name), dataset.details(source.name)
        for number in range(len(table)):
            # Equal digests are chosen together, in every version that holds them.
            if int(table.raw_sha256[number][:12], 16) < sample * (1 << 48):
                yield shard_at(dataset, details, source.name, number)
