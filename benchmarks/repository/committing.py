"""How long an append takes from the beginning of its transaction until its version is visible."""

from __future__ import annotations

import time
from typing import Any

from opening import spread
from synthetic import made_versions

from datapipe.dataset import Repository, begin_transaction, commit_version
from datapipe.testing import small_draft
from tiering.testing import S3Server

__all__ = ["measure_committing"]


def measure_committing(
    folder: str, server: S3Server, *, sizes: list[int], appends: int
) -> list[dict[str, Any]]:
    """Returns a row a size and store."""
    rows = []
    for made in made_versions(folder, server, sizes=sizes, what="committing"):
        repository = made.repository
        times = [_append_ms(repository, number) for number in range(appends)]
        assert repository.open().version == appends + 1
        assert repository.open().sources[0].num_shards == made.num_shards + appends
        rows.append({"store": made.store, "shards": made.num_shards, "ms": spread(times)})
    return rows


def _append_ms(repository: Repository, number: int) -> float:
    """Commits one shard, which is written beforehand."""
    parent = repository.open()
    draft = small_draft(
        repository,
        {"web": [[3, 4 + number]]},
        parent=parent,
        operation="append",
        file=f"{number}.jsonl",
        seed=number,
    )
    start = time.perf_counter()
    with begin_transaction(
        repository,
        base_version=parent.version,
        author="benchmark",
        time_seconds=time.time(),
    ) as transaction:
        done = commit_version(
            repository,
            draft,
            author="benchmark",
            reason="",
            input_roots=[],
            time_seconds=time.time(),
            transaction=transaction,
        )
    assert done.created
    return 1000 * (time.perf_counter() - start)
