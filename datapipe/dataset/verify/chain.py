"""The log and the manifests that it names: hashes, numbers and order from version 1 on."""

from __future__ import annotations

import contextlib

import msgspec

from datapipe.dataset import layout
from datapipe.dataset.hashing import canonical_json, sha256_hex
from datapipe.dataset.log import LogEntry, decode_entry, list_versions, read_hint
from datapipe.dataset.manifest import decode_manifest
from datapipe.dataset.reader import Dataset
from datapipe.dataset.repository import read_format
from datapipe.dataset.verify.report import Findings
from tiering.errors import ObjectNotFoundError

__all__ = ["check_chain"]


_Entries = dict[int, tuple[LogEntry, bytes]]


def check_chain(findings: Findings, dataset: Dataset) -> None:
    """Checks format.json, HINT, and each entry and manifest up to the dataset's version."""
    identity = _check_format(findings)
    _check_numbers(findings)
    entries: _Entries = {}
    for version in range(1, dataset.version + 1):
        found = _check_entry(findings, version, identity=identity)
        if found is not None:
            entries[version] = found
    for version in entries:
        _check_follows(findings, version, entries)
    _check_manifests(findings, dataset, entries)


def _check_format(findings: Findings) -> str | None:
    with findings.attempt(layout.FORMAT_PATH):
        found = read_format(findings.store)
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
    with findings.attempt(layout.HINT_PATH), contextlib.suppress(ObjectNotFoundError):
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


def _check_follows(findings: Findings, version: int, entries: _Entries) -> None:
    if version > 1 and version - 1 not in entries:
        return
    findings.expect(
        layout.entry_path(version),
        "the hash of the entry before",
        expected=sha256_hex(entries[version - 1][1]) if version > 1 else None,
        found=entries[version][0].previous_sha256,
    )


def _check_manifests(findings: Findings, dataset: Dataset, entries: _Entries) -> None:
    """Checks manifests from the newest down: a child names its parent even if an entry is lost."""
    named: str | None = dataset.manifest_sha256
    for version in range(dataset.version, 0, -1):
        entry = entries[version][0] if version in entries else None
        if entry is not None and named is not None:
            path = layout.entry_path(version)
            findings.expect(path, "the manifest it names", expected=named, found=entry.manifest)
        sha256 = named or (entry.manifest if entry else None)
        parents = _check_manifest(findings, sha256) if sha256 else None
        named = parents[0] if parents else None
        if sha256 and parents is not None and len(parents) != (version > 1):
            path = layout.manifest_path(sha256)
            findings.add(path, f"it has {len(parents)} parents, {int(version > 1)} expected")


def _check_manifest(findings: Findings, sha256: str) -> tuple[str, ...] | None:
    """Returns the parents that a manifest names, None where it is damaged."""
    path = layout.manifest_path(sha256)
    data = findings.read_checked(path, sha256)
    if data is None:
        return None
    with findings.attempt(path):
        _check_canonical(findings, path, data)
        return decode_manifest(data, path=path).parents
    return None


def _check_canonical(findings: Findings, path: str, data: bytes) -> None:
    if canonical_json(msgspec.json.decode(data)) != data:
        findings.add(path, "its JSON isn't canonical (RFC 8785)")
