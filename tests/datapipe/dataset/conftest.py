from __future__ import annotations

from pathlib import Path

import pytest

from datapipe.dataset import Dataset, Repository
from datapipe.testing import commit_small, small_draft


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    repository = Repository(str(tmp_path / "dataset"))
    repository.create()
    return repository


@pytest.fixture
def dataset(repo: Repository) -> Dataset:
    """Version 1 with two sources."""
    commit_small(
        repo, small_draft(repo, {"web": [[3, 4], [5]], "books": [[9]]}, dropped=2, quarantined=1)
    )
    return repo.open()


@pytest.fixture
def appended(repo: Repository, dataset: Dataset) -> Dataset:
    """Version 2 behind it: a shard more of web, and a new source."""
    more = {"web": [[3, 4, 2]], "code": [[9, 1]]}
    draft = small_draft(
        repo, more, parent=dataset, operation="append", seed=7, dropped=1, quarantined=2
    )
    commit_small(repo, draft, transaction="second")
    return repo.open()
