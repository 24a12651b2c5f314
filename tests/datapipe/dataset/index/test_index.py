from __future__ import annotations

import dataclasses
import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq
import pytest

from datapipe.dataset import (
    Collector,
    Dataset,
    Repository,
    VersionDraft,
    index_dataset,
    log_entries,
    retire_versions,
    verify_dataset,
)
from datapipe.dataset.index import TableName, domain_key, id_key
from datapipe.dataset.index.complete import MOST_FILES
from datapipe.dataset.layout import INDEX_KINDS
from datapipe.dataset.parquet import GROUP_ROWS
from datapipe.dataset.rebase import index_draft
from datapipe.errors import CommitConflictError, DamagedError, UsageError
from datapipe.testing import commit_small, small_draft

Row = tuple[TableName, int]


def tables(dataset: Dataset) -> Iterator[tuple[TableName, list[dict[str, object]]]]:
    """Yields all tables with rows of documents, read without the index."""
    for source in dataset.sources:
        for number in range(source.num_shards):
            rows = dataset.docmap(source.name, number).to_pylist()
            yield TableName(source.name, number), rows
    rows, start = dataset.dropped().to_pylist(), 0
    for number, file in enumerate(dataset.manifest.files("dropped")):
        yield TableName(None, number), rows[start : start + file.rows]
        start += file.rows


def expected(dataset: Dataset, kind: str) -> Counter[tuple[int, Row]]:
    column = {"doc": "doc_id", "url": "url_hash", "domain": "domain"}[kind]
    found: Counter[tuple[int, Row]] = Counter()
    for table, rows in tables(dataset):
        for number, row in enumerate(rows):
            value = row.get(column)
            if isinstance(value, bytes):
                found[id_key(value), (table, number)] += 1
            elif isinstance(value, str):
                found[domain_key(value), (table, number)] += 1
            elif isinstance(value, int):
                found[value, (table, number)] += 1
    return found


def indexed(dataset: Dataset, kind: str) -> Counter[tuple[int, Row]]:
    index = dataset.index(kind)
    assert index is not None
    return Counter((row.hash, (row.table, row.row)) for row in index.find(0, 2**64 - 1))


def check(dataset: Dataset) -> None:
    for kind in INDEX_KINDS:
        assert indexed(dataset, kind) == expected(dataset, kind)
    assert verify_dataset(dataset).problems == []


def append(repo: Repository, number: int) -> VersionDraft:
    sources = {"web": [[2, 3]] * (number % 3), f"code{number % 2}": [[4] * (number + 1)]}
    return small_draft(
        repo, sources, parent=repo.open(), operation="append", seed=number,
        file=f"more{number}.jsonl", dropped=number % 4,
    )  # fmt: skip


@pytest.fixture(scope="module")
def indexed_template(templates: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indexed") / "ds"
    shutil.copytree(templates / "1", folder)
    index_dataset(Repository(str(folder)), time_seconds=1.0)
    return folder


@pytest.fixture
def with_index(indexed_template: Path, tmp_path: Path) -> Dataset:
    """Version 2: version 1 with all indexes."""
    shutil.copytree(indexed_template, tmp_path / "with_index")
    return Repository(str(tmp_path / "with_index")).open()


def test_an_index_holds_every_row_and_changes_nothing(dataset: Dataset) -> None:
    committed = index_dataset(dataset.repository, time_seconds=1.0, author="ada", reason="to find")
    assert (committed.version, committed.created) == (2, True)
    found = dataset.repository.open()
    assert found.manifest.digests == dataset.manifest.digests
    assert found.manifest.tables == dataset.manifest.tables
    assert found.manifest.totals == dataset.manifest.totals
    assert found.manifest.parents == (dataset.manifest_sha256,)
    entry = log_entries(dataset.repository)[-1]
    assert (entry.operation, entry.author, entry.reason) == ("index", "ada", "to find")
    check(found)


def test_only_missing_indexes_are_made(dataset: Dataset) -> None:
    repo = dataset.repository
    index_dataset(repo, ["doc"], time_seconds=1.0)
    first = repo.open()
    assert list(first.manifest.indexes) == ["doc"]
    assert first.index("url") is None
    assert not index_dataset(repo, ["doc"], time_seconds=2.0).created
    assert index_dataset(repo, time_seconds=3.0).version == 3
    assert repo.open().manifest.indexes["doc"] == first.manifest.indexes["doc"]
    check(repo.open())


def test_an_unknown_kind_is_refused(dataset: Dataset) -> None:
    with pytest.raises(UsageError, match="no index 'title'; nothing was made; there are doc, url"):
        index_dataset(dataset.repository, ["title"], time_seconds=1.0)


def test_appends_keep_indexes_up_in_few_files(with_index: Dataset) -> None:
    repo = with_index.repository
    for number in range(10):
        commit_small(repo, append(repo, number), transaction=f"t{number}")
        latest = repo.open()
        check(latest)
        for files in latest.manifest.indexes.values():
            assert len(files) <= MOST_FILES


def test_a_merged_file_is_the_one_that_is_made_at_once(dataset: Dataset, tmp_path: Path) -> None:
    shutil.copytree(dataset.url, tmp_path / "late")
    early, late = dataset.repository, Repository(str(tmp_path / "late"))
    index_dataset(early, time_seconds=1.0)
    for number in range(MOST_FILES):
        for repo in (early, late):
            commit_small(repo, append(repo, number), transaction=f"t{number}")
    index_dataset(late, time_seconds=1.0)
    for kind, (at_once,) in late.open().manifest.indexes.items():
        assert early.open().manifest.indexes[kind] == (at_once,)


def test_an_append_without_index_before_it_has_none(appended: Dataset) -> None:
    assert appended.manifest.indexes == {}
    assert [appended.index(kind) for kind in INDEX_KINDS] == [None] * 3
    assert b"indexes" not in next(
        path.read_bytes() for path in Path(appended.url).glob("_manifests/*.json")
    )


def test_a_build_has_the_indexes_of_the_version_before(with_index: Dataset) -> None:
    repo = with_index.repository
    build = small_draft(repo, {"web": [[2, 2, 9]]}, parent=with_index, seed=3)
    commit_small(repo, build, transaction="plain")
    assert sorted(repo.open().manifest.indexes) == sorted(INDEX_KINDS)
    check(repo.open())


@pytest.mark.parametrize("operation", ["build", "append"])
def test_a_version_may_ask_for_indexes_or_for_none(
    with_index: Dataset, operation: Literal["build", "append"]
) -> None:
    repo = with_index.repository
    for number, kinds in enumerate([(), ("doc",), INDEX_KINDS]):
        draft = small_draft(
            repo,
            {f"s{number}": [[2, 9]]},
            parent=repo.open(),
            operation=operation,
            seed=number,
            dropped=1,
        )
        asked = dataclasses.replace(draft, indexes=frozenset(kinds))
        commit_small(repo, asked, transaction=f"t{number}")
        assert sorted(repo.open().manifest.indexes) == sorted(kinds)
        assert verify_dataset(repo.open()).problems == []
    check(repo.open())


def test_an_index_follows_an_append_that_was_faster(dataset: Dataset) -> None:
    repo = dataset.repository
    late = index_draft(dataset, frozenset(["doc", "url", "domain"]))
    commit_small(repo, append(repo, 2), transaction="theirs")
    committed = commit_small(repo, late, transaction="index")
    assert (committed.version, committed.created) == (3, True)
    check(repo.open())


def test_an_append_follows_an_index_that_was_faster(dataset: Dataset) -> None:
    repo = dataset.repository
    late = append(repo, 2)
    index_dataset(repo, time_seconds=1.0)
    assert commit_small(repo, late, transaction="late").version == 3
    assert repo.open().manifest.operation == "append"
    check(repo.open())


def test_an_index_over_a_build_is_a_conflict(dataset: Dataset) -> None:
    repo = dataset.repository
    late = index_draft(dataset, frozenset(["doc"]))
    commit_small(repo, small_draft(repo, {"web": [[9]]}, parent=dataset, seed=3), transaction="b")
    with pytest.raises(CommitConflictError, match="build"):
        commit_small(repo, late, transaction="index")


def test_a_dataset_without_documents_has_empty_indexes(repo: Repository) -> None:
    commit_small(repo, small_draft(repo, {"web": []}))
    index_dataset(repo, time_seconds=1.0)
    check(repo.open())
    commit_small(repo, append(repo, 2), transaction="more")
    check(repo.open())


def test_a_large_file_of_dropped_rows_is_indexed_in_parts(repo: Repository) -> None:
    rows = GROUP_ROWS["dropped"] + 10
    commit_small(repo, small_draft(repo, {"web": [[2]]}, dropped=rows))
    index_dataset(repo, ["doc"], time_seconds=1.0)
    index = repo.open().index("doc")
    assert index is not None
    ids = repo.open().dropped()["doc_id"]
    for row in (0, GROUP_ROWS["dropped"] - 1, GROUP_ROWS["dropped"], rows - 1):
        found = index.find(id_key(ids[row].as_py()))
        assert [(hit.table, hit.row) for hit in found] == [(TableName(None, 0), row)]


def test_nobody_needs_an_index_of_a_retired_version(with_index: Dataset) -> None:
    repo = with_index.repository
    collector = Collector(repo, grace_seconds=0)
    assert collector.find().objects == ()
    build = small_draft(repo, {"web": [[9]]}, parent=with_index, seed=3)
    commit_small(repo, dataclasses.replace(build, indexes=frozenset()), transaction="b")
    assert collector.find().objects == ()
    retire_versions(
        repo.store, log_entries(repo)[:2], author="", reason="old", time_seconds=2.0
    )  # fmt: skip
    assert len({path for path in map(str, collector.find().by_folder()) if path == "index"}) == 1
    assert {info.path for info in repo.store.list("index/")} <= {
        info.path for info in collector.find().objects
    }


def test_a_document_is_found_by_following_the_format(with_index: Dataset) -> None:
    root = Path(with_index.url)
    doc_id = with_index.docmap("web", 0)["doc_id"][1].as_py()
    wanted = int.from_bytes(doc_id[:8], "big")
    manifest = json.loads((root / f"_manifests/{with_index.manifest_sha256}.json").read_bytes())
    (file,) = manifest["indexes"]["doc"]
    table = pq.read_table(root / f"index/doc/{file['sha256']}.parquet")
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("hash", "uint64"),
        ("table", "int32"),
        ("row", "int32"),
    ]
    (row,) = (row for row in table.to_pylist() if row["hash"] == wanted)
    numbered = [
        (shards["source"], number)
        for shards in file["shards"]
        for number in range(shards["first"], shards["end"])
    ]
    source, number = numbered[row["table"]]
    assert with_index.docmap(source, number)["doc_id"][row["row"]].as_py() == doc_id


def test_a_dataset_that_is_opened_anew_reads_no_footer_again(
    with_index: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    footers: list[object] = []
    parquet_file = pq.ParquetFile

    def opening(*args: Any, **options: Any) -> pq.ParquetFile:
        footers.append(options.get("metadata"))
        return parquet_file(*args, **options)

    monkeypatch.setattr(pq, "ParquetFile", opening)
    for _ in range(2):
        index = with_index.repository.open().index("doc")
        assert index is not None
        assert list(index.find(0)) == []
    assert footers[0] is None
    assert footers[1] is not None


@pytest.mark.parametrize("kind", INDEX_KINDS)
@pytest.mark.parametrize("what", ["flip", "cut", "delete", "swap"])
def test_damage_is_named(with_index: Dataset, kind: str, what: str) -> None:
    (path,) = (Path(with_index.url) / "index" / kind).glob("*.parquet")
    data, rng = bytearray(path.read_bytes()), random.Random(1)
    if what == "flip":
        data[rng.randrange(len(data))] ^= 1
    path.unlink()
    if what == "swap":
        other = next((Path(with_index.url) / "dropped").glob("*.parquet"))
        data = bytearray(other.read_bytes())
    if what != "delete":
        path.write_bytes(data[: len(data) // 2] if what == "cut" else data)
    problems = verify_dataset(with_index).problems
    assert problems
    assert all(f"index/{kind}/{path.stem}" in problem for problem in problems)
    if what != "flip":
        with pytest.raises(DamagedError, match=f"index/{kind}/{path.stem}"):
            indexed(with_index, kind)
