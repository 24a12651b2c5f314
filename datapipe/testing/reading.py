"""Reading inputs to plain Python values, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datapipe.read import (
    BATCH_BYTES,
    MAX_RECORD_BYTES,
    InputFile,
    ReadResult,
    detect_format,
    plan_ranges,
    read_range,
)
from datapipe.recipe import Fields

__all__ = ["Reading", "read_all", "read_bytes"]


@dataclass(slots=True)
class Reading:
    """All that files gave."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    quarantined: list[dict[str, Any]] = field(default_factory=list)
    dropped: list[dict[str, Any]] = field(default_factory=list)
    blank_lines: int = 0
    truncated: bool = False

    @property
    def texts(self) -> list[str]:
        """The documents' texts, in order."""
        return [document["text"] for document in self.documents]

    @property
    def places(self) -> list[tuple[int, int]]:
        """The documents' (offset, length), in order."""
        return [(d["source_offset"], d["source_length"]) for d in self.documents]

    @property
    def errors(self) -> list[str]:
        """The classes of the quarantined records, in order."""
        return [row["error"] for row in self.quarantined]

    def add(self, result: ReadResult) -> None:
        """Takes one piece in."""
        if result.batch is not None:
            result.batch.validate(full=True)
            self.documents += result.batch.to_pylist()
        self.quarantined += result.quarantined.to_pylist()
        self.dropped += result.dropped.to_pylist()
        self.blank_lines += result.blank_lines
        self.truncated |= result.truncated


def read_all(
    files: Iterable[InputFile],
    *,
    target_bytes: int = 1 << 40,
    declared: str | None = None,
    fields: Fields | None = None,
    licence: str | None = None,
    batch_bytes: int = BATCH_BYTES,
    max_record_bytes: int = MAX_RECORD_BYTES,
) -> Reading:
    """Returns what all ranges of all files give, as documents of the source `web`."""
    reading = Reading()
    for file in files:
        format = detect_format(file, declared=declared)
        for part in plan_ranges(file, format, target_bytes=target_bytes):
            results = read_range(
                part,
                source="web",
                fields=fields,
                licence=licence,
                batch_bytes=batch_bytes,
                max_record_bytes=max_record_bytes,
            )
            for result in results:
                reading.add(result)
    return reading


def read_bytes(path: Path, data: bytes, **options: Any) -> Reading:
    """Returns what a file at `path` gives that holds `data`; options as in `read_all`."""
    path.write_bytes(data)
    return read_all(
        [InputFile(path=str(path), relative=path.name, size_bytes=len(data))], **options
    )
