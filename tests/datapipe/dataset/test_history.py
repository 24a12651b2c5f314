from __future__ import annotations

import pytest

from datapipe.dataset import Dataset, Repository, set_tag, version_history


def test_versions_come_with_counts_and_tags(appended: Dataset, dataset: Dataset) -> None:
    set_tag(dataset, "prod", author="", reason="", time_seconds=0.0)
    first, second = version_history(appended.repository)
    assert (first["author"], first["reason"], first["version"]) == ("tester", "a test", 1)
    assert (first["tags"], second["tags"]) == (["prod"], [])
    assert (first["counts"]["kept"], first["counts"]["change"]["kept"]) == (4, 4)
    assert (second["counts"]["kept"], second["counts"]["change"]["kept"]) == (9, 5)
    assert second["counts"]["change"]["quarantined"] == 2


def test_the_newest_alone(appended: Dataset) -> None:
    (only,) = version_history(appended.repository, newest=1)
    assert (only["version"], only["counts"]["change"]["kept"]) == (2, 5)


def test_no_versions_no_history(repo: Repository) -> None:
    assert version_history(repo) == []


@pytest.mark.parametrize("damaged", [1, 2])
def test_a_damaged_manifest_does_not_hide_the_log(appended: Dataset, damaged: int) -> None:
    repo = appended.repository
    manifest = repo.open(damaged).manifest_sha256
    repo.store.delete(f"_manifests/{manifest}.json")
    history = version_history(repo)
    assert history[damaged - 1]["counts"] is None
    assert len(history) == 2
