"""The manifest: canonical JSON that says what a version consists of.

It holds no time, host, path or dataset id, so equal input gives equal bytes anywhere, and its size
doesn't grow with shards or inputs: those stand in tables, which it lists as files.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.layout import FORMAT_VERSION, TABLE_KINDS
from datapipe.errors import DamagedError, DatasetError
from tiering.store import check_path

__all__ = [
    "ConservationRow",
    "Digest",
    "Digests",
    "IndexFile",
    "Manifest",
    "ShardRange",
    "SourceSummary",
    "TableFile",
    "TokenizerInfo",
    "Totals",
    "check_format",
    "decode_manifest",
    "encode_manifest",
]

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
"""SHA-256 in lower-case hex."""

Count = Annotated[int, msgspec.Meta(ge=0)]


class TableFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a table."""

    sha256: Digest
    rows: Count
    bytes: Count
    """Stored size."""
    logical_sha256: Digest | None
    """SHA-256 over the canonical encoding of its rows; None for shards and details."""


class ShardRange(msgspec.Struct, frozen=True, kw_only=True):
    """Shards [first, end) of a source."""

    source: str
    first: Count
    end: Count


class IndexFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an index, and the tables whose rows it holds: these docmaps, then `dropped`.

    Their numbers in the file follow from this order.
    """

    sha256: Digest
    rows: Count
    bytes: Count
    """Stored size."""
    shards: tuple[ShardRange, ...]
    """In the order of the manifest's sources; none is empty."""
    dropped: tuple[Count, Count]
    """Files [first, end) of the table `dropped`."""


class TokenizerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The tokenizer whose ids the shards hold."""

    sha256: Digest
    """Names the set of files: SHA-256 of the canonical JSON of `files`."""
    files: dict[str, Digest]
    """SHA-256 by file name."""
    vocabulary: str
    """Digest of all ids and their bytes: equal means that decoding agrees."""
    canary: str
    """Digest of the ids of tricky strings: equal means that encoding agrees."""
    vocab_size: Count
    max_id: Count
    eos_id: Count
    backend: str


class SourceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One source of a version."""

    name: str
    order_digest: Digest
    """SHA-256 over its shards by number: num_tokens int64 LE, raw digest at birth."""
    num_shards: Count
    num_documents: Count
    num_tokens: Count
    text_bytes: Count
    """UTF-8 bytes of its documents' cleaned texts."""


class ConservationRow(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a source's records, over all builds and appends that made the version."""

    source: str
    kept: Count
    text_bytes: Count
    bytes_in: Count
    blank_lines: Count
    dropped: dict[str, Count]
    """Documents by "stage.rule"; no zeros."""
    quarantined: dict[str, Count]
    """Records by error; no zeros."""

    @property
    def documents_in(self) -> int:
        """Every record met."""
        return self.kept + sum(self.dropped.values()) + sum(self.quarantined.values())


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the sources."""

    documents_in: Count
    kept: Count
    dropped: Count
    quarantined: Count
    num_shards: Count
    num_tokens: Count
    text_bytes: Count
    bytes_in: Count


class Digests(msgspec.Struct, frozen=True, kw_only=True):
    """The promises of `digests.py`."""

    content: Digest
    logical: Digest


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A version. Keys that this program doesn't know are ignored; a newer format is refused."""

    format: Count
    operation: Literal["build", "append", "index"]
    parents: tuple[Digest, ...]
    """Manifests of the versions that it follows, at most one now."""
    recipe: dict[str, Any]
    recipe_sha256: Digest
    """SHA-256 of the recipe's canonical JSON."""
    environment: dict[str, str]
    tokenizer: TokenizerInfo
    token_dtype: Literal["uint16", "uint32"]
    """Little-endian."""
    codec: Literal["raw"]
    """How shards are stored."""
    licences: dict[str, str]
    """By source."""
    sources: tuple[SourceSummary, ...]
    """In the order of the recipe; appended ones behind."""
    conservation: tuple[ConservationRow, ...]
    """Same sources, same order."""
    totals: Totals
    digests: Digests
    tables: dict[str, tuple[TableFile, ...]]
    """Files of each table, rows in file order; of those without any, optional ones are absent."""
    indexes: dict[str, tuple[IndexFile, ...]] = {}
    """Files of each index, the oldest rows first; one that is here holds all rows there are."""

    def files(self, table: str) -> tuple[TableFile, ...]:
        """Returns the files of a table, none where the version has no such table."""
        return self.tables.get(table, ())


class _Versioned(msgspec.Struct):
    format: int


def encode_manifest(manifest: Manifest) -> bytes:
    """Returns the manifest's canonical JSON; its SHA-256 is the version's `manifest` digest."""
    return canonical_json(msgspec.to_builtins(manifest))


def decode_manifest(data: bytes, *, path: str) -> Manifest:
    """Returns the manifest in JSON bytes.

    Raises:
        DatasetError: a newer format.
        DamagedError: not a manifest.
    """
    check_format(data, path=path)
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
        for name in manifest.tokenizer.files:
            check_path(name)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise _damaged(path, error) from error
    missing = [
        kind.name
        for kind in TABLE_KINDS.values()
        if not kind.optional and kind.name not in manifest.tables
    ]
    if missing:
        raise _damaged(path, f"it lists no {missing[0]}")
    return manifest


def check_format(data: bytes, *, path: str) -> None:
    """Looks only at `format`. Raises: DatasetError: newer. DamagedError: not JSON with one."""
    try:
        found = msgspec.json.decode(data, type=_Versioned).format
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _damaged(path, error) from error
    if found > FORMAT_VERSION:
        raise DatasetError(
            f"{path} has format {found}: it was made by a newer datapipe, this one knows formats "
            f"up to {FORMAT_VERSION}; it can't be used; upgrade datapipe-train"
        )


def _damaged(path: str, why: object) -> DamagedError:
    return DamagedError(
        f"{path} isn't what a dataset has there: {why}; it can't be used; restore it from a copy"
    )
