"""Signatures, as far as it goes without a key: whose each says that it is, and of what.

Whether a key made them is for `check_signature`; which there must be stands in the register.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from datapipe.dataset.layout import SIGNATURES_PREFIX, entry_path, manifest_path, signature_names
from datapipe.dataset.log import LogEntry, read_entry
from datapipe.dataset.manifest import decode_manifest
from datapipe.dataset.objects import read_object
from datapipe.dataset.signing.envelope import MOST_BYTES, read_envelope
from datapipe.dataset.signing.statement import describe_version, find_difference
from datapipe.dataset.verify.report import Findings
from tiering.errors import ObjectNotFoundError

__all__ = ["check_signatures"]


class _Predicate(msgspec.Struct, frozen=True, kw_only=True):
    version: Annotated[int, msgspec.Meta(ge=1)]


class _Statement(msgspec.Struct, frozen=True, kw_only=True):
    predicate: _Predicate


def check_signatures(findings: Findings) -> None:
    """Checks that every signature is an envelope by the key, and of the version, of its name."""
    for path in findings.paths(SIGNATURES_PREFIX):
        with findings.attempt(path):
            problem = _problem(findings, path)
            if problem:
                findings.add(path, problem)


def _problem(findings: Findings, path: str) -> str | None:
    """Returns what is wrong with a signature. Raises: ValueError likewise, DamagedError."""
    names = signature_names(path)
    if names is None:
        return "it isn't named as a signature is: <manifest>.<key id>.json"
    try:
        data = findings.store.get_range(path, 0, MOST_BYTES)
    except ObjectNotFoundError:
        return None  # the register knows whether it must be there
    manifest, key_id = names
    payload = read_envelope(data, key_id=key_id).payload
    entry = _signed_entry(findings, payload)
    if entry.manifest != manifest:
        return f"it is of version {entry.version}, whose manifest is {entry.manifest}"
    return find_difference(payload, _statement(findings, entry))


def _signed_entry(findings: Findings, payload: bytes) -> LogEntry:
    try:
        version = msgspec.json.decode(payload, type=_Statement).predicate.version
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"what was signed isn't the statement of a version: {error}") from error
    try:
        findings.store.head(entry_path(version))
    except ObjectNotFoundError as error:
        raise ValueError(f"it is of version {version}, which the log doesn't have") from error
    return read_entry(findings.store, version)[0]


def _statement(findings: Findings, entry: LogEntry) -> dict[str, Any]:
    path = manifest_path(entry.manifest)
    data = read_object(findings.store, path, sha256=entry.manifest, json=True)
    return describe_version(entry, decode_manifest(data, path=path))
