"""Where a build writes: a new dataset, or one that its version follows."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from datapipe.dataset import Dataset, LogEntry, Repository, rollback_check
from datapipe.dataset.layout import WORK_PREFIX
from datapipe.engine.request import check_text
from datapipe.errors import TokenizerMismatchError, UsageError
from datapipe_tokenizers import Tokenizer
from tiering.store import is_url

__all__ = ["Output", "find_output"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """The dataset that a build writes to."""

    repository: Repository
    parent: Dataset | None
    """The version to follow."""
    unreadable: LogEntry | None = None
    """Of the newest version, where its manifest is lost: a build that comes to it writes it again.
    """

    @property
    def newest_version(self) -> int:
        """Its number; 0: there is none."""
        newest = self.unreadable or self.parent
        return newest.version if newest is not None else 0


def find_output(out: str, tokenizer: Tokenizer, *, append: bool, is_whole: bool = True) -> Output:
    """Returns what lies at `out`; writes nothing.

    Args:
        out: URL of the dataset.
        tokenizer: what the build encodes with.
        append: whether the parent's documents stay.
        is_whole: the log must not have a gap; a rebuild works on a part of one.

    Raises:
        UsageError: something else than a dataset lies there.
        TokenizerMismatchError: a dataset of another tokenizer.
        DamagedError: versions are lost.
    """
    check_text(out, "out")
    repository = Repository(out)
    if not is_url(out) and _is_file(out):
        raise UsageError(
            f"{out} is a file, and a dataset is a folder; nothing was written. Give --out a new or "
            "empty folder"
        )
    if not repository.exists():
        _check_free(repository)
        return Output(repository=repository, parent=None)
    if is_whole:
        repository.check_numbers()
    unreadable = None if append else repository.unreadable()
    check = rollback_check(repository) if is_whole else None  # a rebuild's won't be seen again
    parent = repository.before(unreadable) if unreadable else repository.latest(check=check)
    if parent is not None:
        _check_tokenizer(parent, tokenizer)
    return Output(repository=repository, parent=parent, unreadable=unreadable)


def _is_file(path: str) -> bool:
    with contextlib.suppress(OSError):  # the dataset's store says better what is the matter
        return Path(path).is_file()
    return False


def _check_free(repository: Repository) -> None:
    """Raises: UsageError: something else than a dataset is there already."""
    found = (info.path for info in repository.store.list() if not info.path.startswith(WORK_PREFIX))
    first = next(found, None)
    if first is not None:
        raise UsageError(
            f"{repository.url} isn't empty and isn't a dataset: it holds {first}; nothing was "
            "written there. Give --out a new or empty folder"
        )


def _check_tokenizer(parent: Dataset, tokenizer: Tokenizer) -> None:
    recorded = parent.manifest.tokenizer
    for what in ("vocabulary", "canary", "eos_id"):
        theirs, mine = getattr(recorded, what), getattr(tokenizer, what)
        if theirs != mine:
            raise TokenizerMismatchError(
                f"dataset {parent.url} was built with another tokenizer: its {what} is "
                f"{theirs}, this one's {mine}; tokens of two tokenizers can't be mixed. Build "
                "into another --out, or use the tokenizer that lies in the dataset"
            )
