from __future__ import annotations

import dataclasses

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from datapipe.dataset import Dataset, Repository, diff_versions
from datapipe.dataset.diff import Amount
from datapipe.testing import commit_small, small_draft
from tiering.testing import FaultyStore


def rebuilt(dataset: Dataset, sources: dict[str, list[list[int]]], **options: int) -> Dataset:
    repo = dataset.repository
    draft = small_draft(repo, sources, parent=dataset, **options)  # type: ignore[arg-type]
    commit_small(repo, draft, transaction="rebuilt")
    return repo.open()


def test_an_append_adds_by_source(dataset: Dataset, appended: Dataset) -> None:
    found = diff_versions(dataset, appended)
    changes = {name: change.after - change.before for name, change in found.sources.items()}
    assert changes == {"web": Amount(3, 9, 30), "books": Amount(), "code": Amount(2, 10, 20)}
    assert found.reasons == {
        "dropped: dedup_exact.duplicate": (2, 3),
        "quarantined: invalid_json": (1, 3),
    }
    assert found.licences == {"CC0-1.0": Amount(5, 19, 50)}
    assert found.languages == {"unknown": Amount(5, 19, 50)}
    assert (found.shards_shared, found.shards_removed, found.shards_added) == (3, 0, 2)
    assert (found.added, found.removed) == (None, None)


def test_backwards_the_signs_turn(dataset: Dataset, appended: Dataset) -> None:
    found = diff_versions(appended, dataset, documents=True)
    assert found.licences == {"CC0-1.0": Amount(-5, -19, -50)}
    assert found.added is not None
    assert found.removed is not None
    assert (found.added.rows.num_rows, found.removed.rows.num_rows) == (0, 5)


def test_a_version_does_not_differ_from_itself(dataset: Dataset) -> None:
    found = diff_versions(dataset, dataset, documents=True)
    assert (found.reasons, found.licences, found.languages) == ({}, {}, {})
    assert found.to_json()["added"] == {"by_reason": {}, "documents": []}


def test_shared_shards_are_not_read(appended: Dataset) -> None:
    read: list[str] = []

    def fault(verb: str, path: str) -> Exception | None:
        if verb in ("get", "open") and path.startswith("docmap/"):
            read.append(path)
        return None

    repo = Repository.over(FaultyStore(appended.repository.store, fault=fault))
    diff_versions(repo.open(1), repo.open(2))
    assert len(read) == 2


def test_documents_that_change_their_shard_stay(dataset: Dataset) -> None:
    again = rebuilt(dataset, {"web": [[3], [4, 5]], "books": [[9]]})
    found = diff_versions(dataset, again, documents=True)
    assert found.shards_removed == found.shards_added == 2
    assert found.added is not None
    assert found.removed is not None
    assert (found.added.rows.num_rows, found.removed.rows.num_rows) == (0, 0)


def test_removed_documents_say_why(dataset: Dataset) -> None:
    repo = dataset.repository
    docmap = dataset.docmap("web", 0)
    draft = small_draft(repo, {"web": [[3]], "books": [[9]]}, parent=dataset, dropped=1)
    assert draft.dropped is not None
    gone = draft.dropped.set_column(0, draft.dropped.schema.field(0), docmap["doc_id"][1:2])
    commit_small(repo, dataclasses.replace(draft, dropped=gone), transaction="rebuilt")
    removed = diff_versions(dataset, repo.open(), documents=True).removed
    assert removed is not None
    rows = removed.rows.to_pylist()
    assert {row["source_offset"]: row["reason"] for row in rows} == {
        100: "dropped: dedup_exact.duplicate",
        200: "not read",
    }
    assert removed.by_reason()["not read"] == Amount(1, 5, 10)


def test_quarantined_documents_say_their_error(dataset: Dataset) -> None:
    repo = dataset.repository
    draft = small_draft(repo, {"web": [[3], [5]], "books": []}, parent=dataset, quarantined=1)
    assert draft.quarantine is not None
    bad = draft.quarantine.to_pylist()
    bad[0].update(source="web", source_file="part0.jsonl", source_offset=200, source_length=100)
    table = pa.Table.from_pylist(bad, schema=draft.quarantine.schema)
    commit_small(repo, dataclasses.replace(draft, quarantine=table), transaction="rebuilt")
    removed = diff_versions(dataset, repo.open(), documents=True).removed
    assert removed is not None
    assert set(removed.rows["reason"].to_pylist()) == {"quarantined: invalid_json", "not read"}


def test_the_json_has_everything(dataset: Dataset, appended: Dataset) -> None:
    data = diff_versions(dataset, appended, documents=True).to_json()
    assert data["sources"]["web"]["change"] == {"documents": 3, "tokens": 9, "text_bytes": 30}
    assert (data["before"], data["after"]) == (1, 2)
    assert len(data["added"]["documents"]) == 5
    assert data["added"]["documents"][0]["source"] == "code"
    assert data["added"]["by_reason"]["not read"]["documents"] == 5
    assert data["shards"] == {"shared": 3, "removed": 0, "added": 2}


@pytest.mark.parametrize("turned", [False, True])
def test_sums_by_licence_are_those_by_source(
    dataset: Dataset, appended: Dataset, turned: bool
) -> None:
    pair = (appended, dataset) if turned else (dataset, appended)
    found = diff_versions(*pair)
    changes = [change.after - change.before for change in found.sources.values()]
    expected = sum(changes, Amount())
    assert sum(found.licences.values(), Amount()) == expected
    assert sum(found.languages.values(), Amount()) == expected


def test_text_bytes_of_documents_add_up(appended: Dataset) -> None:
    for source in appended.sources:
        tables = [appended.docmap(source.name, number) for number in range(source.num_shards)]
        assert sum(pc.sum(t["text_bytes"]).as_py() for t in tables) == source.text_bytes
