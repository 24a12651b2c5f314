"""The versions of a dataset with what they hold: what `datapipe log` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from datapipe.dataset import layout
from datapipe.dataset.log import LogEntry, list_versions, read_entry
from datapipe.dataset.manifest import Totals, decode_manifest
from datapipe.dataset.objects import read_object, reading
from datapipe.dataset.repository import Repository
from datapipe.dataset.retired import read_retired
from datapipe.dataset.signing import VerifyingKey, check_signers, list_all_signers
from datapipe.dataset.tags import list_tags
from datapipe.errors import DamagedError

__all__ = ["version_history"]


def version_history(
    repo: Repository, *, newest: int | None = None, key: VerifyingKey | None = None
) -> list[dict[str, Any]]:
    """Returns log entries as JSON values, the oldest first, and what stands beside them.

    That is `tags`, `retired`, `signers` (with `verified`, see `Signer`) and `counts`: the totals of
    the version, and under `change` what they are more than those of the version before; None where
    a manifest is damaged.

    Args:
        repo: the dataset.
        newest: only so many versions.
        key: its own signatures are checked.

    Raises:
        DamagedError: an entry is missing or damaged.
    """
    with reading(repo.store, layout.LOG_PREFIX):
        versions = list_versions(repo.store)
    shown = versions[-newest:] if newest else versions
    if not shown:
        return []
    before = range(max(1, shown[0] - 1), shown[0])
    entries = [read_entry(repo.store, version)[0] for version in (*before, *shown)]
    totals = [_totals(repo, entry) for entry in entries]
    tags, retired = _tags(repo), read_retired(repo.store)
    signers = list_all_signers(repo.store)
    history = []
    for place in range(len(before), len(entries)):
        entry = entries[place]
        history.append(
            {
                **msgspec.to_builtins(entry),
                "counts": _counts(totals[place], totals[place - 1] if place else _NOTHING),
                "tags": tags.get(entry.version, []),
                "retired": entry.version in retired,
                "signers": _signers(repo, entry, signers.get(entry.manifest, []), key),
            }
        )
    return history


_NOTHING = Totals(
    documents_in=0,
    kept=0,
    dropped=0,
    quarantined=0,
    num_shards=0,
    num_tokens=0,
    text_bytes=0,
    bytes_in=0,
)


def _totals(repo: Repository, entry: LogEntry) -> Totals | None:
    path = layout.manifest_path(entry.manifest)
    try:
        data = read_object(repo.store, path, sha256=entry.manifest, json=True)
        return decode_manifest(data, path=path).totals
    except DamagedError:  # the log is shown all the same; `verify` names the damage
        return None


def _counts(totals: Totals | None, before: Totals | None) -> dict[str, Any] | None:
    if totals is None:
        return None
    now = msgspec.to_builtins(totals)
    old = msgspec.to_builtins(before) if before is not None else None
    change = {name: now[name] - old[name] for name in now} if old is not None else None
    return {**now, "change": change}


def _signers(
    repo: Repository, entry: LogEntry, key_ids: Sequence[str], key: VerifyingKey | None
) -> list[dict[str, Any]]:
    if key is None or key.key_id not in key_ids:
        return [{"key_id": key_id, "verified": None} for key_id in key_ids]
    try:
        found = check_signers(repo.open_entry(entry), key_ids, key=key)
    except DamagedError:  # as for the totals
        return [{"key_id": k, "verified": False if k == key.key_id else None} for k in key_ids]
    return [msgspec.to_builtins(signer) for signer in found]


def _tags(repo: Repository) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for tag in list_tags(repo.store):
        if tag.version is not None:
            found.setdefault(tag.version, []).append(tag.name)
    return found
