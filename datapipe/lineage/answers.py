"""What lineage answers with; `to_json` is what `--json` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from datapipe.lineage.docmaps import DocumentPlace, DocumentSpan

__all__ = ["BatchDocuments", "DocumentSteps", "SampleDocuments", "Seen"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleDocuments:
    """One row of a batch and the documents in it."""

    sample: int
    "Sample number in the order."
    batch: int
    rank: int
    row: int
    "Row in the rank's batch."
    source: str
    shard: int
    "Number of the shard in its source."
    epoch: int
    token_start: int
    "First token in the shard."
    num_tokens: int
    "Tokens that are an input or a label of the sample."
    documents: tuple[DocumentSpan, ...]
    "In token order; their tokens add up to num_tokens."

    def to_json(self) -> dict[str, Any]:
        """Returns the sample as JSON values."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {**values, "documents": [span.to_json() for span in self.documents]}


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchDocuments:
    """The documents of a batch, or of all batches of a step."""

    run: str
    step: int
    batches: tuple[int, ...]
    delivered: bool | None
    "True: all of it was certainly delivered; None: planned, not known. See `docs/lineage.md`."
    samples: tuple[SampleDocuments, ...]
    "By batch, rank and row."

    def to_json(self) -> dict[str, Any]:
        """Returns the answer as JSON values."""
        return {
            "run": self.run,
            "step": self.step,
            "batches": list(self.batches),
            "delivered": self.delivered,
            "samples": [sample.to_json() for sample in self.samples],
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One time that a document was in a row."""

    step: int
    batch: int
    rank: int
    row: int
    sample: int
    epoch: int
    tokens: int
    "Tokens of the document that are an input or a label of the sample."
    delivered: bool | None
    "True: it was certainly delivered; None: planned, not known."

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentSteps:
    """The steps of a run that a document was in."""

    run: str
    document: DocumentPlace
    seen: tuple[Seen, ...]
    "By batch, rank and row; empty: the run never reads it."
    complete: bool
    "False: the run has no end, and the document comes again after the last that is listed."

    def to_json(self) -> dict[str, Any]:
        """Returns the answer as JSON values."""
        place = self.document
        document = {
            "doc_id": place.doc_id,
            "record_id": place.record_id,
            "source": place.shard.label,
            "source_file": place.source_file,
            "source_offset": place.source_offset,
            "source_length": place.source_length,
            "shard": place.shard.number,
            "token_start": place.token_start,
            "num_tokens": place.num_tokens,
        }
        return {
            "run": self.run,
            "document": document,
            "seen": [seen.to_json() for seen in self.seen],
            "complete": self.complete,
        }
