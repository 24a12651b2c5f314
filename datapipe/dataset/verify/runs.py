"""The records of runs, which belong to the dataset as a whole: checked with any version."""

from __future__ import annotations

import msgspec

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.repository import Repository
from datapipe.dataset.run_records import RunSegment, decode_record
from datapipe.dataset.runs import RUNS_PREFIX, RunStore, record_kind
from datapipe.dataset.verify.report import Findings

__all__ = ["check_runs"]

_SPECS_PREFIX = f"{RUNS_PREFIX}_specs/"


def check_runs(findings: Findings, repository: Repository) -> None:
    """Checks every run record in the dataset: its seal and types, and that nothing is missing."""
    paths = list(findings.paths(RUNS_PREFIX))
    specs = {_stem(path) for path in paths if path.startswith(_SPECS_PREFIX)}
    for path in paths:
        if path.startswith(_SPECS_PREFIX):
            findings.read(path, _stem(path))
        else:
            _check_record(findings, path, specs=specs)
    _check_numbers(findings, repository)


def _check_record(findings: Findings, path: str, *, specs: set[str]) -> None:
    kind = record_kind(path.removeprefix(RUNS_PREFIX).partition("/")[2])
    if kind is None:
        return
    data = findings.read(path, None)
    if data is None:
        return
    with findings.attempt(path):
        record = decode_record(data, kind, path=path)
        if canonical_json(msgspec.json.decode(data)) != data:
            findings.add(path, "its JSON isn't canonical (RFC 8785)")
        if isinstance(record, RunSegment) and record.spec not in specs:
            # the run may have begun after the listing
            findings.read(f"{_SPECS_PREFIX}{record.spec}.json", record.spec)


def _check_numbers(findings: Findings, repository: Repository) -> None:
    store = RunStore.of(repository)
    with findings.attempt(RUNS_PREFIX):
        for run in store.runs():
            with findings.attempt(f"{RUNS_PREFIX}{run}"):
                store.check_numbers(run)


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".json")
