"""What a preview says."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Estimate", "Example", "PreviewReport", "RuleReport", "SourceReport", "StageReport"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A document on one side of a threshold."""

    doc_id: str
    source_file: str
    source_offset: int
    value: float | None
    """What was measured of it."""
    text: str
    """How its text begins, as it came to the stage."""


@dataclass(kw_only=True, slots=True)
class RuleReport:
    """What one rule of a stage did."""

    rule: str
    threshold: float | None = None
    dropped: int = 0
    examples_dropped: list[Example] = field(default_factory=list)
    """Those nearest to the threshold first."""
    examples_kept: list[Example] = field(default_factory=list)
    """Of documents that passed the stage, those nearest to the threshold first."""


@dataclass(kw_only=True, slots=True)
class StageReport:
    """What one stage did to the sample."""

    stage: str
    documents_in: int = 0
    bytes_in: int = 0
    """UTF-8 bytes of the texts that came to it."""
    kept: int = 0
    changed: int = 0
    """Documents that it kept with another text."""
    seconds: float = 0.0
    """Processor time."""
    kept_of_source: dict[str, tuple[int, int]] = field(default_factory=dict)
    """(documents in, documents kept) by source."""
    rules: dict[str, RuleReport] = field(default_factory=dict)

    @property
    def megabytes_per_second(self) -> float:
        """Its speed on one core."""
        return self.bytes_in / 1e6 / self.seconds if self.seconds else 0.0


@dataclass(kw_only=True, slots=True)
class SourceReport:
    """What the sample of one source was and what is left of it."""

    source: str
    documents: int
    text_bytes: int
    quarantined: dict[str, int]
    kept: int = 0
    kept_bytes: int = 0
    tokens: int | None = None
    """Of the sample; None: there is no tokenizer."""
    fraction: float = 1.0
    """The sample's part of the source, 0..1, about."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """What building everything would come to, about."""

    workers: int
    seconds: float
    """With so many workers, each with a core of its own."""
    documents: int
    tokens: int | None
    """None: there is no tokenizer."""
    disk_bytes: int | None
    """Of the dataset; None: there is no tokenizer."""
    memory_bytes: int
    """Of all workers together."""


@dataclass(kw_only=True, slots=True)
class PreviewReport:
    """What a preview says of a recipe."""

    recipe: str
    sources: list[SourceReport]
    stages: list[StageReport]
    notes: list[str]
    estimate: Estimate

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON values."""
        data = asdict(self)
        for stage, report in zip(data["stages"], self.stages, strict=True):
            stage["megabytes_per_second"] = round(report.megabytes_per_second, 3)
            stage["rules"] = list(stage["rules"].values())
        return data
