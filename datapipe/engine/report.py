"""What a build did, for people and machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datapipe.engine.damage import DamagedFile, damage_in
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
    """Files of this run that end in the middle or are damaged; their whole records are in."""
    damaged: tuple[DamagedFile, ...]
    """Those of which records may be lost that nobody can see, and such ones that were skipped."""
    allow_damaged: bool
    """Whether that was accepted."""
    notes: tuple[str, ...]
    """What was left out of the inputs, or has several names and was read once."""
    eos: tuple[int, str]
    """Id and text of the token that closes documents."""
    backend: str
    """The library that encoded."""
    backend_reason: str | None
    """Why it wasn't a faster one; None: it was the fastest."""
    special_text: Mapping[str, Any]
    """Policy, and documents with the text of special tokens: `documents` of any, `with_eos` of the
    one that closes documents."""
    seconds: float
    ignored: tuple[str, ...] = ()
    """What was asked for and isn't done, a sentence each."""

    @property
    def is_complete(self) -> bool:
        """Whether all that was asked for is in; damage that was accepted doesn't count."""
        return self.allow_damaged or not self.damaged

    @property
    def incomplete(self) -> str:
        """What is missing and what to do, one line; empty if it is complete."""
        if self.is_complete:
            return ""
        return (
            f"{damage_in(self.damaged)}. Version {self.version} holds all the rest. Replace "
            "what is damaged and run again, or accept the loss with --allow-damaged (recipe "
            "`guards: {allow_damaged: true}`)"
        )

    @property
    def warnings(self) -> list[str]:
        """What went as it had to, and still wants a look."""
        rest = {True: "", False: "; all the rest of it is in"}
        return [f"{item}{rest[item.is_whole]}" for item in self.damaged] + self.remarks

    @property
    def remarks(self) -> list[str]:
        """The warnings that aren't about damaged files."""
        damaged = {item.file for item in self.damaged}
        found = [
            f"{name} ends in the middle; its whole records are in"
            for name in self.truncated
            if name not in damaged
        ]
        found += self.ignored
        records = sum(ledger.records for ledger in self.ledgers)
        known = sum(ledger.num_known for ledger in self.ledgers)
        if self.inputs_read and not known and not any(ledger.kept for ledger in self.ledgers):
            found.append(f"no document was kept of {records:,} records: nothing can be trained on")
        if self.backend_reason is not None:
            found.append(f"texts were encoded by {self.backend}, slowly: {self.backend_reason}")
        count = self.special_text["with_eos"]
        if count and self.special_text["policy"] == "special":
            found.append(
                f"{count:,} documents have the text of {self.eos[1]}, the token that closes "
                "documents; it was encoded as characters, since they would end there. If it means "
                "something else in them, build with another end-of-text token (--eos)"
            )
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
            "damaged": [item.to_json() for item in self.damaged],
            "complete": self.is_complete,
            "notes": list(self.notes),
            "warnings": self.warnings,
            "eos": {"id": self.eos[0], "token": self.eos[1]},
            "backend": self.backend,
            "special_text": dict(self.special_text),
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
