from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from datapipe.dataset import Dataset, Repository
from datapipe.dataset.documents import DOCUMENT_COLUMNS, documents_of
from datapipe.dataset.index import TableName
from datapipe.testing import commit_small, small_draft


class Unlisted:
    """A store that can't be listed and counts what is opened."""

    def __init__(self, store: Any) -> None:
        self._store, self.opened = store, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[Any]:
        raise AssertionError(f"{prefix!r} was listed after {after!r}")

    def open(self, path: str) -> Any:
        self.opened.append(path)
        return self._store.open(path)


def rows_by_docmap(dataset: Dataset) -> list[dict[str, Any]]:
    return [
        {**row, "source": source.name, "shard": number}
        for source in dataset.sources
        for number in range(source.num_shards)
        for row in dataset.docmap(source.name, number).to_pylist()
    ]


def test_documents_are_the_rows_of_all_docmaps_in_order(appended: Dataset) -> None:
    documents = appended.documents()
    assert documents.schema == DOCUMENT_COLUMNS
    table = documents.to_table()
    assert table.schema == DOCUMENT_COLUMNS
    assert table.to_pylist() == rows_by_docmap(appended)
    assert documents.count_rows() == appended.manifest.totals.kept


def test_only_shards_that_are_meant_are_read(appended: Dataset) -> None:
    store = Unlisted(appended.repository.store)
    dataset = Repository.over(store).open()
    documents = dataset.documents()
    assert store.opened == []
    in_code = (pc.field("source") == "code") & (pc.field("shard") == 0)
    assert documents.to_table(filter=in_code)["num_tokens"].to_pylist() == [9, 1]
    (digest,) = dataset.shards("code").docmap_sha256
    assert {Path(path).stem for path in store.opened} == {digest}


def test_they_can_be_filtered_by_any_column(appended: Dataset) -> None:
    found = appended.documents().to_table(
        filter=(pc.field("domain") == "example.org") & (pc.field("licence") == "CC0-1.0")
    )
    expected = [row for row in rows_by_docmap(appended) if row["domain"] == "example.org"]
    assert found.to_pylist() == expected != []
    tables = {TableName("web", 1), TableName("books", 0)}
    some = documents_of(appended, tables).to_table(columns=["source", "shard"])
    assert set(zip(*some.to_pydict().values(), strict=True)) == {("web", 1), ("books", 0)}


def test_dropped_rows_are_those_of_the_table(appended: Dataset) -> None:
    lazy = appended.dropped_rows().to_table()
    assert lazy.schema == appended.dropped().schema
    assert lazy.to_pylist() == appended.dropped().to_pylist() != []


def test_a_version_without_documents_has_none(repo: Repository) -> None:
    commit_small(repo, small_draft(repo, {"web": []}))
    assert repo.open().documents().to_table() == DOCUMENT_COLUMNS.empty_table()
    assert repo.open().dropped_rows().count_rows() == 0


def test_names_of_sources_are_only_names(repo: Repository) -> None:
    hostile = "../we'b; drop \u00fcber=1/%2F"
    commit_small(repo, small_draft(repo, {hostile: [[2, 3]], "web": [[4]]}))
    documents = repo.open().documents()
    assert documents.to_table()["source"].to_pylist() == [hostile, hostile, "web"]
    assert documents.to_table(filter=pc.field("source") == hostile).num_rows == 2


def test_a_missing_docmap_is_an_error(dataset: Dataset) -> None:
    digest = dataset.shards("web").docmap_sha256[0]
    next(Path(dataset.url).rglob(f"{digest}.parquet")).unlink()
    with pytest.raises(FileNotFoundError, match=digest):
        dataset.documents().to_table()
    assert isinstance(dataset.documents().schema, pa.Schema)
