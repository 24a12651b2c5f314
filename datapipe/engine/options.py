"""How a build is done, and what it does again where that is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datapipe.engine.request import check_text
from datapipe.engine.sources import SourceInputs
from datapipe.errors import UsageError
from datapipe.observe import NO_PROGRESS, Progress
from tiering.errors import StoreURLError
from tiering.store import has_secret, open_store

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
        if self.work is not None:
            _check_work(self.work)
        for name in ("author", "reason"):
            check_text(getattr(self, name), name)
            if has_secret(getattr(self, name)):
                raise UsageError(
                    f"{name} has a URL with a password or token and would be recorded; nothing was "
                    "done; leave that part of the URL out"
                )


def _check_work(work: str) -> None:
    """Raises: UsageError: there can be no such folder."""
    check_text(work, "work")
    if not work.strip():
        raise UsageError(
            "the work folder's name is empty; name a folder, or none for `_work` in the dataset"
        )
    try:
        open_store(work)
    except StoreURLError as error:
        raise UsageError(f"the work folder can't be used: {error}") from error


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """What is to be done again, in place of what the recipe's paths mean now."""

    recipe: Mapping[str, Any]
    """The resolved recipe, as the manifest has it."""
    sources: Sequence[SourceInputs]
    digests: Mapping[str, str]
    """SHA-256 (hex) of every file, by its path."""
