from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from datapipe.dataset import Dataset, Repository, log_entries, open_dataset, set_tag, verify_dataset
from datapipe.dataset.log import publish_entry, seal_entry
from datapipe.dataset.references import parse_time
from datapipe.errors import UnknownReferenceError

NOON = 1_795_608_000.0  # 2026-11-25T12:00Z


@pytest.fixture
def timed(appended: Dataset) -> Repository:
    """Versions 1 and 2 committed an hour apart, the first at noon."""
    repo = appended.repository
    entries = log_entries(repo)
    for path in list(repo.store.list("_log/")):
        repo.store.delete(path.path)
    for hour, entry in enumerate(entries):
        time_seconds = NOON + 3600 * hour
        publish_entry(
            repo.store, seal_entry(msgspec.structs.replace(entry, time_seconds=time_seconds))
        )
    return repo


@pytest.mark.parametrize(
    ("ref", "version"),
    [
        ("2026-11-25T12:00", 1),
        ("2026-11-25T12:00:00Z", 1),
        ("2026-11-25 12:59:59.9", 1),
        ("2026-11-25T13:00", 2),
        ("2026-11-25T13:30+01:00", 1),
        ("2026-11-25T08:30-05:00", 2),
        ("2026-11-26", 2),
        ("2099-01-01", 2),
    ],
)
def test_a_time_means_the_newest_version_then(timed: Repository, ref: str, version: int) -> None:
    assert open_dataset(f"{timed.url}@{ref}").version == version


@pytest.mark.parametrize("ref", ["2026-11-25", "2026-11-25T11:59:59"])
def test_before_the_first_version_there_is_none(timed: Repository, ref: str) -> None:
    with pytest.raises(UnknownReferenceError, match="committed at 2026-11-25T12:00:00Z"):
        timed.open(ref)


@pytest.mark.parametrize("ref", ["2026-13-01", "2026-02-30T12:00"])
def test_what_is_no_time_is_said(timed: Repository, ref: str) -> None:
    with pytest.raises(UnknownReferenceError, match="isn't a time"):
        timed.open(ref)


def test_a_time_without_a_zone_is_utc() -> None:
    assert parse_time("1970-01-02") == 86_400.0
    assert parse_time("1970-01-01T01:00+01:00") == 0.0


def test_tags_are_named_where_a_reference_means_nothing(appended: Dataset) -> None:
    for name in ("prod", "next"):
        set_tag(appended, name, author="", reason="", time_seconds=0.0)
    with pytest.raises(UnknownReferenceError, match="versions 1 to 2 and the tags next, prod;"):
        open_dataset(f"{appended.url}@prd")


def test_a_moved_tag_does_not_move_what_is_open(appended: Dataset, dataset: Dataset) -> None:
    set_tag(dataset, "prod", author="", reason="", time_seconds=0.0)
    opened = open_dataset(f"{dataset.url}@prod")
    set_tag(appended, "prod", author="", reason="", time_seconds=0.0)
    assert opened.version == 1
    assert opened.manifest_sha256 == dataset.manifest_sha256
    assert Path(opened.url).is_dir()


def test_a_version_is_found_where_the_datasets_own_file_is_lost(appended: Dataset) -> None:
    (Path(appended.url) / "format.json").unlink()
    assert open_dataset(f"{appended.url}@1").version == 1
    problems = verify_dataset(open_dataset(f"{appended.url}@1")).problems
    assert any("format.json" in problem for problem in problems)
