"""A writer for tests of concurrency: `python -c` with `append_often` is one process of many."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

from datapipe.dataset import Repository, begin_transaction
from datapipe.testing.datasets import commit_draft, small_draft

__all__ = ["append_often", "start_appender"]


def append_often(url: str, name: str, count: int) -> None:
    """Commits appends of three documents, each from a file of its own, one behind the other.

    Args:
        url: of a dataset that has a version.
        name: of this writer, a letter and a number; also of one of its sources.
        count: number of appends.
    """
    repository = Repository(url)
    for number in range(count):
        parent = repository.open()
        with begin_transaction(
            repository,
            base_version=parent.version,
            author=name,
            time_seconds=1000.0,
            id=f"{name}-{number}",
        ) as transaction:  # before anything is written: else gc may free it
            writing = repository.since(transaction.started_seconds)
            draft = small_draft(
                writing,
                {"web": [[2, 3]], name: [[4]]},
                parent=parent,
                operation="append",
                file=f"{name}-{number}.jsonl",
                seed=1000 * int(name[1:]) + number,
            )
            commit_draft(writing, draft, author=name, transaction=transaction)


def start_appender(
    url: str, name: str, count: int, *, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts a process that runs `append_often`, in this process's environment by default."""
    code = "import sys; from datapipe.testing import append_often as run; a = sys.argv; "
    code += "run(a[1], a[2], int(a[3]))"
    return subprocess.Popen([sys.executable, "-c", code, url, name, str(count)], env=environment)
