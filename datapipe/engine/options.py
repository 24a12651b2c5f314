"""How a build is done, and what it does again where that is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datapipe.engine.request import check_text
from datapipe.engine.sources import SourceInputs
from datapipe.errors import UsageError
from datapipe.observe import NO_PROGRESS, Progress

__all__ = ["MAX_WORKERS", "BuildOptions", "Recorded"]

MAX_WORKERS = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildOptions:
    """How to build: nothing here changes what comes out."""

    workers: int | None = None
    """Processes; None: the cores this process may use."""
    work: str | None = None
    """URL of the work folder; None: `_work` in the dataset."""
    author: str = ""
    reason: str = ""
    progress: Progress = NO_PROGRESS

    def __post_init__(self) -> None:
        if self.workers is not None and not 1 <= self.workers <= MAX_WORKERS:
            raise UsageError(
                f"workers is {self.workers}; give 1 to {MAX_WORKERS:,}, or none for all cores"
            )
        if self.work is not None and not self.work.strip():
            raise UsageError(
                "the work folder's name is empty; name a folder, or none for `_work` in the dataset"
            )
        for name in ("work", "author", "reason"):
            check_text(getattr(self, name), name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """What is to be done again, in place of what the recipe's paths mean now."""

    recipe: Mapping[str, Any]
    """The resolved recipe, as the manifest has it."""
    sources: Sequence[SourceInputs]
    digests: Mapping[str, str]
    """SHA-256 (hex) of every file, by its path."""
