"""What stands beside the versions: tags, holds, retired versions, and the register of them.

They belong to the dataset as a whole, so all of them are checked whatever version is asked for.
"""

from __future__ import annotations

from datapipe.dataset.hashing import sha256_hex
from datapipe.dataset.keep import read_hold
from datapipe.dataset.layout import (
    HOLDS_PREFIX,
    REGISTER_PATH,
    RETIRED_PATH,
    TAGS_PREFIX,
    tag_path,
)
from datapipe.dataset.log import read_entry
from datapipe.dataset.objects import get_json
from datapipe.dataset.register import Registered, read_register, registered_paths
from datapipe.dataset.retired import read_retired
from datapipe.dataset.tags import is_tag_name, read_tag
from datapipe.dataset.verify.report import Findings
from tiering.errors import ObjectNotFoundError

__all__ = ["check_references"]


def check_references(findings: Findings) -> None:
    """Checks that all that is registered is there as it was written, and names a version."""
    with findings.attempt(REGISTER_PATH):
        _check_register(findings)
    for path in findings.paths(TAGS_PREFIX):
        with findings.attempt(path):
            _check_tag(findings, path)
    for path in findings.paths(HOLDS_PREFIX):
        with findings.attempt(path):
            _check_hold(findings, path)
    with findings.attempt(RETIRED_PATH):
        read_retired(findings.store)


def _check_register(findings: Findings) -> None:
    register = read_register(findings.store)
    there = registered_paths(findings.store)
    if register is None:
        if there:
            findings.add(
                REGISTER_PATH,
                f"it is missing, though {min(there)} is there; restore it from a copy, or set the "
                "tags and holds and sign again as they are",
            )
        return
    findings.objects += 1
    for path in sorted(there | register.keys()):
        _check_registered(findings, path, register.get(path))


def _check_registered(findings: Findings, path: str, known: Registered | None) -> None:
    found = _digest(findings, path)
    if known is None or found != known.sha256:  # it may have been written since
        known = (read_register(findings.store) or {}).get(path)
        found = _digest(findings, path)
    if known is not None:
        findings.read(path, known.sha256)
    elif found is not None:
        findings.add(
            path,
            "it isn't registered: datapipe didn't write it, or was stopped; do again what made "
            "it, or remove it",
        )


def _digest(findings: Findings, path: str) -> str | None:
    try:
        return sha256_hex(get_json(findings.store, path))
    except ObjectNotFoundError:
        return None


def _check_tag(findings: Findings, path: str) -> None:
    name = path.removeprefix(TAGS_PREFIX).removesuffix(".json")
    if path != tag_path(name) or not is_tag_name(name):
        findings.add(path, "it isn't named as a tag is")
        return
    tag = read_tag(findings.store, name)
    if tag is not None and tag.version is not None:
        _check_names(findings, path, version=tag.version, manifest=tag.manifest)


def _check_hold(findings: Findings, path: str) -> None:
    hold = read_hold(findings.store, path)
    if hold is not None:
        _check_names(findings, path, version=hold.version, manifest=hold.manifest)


def _check_names(findings: Findings, path: str, *, version: int, manifest: str | None) -> None:
    entry, _ = read_entry(findings.store, version)
    findings.expect(
        path, f"the manifest of version {version}", expected=entry.manifest, found=manifest
    )
