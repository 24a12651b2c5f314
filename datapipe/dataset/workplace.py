"""Who uses the work folder of a dataset, so that it is emptied under nobody's hands.

Whoever empties it announces that, and then looks for writers; a writer begins its transaction, and
then waits for such announcements. So one of the two always sees the other (`deletion.py`).
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator

from datapipe.dataset.deletion import Deletion, await_deletions, write_deletion
from datapipe.dataset.layout import WORK_PREFIX
from datapipe.dataset.objects import writing
from datapipe.dataset.process import is_gone
from datapipe.dataset.repository import Repository
from datapipe.dataset.transaction import live_transactions, store_seconds

__all__ = ["await_work", "emptying_work"]


def await_work(repo: Repository) -> None:
    """Returns when nobody is emptying the work folder; the caller's transaction has begun."""
    store = repo.store
    await_deletions(store, [WORK_PREFIX], clock=lambda: store_seconds(store))


@contextlib.contextmanager
def emptying_work(repo: Repository) -> Iterator[bool]:
    """Announces that the work folder is being emptied; yields whether nobody else is at work.

    The caller's own transaction has ended; it deletes what takes much less than LEASE_SECONDS.
    """
    deletion = Deletion(id=uuid.uuid4().hex, paths=(WORK_PREFIX,))
    with writing(repo.store):
        write_deletion(repo.store, deletion)
        try:
            yield all(is_gone(other.process) for other in live_transactions(repo))
        finally:
            repo.store.delete(deletion.path)
