"""Where everything lies below a dataset's root: the only place that knows paths.

An object's name is the SHA-256 of the bytes stored under it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from datapipe.dataset import tables

__all__ = [
    "DOCMAP_PREFIX",
    "FORMAT_PATH",
    "FORMAT_VERSION",
    "GARBAGE_PREFIX",
    "HINT_PATH",
    "HOLDS_PREFIX",
    "INDEX_KINDS",
    "INDEX_PREFIX",
    "LOG_PREFIX",
    "MANIFEST_PREFIX",
    "REFERENCES_PREFIX",
    "REGISTER_PATH",
    "RETIRED_PATH",
    "SIGNATURES_PREFIX",
    "TABLE_KINDS",
    "TAGS_PREFIX",
    "TOKENS_PREFIX",
    "TRANSACTIONS_PREFIX",
    "WORK_PREFIX",
    "TableKind",
    "docmap_path",
    "entry_path",
    "entry_version",
    "hold_path",
    "index_path",
    "manifest_path",
    "object_path",
    "signature_names",
    "signature_path",
    "tag_path",
    "tokenizer_path",
    "tokens_path",
    "transaction_path",
]

FORMAT_VERSION = 1
"""Written into format.json, log entries and manifests; newer ones are refused."""

FORMAT_PATH = "format.json"
LOG_PREFIX = "_log/"
HINT_PATH = "_log/HINT"
MANIFEST_PREFIX = "_manifests"
TOKENS_PREFIX = "tokens"
DOCMAP_PREFIX = "docmap"
INDEX_PREFIX = "index"
INDEX_KINDS = ("doc", "url", "domain")
TRANSACTIONS_PREFIX = "_transactions/"
GARBAGE_PREFIX = "_gc/"
WORK_PREFIX = "_work/"
REFERENCES_PREFIX = "_refs/"
HOLDS_PREFIX = "_refs/holds/"
REGISTER_PATH = "_refs/register.json"
RETIRED_PATH = "_refs/retired.json"
TAGS_PREFIX = "_refs/tags/"
SIGNATURES_PREFIX = "_signatures/"

_SIGNATURE = re.compile(r"_signatures/([0-9a-f]{64})\.([0-9a-f]{64})\.json")
_ENTRY = re.compile(r"_log/(\d{20})\.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class TableKind:
    """One table of a version: a list of files below one prefix."""

    name: str
    prefix: str
    suffix: str
    schema: pa.Schema
    logical: bool
    """Whether its files carry a digest over their rows."""
    optional: bool = False
    """Whether there are versions without it."""
    has_signals: bool = False
    """Whether each file has columns of its own behind those of the schema."""

    def path(self, sha256: str) -> str:
        """Returns the path of the file with this digest."""
        return object_path(self.prefix, sha256, self.suffix)


def _kind(name: str, prefix: str, schema: pa.Schema, logical: bool, **more: bool) -> TableKind:
    suffix = ".jsonl.zst" if name == "quarantine" else ".parquet"
    return TableKind(
        name=name, prefix=prefix, suffix=suffix, schema=schema, logical=logical, **more
    )


TABLE_KINDS = {
    kind.name: kind
    for kind in (
        _kind("shards", "_manifests/shards", tables.SHARDS, False),
        _kind("details", "_manifests/details", tables.DETAILS, False),
        _kind("inputs", "_manifests/inputs", tables.INPUTS, True),
        _kind("dropped", "dropped", tables.DROPPED, True),
        _kind("quarantine", "private/quarantine", tables.QUARANTINE, True),
        _kind("signatures", "signatures", tables.SIGNATURES, True, optional=True),
        _kind("signals", "signals", tables.SIGNALS, False, optional=True, has_signals=True),
    )
}
"""Every table by its name in the manifest."""


def object_path(prefix: str, sha256: str, suffix: str, *, fan_out: bool = False) -> str:
    """Returns the path of a content-addressed object, below 256 folders if `fan_out`."""
    folder = f"{prefix}/{sha256[:2]}" if fan_out else prefix
    return f"{folder}/{sha256}{suffix}"


def manifest_path(sha256: str) -> str:
    """Returns the path of a manifest."""
    return object_path(MANIFEST_PREFIX, sha256, ".json")


def tokens_path(stored_sha256: str) -> str:
    """Returns the path of a token shard stored raw."""
    return object_path(TOKENS_PREFIX, stored_sha256, ".bin", fan_out=True)


def docmap_path(sha256: str) -> str:
    """Returns the path of a shard's docmap."""
    return object_path(DOCMAP_PREFIX, sha256, ".parquet", fan_out=True)


def index_path(kind: str, sha256: str) -> str:
    """Returns the path of a file of an index."""
    return object_path(f"{INDEX_PREFIX}/{kind}", sha256, ".parquet")


def tokenizer_path(sha256: str, name: str) -> str:
    """Returns the path of one of the tokenizer's files; `sha256` names the set of them."""
    return f"tokenizer/{sha256}/{name}"


def entry_path(version: int) -> str:
    """Returns the path of a version's log entry."""
    return f"{LOG_PREFIX}{version:020d}.json"


def entry_version(path: str) -> int | None:
    """Returns the version whose log entry has this path, or None: it isn't one."""
    match = _ENTRY.fullmatch(path)
    return int(match[1]) if match else None


def transaction_path(name: str) -> str:
    """Returns the path of a running transaction's file."""
    return f"{TRANSACTIONS_PREFIX}{name}.json"


def tag_path(name: str) -> str:
    """Returns the path of a tag."""
    return f"{TAGS_PREFIX}{name}.json"


def hold_path(version: int) -> str:
    """Returns the path of the hold of a version."""
    return f"{HOLDS_PREFIX}{version:020d}.json"


def signature_path(manifest: str, key_id: str) -> str:
    """Returns the path of what the holder of a key signed of a version."""
    return f"{SIGNATURES_PREFIX}{manifest}.{key_id}.json"


def signature_names(path: str) -> tuple[str, str] | None:
    """Returns the manifest and the key id that a signature's path names, or None: it isn't one."""
    match = _SIGNATURE.fullmatch(path)
    return (match[1], match[2]) if match else None
