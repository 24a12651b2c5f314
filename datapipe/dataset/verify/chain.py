"""The log and the manifests that it names: hashes, numbers and order from version 1 on."""

from __future__ import annotations

import msgspec

from datapipe.dataset import layout
from datapipe.dataset.hashing import canonical_json, sha256_hex
from datapipe.dataset.log import LogEntry, decode_entry, list_versions, read_hint
from datapipe.dataset.manifest import decode_manifest
from datapipe.dataset.reader import Dataset
from datapipe.dataset.repository import read_format
from datapipe.dataset.verify.report import Findings

__all__ = ["check_chain"]


def check_chain(findings: Findings, dataset: Dataset) -> None:
    """Checks format.json, HINT, and each entry and manifest up to the dataset's version."""
    identity = _check_format(findings, dataset)
    _check_numbers(findings)
    previous: tuple[LogEntry, bytes] | None = None
    for version in range(1, dataset.version + 1):
        found = _check_entry(findings, version, identity=identity)
        if found is not None:
            _check_follows(findings, found[0], previous, has_previous=version > 1)
            _check_manifest(findings, found[0], previous)
        previous = found
    if previous is not None:
        findings.expect(
            layout.entry_path(dataset.version),
            "the manifest it names",
            expected=dataset.manifest_sha256,
            found=previous[0].manifest,
        )


def _check_format(findings: Findings, dataset: Dataset) -> str | None:
    with findings.attempt(layout.FORMAT_PATH):
        found = read_format(dataset.repository)
        findings.objects += 1
        return found.id
    return None


def _check_numbers(findings: Findings) -> None:
    with findings.attempt(layout.LOG_PREFIX):
        last = len(list_versions(findings.store))
        hint = read_hint(findings.store)
        if hint is not None and hint > last:
            findings.add(
                layout.HINT_PATH,
                f"it names version {hint}, the log ends at {last}: entries were lost",
            )
    with findings.attempt(layout.HINT_PATH):
        data = findings.store.get(layout.HINT_PATH)
        if not data.isdigit():
            findings.add(layout.HINT_PATH, f"it holds {data[:32]!r}, a number expected")


def _check_entry(
    findings: Findings, version: int, *, identity: str | None
) -> tuple[LogEntry, bytes] | None:
    path = layout.entry_path(version)
    data = findings.read(path)
    if data is None:
        return None
    with findings.attempt(path):
        entry = decode_entry(data, path=path)
        _check_canonical(findings, path, data)
        if identity is not None:
            findings.expect(path, "the dataset's id", expected=identity, found=entry.dataset)
        return entry, data
    return None


def _check_follows(
    findings: Findings,
    entry: LogEntry,
    previous: tuple[LogEntry, bytes] | None,
    *,
    has_previous: bool,
) -> None:
    path = layout.entry_path(entry.version)
    if previous is not None or not has_previous:
        expected = sha256_hex(previous[1]) if previous else None
        findings.expect(
            path, "the hash of the entry before", expected=expected, found=entry.previous_sha256
        )


def _check_manifest(
    findings: Findings, entry: LogEntry, previous: tuple[LogEntry, bytes] | None
) -> None:
    path = layout.manifest_path(entry.manifest)
    data = findings.read_checked(path, entry.manifest)
    if data is None:
        return
    with findings.attempt(path):
        manifest = decode_manifest(data, path=path)
        _check_canonical(findings, path, data)
        if previous is not None or entry.version == 1:
            expected = (previous[0].manifest,) if previous else ()
            findings.expect(path, "its parent", expected=expected, found=manifest.parents)


def _check_canonical(findings: Findings, path: str, data: bytes) -> None:
    if canonical_json(msgspec.json.decode(data)) != data:
        findings.add(path, "its JSON isn't canonical (RFC 8785)")
