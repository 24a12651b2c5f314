"""What stands beside the versions: the records of runs, and the tags, holds and retired versions.

They belong to the dataset as a whole, so all of them are checked whatever version is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.keep import list_holds
from datapipe.dataset.layout import HOLDS_PREFIX, RETIRED_PATH, TAGS_PREFIX, tag_path
from datapipe.dataset.log import read_entry
from datapipe.dataset.repository import Repository
from datapipe.dataset.retired import read_retired
from datapipe.dataset.run_records import RunSegment, decode_record
from datapipe.dataset.runs import RUNS_PREFIX, RunStore, record_kind
from datapipe.dataset.tags import read_tag
from datapipe.dataset.verify.report import Findings
from datapipe.errors import DatapipeError
from tiering.errors import StoreError

__all__ = ["check_references", "check_runs"]

_SPECS_PREFIX = f"{RUNS_PREFIX}_specs/"


def check_runs(findings: Findings, repository: Repository) -> None:
    """Checks every run record in the dataset: its seal and types, and that nothing is missing."""
    paths = list(_paths(findings, RUNS_PREFIX))
    specs = {_stem(path) for path in paths if path.startswith(_SPECS_PREFIX)}
    for path in paths:
        if path.startswith(_SPECS_PREFIX):
            findings.read(path, _stem(path))
        else:
            _check_record(findings, path, specs=specs)
    _check_numbers(findings, repository)


def check_references(findings: Findings) -> None:
    """Checks that tags, holds and the list of retired versions can be read and name versions."""
    for path in _paths(findings, TAGS_PREFIX):
        with findings.attempt(path):
            _check_tag(findings, _stem(path))
    holds = list(_paths(findings, HOLDS_PREFIX))
    with findings.attempt(HOLDS_PREFIX):
        list_holds(findings.store)
        findings.objects += len(holds)
    with findings.attempt(RETIRED_PATH):
        read_retired(findings.store)


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


def _check_tag(findings: Findings, name: str) -> None:
    tag = read_tag(findings.store, name)
    findings.objects += 1
    if tag is None or tag.version is None:
        return
    entry, _ = read_entry(findings.store, tag.version)
    findings.expect(
        tag_path(name),
        f"the manifest of version {tag.version}",
        expected=entry.manifest,
        found=tag.manifest,
    )


def _paths(findings: Findings, prefix: str) -> Iterator[str]:
    try:
        yield from [info.path for info in findings.store.list(prefix)]
    except (StoreError, DatapipeError) as error:
        findings.add(prefix, f"it can't be listed: {error}")


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".json")
