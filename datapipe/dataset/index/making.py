"""Making indexes of a version that has none: a version of its own, with the same content."""

from __future__ import annotations

from collections.abc import Collection

from datapipe.dataset.commit import Committed, commit_version
from datapipe.dataset.layout import INDEX_KINDS
from datapipe.dataset.rebase import index_draft
from datapipe.dataset.repository import Repository, note_committed
from datapipe.dataset.transaction import begin_transaction
from datapipe.errors import UsageError
from datapipe.observe import NO_PROGRESS, Progress

__all__ = ["index_dataset"]


def index_dataset(
    repo: Repository,
    kinds: Collection[str] = INDEX_KINDS,
    *,
    author: str = "",
    reason: str = "",
    time_seconds: float,
    progress: Progress = NO_PROGRESS,
) -> Committed:
    """Commits a version that has the latest one's content and these indexes, if it lacks one.

    Appends that are committed meanwhile are followed.

    Args:
        repo: the dataset.
        kinds: of "doc", "url", "domain".
        author: who.
        reason: why.
        time_seconds: now, since the epoch.
        progress: hears of tables.

    Raises:
        UsageError: an unknown kind.
        ResumableError: another writer is in the way, or the disk is full.
        DamagedError: a docmap can't be read.
    """
    unknown = sorted(set(kinds) - set(INDEX_KINDS))
    if unknown:
        raise UsageError(
            f"there is no index {unknown[0]!r}; nothing was made; there are "
            f"{', '.join(INDEX_KINDS)}"
        )
    latest = repo.open()
    with begin_transaction(
        repo, base_version=latest.version, author=author, time_seconds=time_seconds
    ) as transaction:
        committed = commit_version(
            repo,
            index_draft(latest, frozenset(kinds)),
            author=author,
            reason=reason or f"index of {', '.join(sorted(kinds))}",
            input_roots=[],
            time_seconds=time_seconds,
            transaction=transaction,
            progress=progress,
        )
    note_committed(repo, committed.version)
    return committed
