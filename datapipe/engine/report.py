"""What a build did, for people and machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from datapipe.engine.ledger import Ledger

__all__ = ["BuildReport"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildReport:
    """Result of `build` or `append`; the counts are of this run's inputs alone."""

    dataset: str
    """Printable URL."""
    version: int
    created: bool
    """False: the result equals the version it would have followed, which is the one named."""
    manifest: str
    logical: str
    content: str
    """The three digests, hex."""
    ledgers: tuple[Ledger, ...]
    shards: int
    inputs_read: int
    inputs_skipped: int
    """Files that the dataset has already (append)."""
    truncated: tuple[str, ...]
    """Files that end in the middle; their whole records are in."""
    eos: tuple[int, str]
    """Id and text of the token that closes documents."""
    backend: str
    """The library that encoded."""
    backend_reason: str | None
    """Why it wasn't a faster one; None: it was the fastest."""
    seconds: float
    notes: tuple[str, ...] = ()
    """What was asked for and isn't done, a sentence each."""

    @property
    def warnings(self) -> list[str]:
        """What went as it had to, and still wants a look."""
        found = [f"{name} ends in the middle; its whole records are in" for name in self.truncated]
        found += self.notes
        records = sum(ledger.records for ledger in self.ledgers)
        known = sum(ledger.num_known for ledger in self.ledgers)
        if self.inputs_read and not known and not any(ledger.kept for ledger in self.ledgers):
            found.append(f"no document was kept of {records:,} records: nothing can be trained on")
        if self.backend_reason is not None:
            found.append(f"texts were encoded by {self.backend}, slowly: {self.backend_reason}")
        return found

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON values, as `--json` prints it."""
        return {
            "dataset": self.dataset,
            "version": self.version,
            "created": self.created,
            "manifest": self.manifest,
            "logical": self.logical,
            "content": self.content,
            "documents": _documents(self.ledgers),
            "sources": {
                ledger.source: {**_documents([ledger]), "tokens": ledger.tokens}
                for ledger in self.ledgers
            },
            "bytes_in": sum(ledger.bytes_in for ledger in self.ledgers),
            "blank_lines": sum(ledger.blank_lines for ledger in self.ledgers),
            "text_bytes": sum(ledger.text_bytes for ledger in self.ledgers),
            "tokens": sum(ledger.tokens for ledger in self.ledgers),
            "shards": self.shards,
            "inputs": {"read": self.inputs_read, "skipped": self.inputs_skipped},
            "truncated": list(self.truncated),
            "warnings": self.warnings,
            "eos": {"id": self.eos[0], "token": self.eos[1]},
            "backend": self.backend,
            "seconds": round(self.seconds, 3),
        }


def _documents(ledgers: Sequence[Ledger]) -> dict[str, Any]:
    dropped = sum((ledger.dropped for ledger in ledgers), Counter[str]())
    quarantined = sum((ledger.quarantined for ledger in ledgers), Counter[str]())
    return {
        "in": sum(ledger.records for ledger in ledgers),
        "kept": sum(ledger.kept for ledger in ledgers),
        "dropped": dict(sorted(dropped.items())),
        "quarantined": dict(sorted(quarantined.items())),
    }
