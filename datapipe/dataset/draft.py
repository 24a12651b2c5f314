"""What a writer hands over for a commit: the draft of a version, and what it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from datapipe.dataset.hashing import canonical_json, sha256_hex
from datapipe.dataset.reader import Dataset
from datapipe.dataset.shards import ShardRecord

__all__ = ["SourceCounts", "TokenizerRecord", "VersionDraft"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceCounts:
    """What became of the records that this build or append met in one source."""

    source: str
    kept: int
    text_bytes: int
    """UTF-8 bytes of the kept documents' cleaned texts."""
    bytes_in: int = 0
    """Bytes of the input files as they are stored."""
    blank_lines: int = 0
    """Not records, and in no other count."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Documents by "stage.rule"."""
    quarantined: Mapping[str, int] = field(default_factory=dict)
    """Records by error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerRecord:
    """The tokenizer that encoded the shards."""

    files: Mapping[str, bytes]
    """Its own files by name."""
    vocabulary: str
    """Digest, hex."""
    canary: str
    """Digest, hex."""
    vocab_size: int
    max_id: int
    eos_id: int
    backend: str

    @property
    def file_digests(self) -> dict[str, str]:
        """SHA-256 in hex by file name."""
        return {name: sha256_hex(data) for name, data in sorted(self.files.items())}

    @property
    def sha256(self) -> str:
        """The digest that names the set of files."""
        return sha256_hex(canonical_json(self.file_digests))


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionDraft:
    """A version as its writer sees it; tables hold only what this build or append adds."""

    operation: Literal["build", "append", "index"]
    parent: Dataset | None
    """The version that it follows; required by all but a build."""
    recipe: Mapping[str, Any]
    """Resolved and JSON-able: no absolute paths, the tokenizer as its digest."""
    shards: list[ShardRecord]
    """Numbered on from the parent's by an append, from 0 by a build."""
    counts: list[SourceCounts]
    """One a source, in the order of the recipe."""
    tokenizer: TokenizerRecord
    environment: Mapping[str, str]
    licences: Mapping[str, str] = field(default_factory=dict)
    dropped: pa.Table | None = None
    quarantine: pa.Table | None = None
    inputs: pa.Table | None = None
    signatures: pa.Table | None = None
    """None: duplicates weren't looked for."""
    signals: pa.Table | None = None
    """SIGNALS and a column a signal; None: nothing was measured."""
    indexes: frozenset[str] | None = None
    """Kinds that the version has; None: those of its parent."""

    def __post_init__(self) -> None:
        if self.operation != "build" and self.parent is None:
            raise ValueError(f"an {self.operation} needs the version that it adds to; give parent=")

    @property
    def index_kinds(self) -> frozenset[str]:
        """The kinds of indexes that the version has."""
        if self.indexes is not None:
            return self.indexes
        return frozenset(self.parent.manifest.indexes) if self.parent is not None else frozenset()

    @property
    def base(self) -> Dataset | None:
        """The version whose content is in this one too; None: a build's own is all."""
        return None if self.operation == "build" else self.parent
