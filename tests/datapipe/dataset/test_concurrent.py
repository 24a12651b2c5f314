"""Many processes append at once: every append is a version, and no row is lost."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from datapipe.dataset import Dataset, Repository, index_dataset, log_entries, verify_dataset
from datapipe.dataset.find import find, id_wanted
from datapipe.testing import commit_small, small_draft, start_appender
from tiering.testing import S3Server


def append_from_many(first: Dataset, *, processes: int, appends: int) -> None:
    """Appends from many processes at once, and checks that nothing of it is lost."""
    url, total = first.url, processes * appends
    names = [f"p{number}" for number in range(processes)]
    running = [start_appender(url, name, appends) for name in names]
    assert [process.wait() for process in running] == [0] * processes
    entries = log_entries(Repository(url))
    assert [entry.version for entry in entries] == list(range(1, total + 2))
    committed = {entry.transaction for entry in entries[1:]}
    assert committed == {f"{n}-{k}" for n in names for k in range(appends)}
    latest = Repository(url).open()
    assert latest.manifest.totals.kept == first.manifest.totals.kept + 3 * total
    files = latest.inputs()["file"].to_pylist()
    assert {f"{n}-{k}.jsonl" for n in names for k in range(appends)} <= set(files)
    shards = latest.shards("web")
    assert len(shards) == len(first.shards("web")) + total
    assert len(set(shards.docmap_sha256)) == len(shards)
    assert verify_dataset(latest).problems == []
    assert list(latest.repository.store.list("_transactions/")) == []


@pytest.mark.parametrize(
    ("processes", "appends"),
    [(4, 5), pytest.param(8, 20, marks=pytest.mark.slow)],
    ids=["4x5", "8x20"],
)
def test_every_append_of_many_processes_is_a_version(
    dataset: Dataset, processes: int, appends: int
) -> None:
    append_from_many(dataset, processes=processes, appends=appends)
    assert list((Path(dataset.url) / "_transactions").glob("*")) == []


@pytest.mark.s3
@pytest.mark.parametrize(
    ("processes", "appends"),
    [(3, 2), pytest.param(8, 20, marks=pytest.mark.slow)],
    ids=["3x2", "8x20"],
)
def test_every_append_to_s3_is_a_version(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, processes: int, appends: int
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    repository = Repository(f"s3://bucket/{uuid.uuid4().hex}")
    repository.create()
    commit_small(repository, small_draft(repository, {"web": [[3, 4], [5]], "books": [[9]]}))
    append_from_many(repository.open(), processes=processes, appends=appends)


def test_indexes_are_whole_after_appends_of_many_processes(dataset: Dataset) -> None:
    index_dataset(dataset.repository, time_seconds=1.0)
    running = [start_appender(dataset.url, f"p{number}", 3) for number in range(3)]
    assert [process.wait() for process in running] == [0] * 3
    latest = Repository(dataset.url).open()
    assert latest.version == 2 + 9
    totals = latest.manifest.totals
    rows = sum(file.rows for file in latest.manifest.indexes["doc"])
    assert rows == totals.kept + totals.dropped
    for source in latest.sources:
        for number in range(source.num_shards):
            for doc_id in latest.docmap(source.name, number)["doc_id"].to_pylist():
                places = [row.table for row in find(latest, id_wanted(doc_id.hex()))]
                assert (source.name, number) in places
    assert verify_dataset(latest).problems == []
