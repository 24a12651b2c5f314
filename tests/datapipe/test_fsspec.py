"""A dataset on a file system that only fsspec knows, by the promise of a single writer."""

from __future__ import annotations

from pathlib import Path

import pytest

from datapipe.dataset import Repository, open_dataset, verify_dataset
from datapipe.errors import DatasetError
from datapipe.testing import commit_small, small_draft

pytest.importorskip("fsspec", reason="fsspec isn't installed")


def commit_two(repository: Repository) -> None:
    repository.create()
    commit_small(repository, small_draft(repository, {"web": [[3, 4], [5]]}))
    draft = small_draft(
        repository, {"web": [[2]]}, parent=repository.open(), operation="append", seed=3
    )
    commit_small(repository, draft, transaction="second")


@pytest.mark.parametrize("by_environment", [True, False], ids=["environment", "argument"])
def test_versions_are_committed_by_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_environment: bool
) -> None:
    url = f"local://{tmp_path}/ds"
    if by_environment:
        monkeypatch.setenv("DATAPIPE_SINGLE_WRITER", f"sftp://other/x local://{tmp_path}/")
        commit_two(Repository(url))
    else:
        commit_two(Repository(url, single_writer=True))
    assert open_dataset(url).version == 2
    assert open_dataset(f"{url}@1").version == 1
    for place in (url, str(tmp_path / "ds")):
        assert verify_dataset(open_dataset(place)).problems == []


@pytest.mark.parametrize("promised", ["", "local://elsewhere", "{url}-other"])
def test_without_a_promise_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, promised: str
) -> None:
    url = f"local://{tmp_path}/ds"
    monkeypatch.setenv("DATAPIPE_SINGLE_WRITER", promised.format(url=url))
    with pytest.raises(DatasetError, match=f"DATAPIPE_SINGLE_WRITER={url} in the environment"):
        Repository(url).create()
