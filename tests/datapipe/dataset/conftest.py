from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from datapipe.dataset import Dataset, Repository
from datapipe.testing import commit_small, small_draft


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Repositories "0", "1" and "2" with so many versions; copied, because fsync takes its time."""
    folder = tmp_path_factory.mktemp("templates")
    repo = Repository(str(folder / "made"))
    repo.create()
    shutil.copytree(repo.url, folder / "0")
    sources = {"web": [[3, 4], [5]], "books": [[9]]}
    commit_small(repo, small_draft(repo, sources, dropped=2, quarantined=1))
    shutil.copytree(repo.url, folder / "1")
    more = {"web": [[3, 4, 2]], "code": [[9, 1]]}
    draft = small_draft(
        repo, more, parent=repo.open(), operation="append", seed=7, dropped=1, quarantined=2
    )
    commit_small(repo, draft, transaction="second")
    shutil.copytree(repo.url, folder / "2")
    return folder


@pytest.fixture
def repo(templates: Path, tmp_path: Path) -> Repository:
    """A dataset without versions."""
    shutil.copytree(templates / "0", tmp_path / "dataset")
    return Repository(str(tmp_path / "dataset"))


@pytest.fixture
def dataset(repo: Repository, templates: Path) -> Dataset:
    """Version 1 with two sources."""
    shutil.copytree(templates / "1", repo.url, dirs_exist_ok=True)
    return repo.open()


@pytest.fixture
def appended(dataset: Dataset, templates: Path) -> Dataset:
    """Version 2 behind it: a shard more of web, and a new source."""
    shutil.copytree(templates / "2", dataset.url, dirs_exist_ok=True)
    return dataset.repository.open()
