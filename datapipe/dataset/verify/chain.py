"""The log and the manifests that it names: hashes, numbers and order from version 1 on."""

from __future__ import annotations

import contextlib

import msgspec

from datapipe.dataset import layout
from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.log import LogEntry, decode_entry, list_versions, read_hint
from datapipe.dataset.manifest import decode_manifest
from datapipe.dataset.objects import get_json
from datapipe.dataset.repository import read_format
from datapipe.dataset.verify.report import Findings
from datapipe.errors import DatasetError
from tiering.errors import ObjectNotFoundError, StoreError

__all__ = ["check_chain"]


_Entries = dict[int, LogEntry]


def check_chain(findings: Findings, *, version: int, manifest: str | None = None) -> None:
    """Checks format.json, HINT, and each entry and manifest up to a version.

    Every entry but the newest is named by digest in the one behind it, so entries are read from
    the newest down.

    Args:
        findings: where problems go.
        version: the last one to look at.
        manifest: digest of its manifest; None: whatever its entry says.
    """
    identity = _check_format(findings)
    _check_numbers(findings)
    entries: _Entries = {}
    expected = _named_behind(findings, version, identity=identity)
    for number in range(version, 0, -1):
        entry = _check_entry(findings, number, identity=identity, sha256=expected)
        if entry is not None:
            entries[number] = entry
        expected = entry.previous_sha256 if entry is not None else None
    _check_manifests(findings, entries, version=version, manifest=manifest)


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
        data = findings.store.get_range(layout.HINT_PATH, 0, 32)
        if not data.isdigit():
            findings.add(layout.HINT_PATH, f"it holds {data[:32]!r}, a number expected")


def _named_behind(findings: Findings, version: int, *, identity: str | None) -> str | None:
    """Returns the digest by which the entry behind a version names it; None: nothing tells."""
    path = layout.entry_path(version + 1)
    try:
        entry = decode_entry(get_json(findings.store, path), path=path)
    except (StoreError, DatasetError):  # of a later version, which isn't what is looked at
        return None
    return entry.previous_sha256 if entry.dataset == identity else None


def _check_entry(
    findings: Findings, version: int, *, identity: str | None, sha256: str | None
) -> LogEntry | None:
    path = layout.entry_path(version)
    data = findings.read(path, sha256)
    if data is None:
        return None
    with findings.attempt(path):
        entry = decode_entry(data, path=path)
        _check_canonical(findings, path, data)
        if identity is not None:
            findings.expect(path, "the dataset's id", expected=identity, found=entry.dataset)
        if (entry.previous_sha256 is None) != (version == 1):
            findings.add(path, f"the hash of the entry before is {entry.previous_sha256}")
        return entry
    return None


def _check_manifests(
    findings: Findings, entries: _Entries, *, version: int, manifest: str | None
) -> None:
    """Checks manifests from the newest down: a child names its parent even if an entry is lost."""
    named = manifest
    for number in range(version, 0, -1):
        entry = entries.get(number)
        if entry is not None and named is not None:
            path = layout.entry_path(number)
            findings.expect(path, "the manifest it names", expected=named, found=entry.manifest)
        sha256 = named or (entry.manifest if entry else None)
        parents = _check_manifest(findings, sha256) if sha256 else None
        named = parents[0] if parents else None
        if sha256 and parents is not None and len(parents) != (number > 1):
            path = layout.manifest_path(sha256)
            findings.add(path, f"it has {len(parents)} parents, {int(number > 1)} expected")


def _check_manifest(findings: Findings, sha256: str) -> tuple[str, ...] | None:
    """Returns the parents that a manifest names, None where it is damaged."""
    path = layout.manifest_path(sha256)
    data = findings.read(path, sha256)
    if data is None:
        return None
    with findings.attempt(path):
        _check_canonical(findings, path, data)
        return decode_manifest(data, path=path).parents
    return None


def _check_canonical(findings: Findings, path: str, data: bytes) -> None:
    if canonical_json(msgspec.json.decode(data)) != data:
        findings.add(path, "its JSON isn't canonical (RFC 8785)")
