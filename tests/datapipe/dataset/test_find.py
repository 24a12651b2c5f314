from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.dataset import Dataset, Repository, index_dataset
from datapipe.dataset.document_tables import read_rows
from datapipe.dataset.find import (
    FoundRow,
    Wanted,
    domain_wanted,
    find,
    id_wanted,
    origin_wanted,
    record_wanted,
    tables_of,
    url_wanted,
)
from datapipe.dataset.index import TableName
from datapipe.dataset.parquet import GROUP_ROWS
from datapipe.errors import DamagedError, DatasetError
from datapipe.observe import Progress
from datapipe.testing import commit_small, small_docmap, small_draft
from tiering.errors import StoreError
from tiering.testing import FaultyStore

Pair = tuple[Dataset, Dataset]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The same documents in several shards and versions, without and with indexes."""
    repo = Repository(str(tmp_path_factory.mktemp("pair") / "plain"))
    repo.create()
    sources = {"web": [[2] * 400, [3] * 70], "books": [[9]]}
    commit_small(repo, small_draft(repo, sources, dropped=5))
    indexed = Repository(repo.url + "-indexed")
    shutil.copytree(repo.url, indexed.url)
    index_dataset(indexed, time_seconds=1.0)
    for one in (repo, indexed):
        more = {"web": [[4] * 90], "code": [[1, 2]]}
        draft = small_draft(
            one, more, parent=one.open(), operation="append", dropped=3, seed=5, file="more.jsonl"
        )
        commit_small(one, draft, transaction="more")
    return repo.open(), indexed.open()


def key(row: FoundRow) -> tuple[str, int, int]:
    return row.table.source or "", row.table.number, row.row


def found(dataset: Dataset, wanted: Wanted) -> list[tuple[tuple[str, int, int], dict[str, Any]]]:
    return sorted(((key(row), row.values) for row in find(dataset, wanted)), key=lambda r: r[0])


def all_values(dataset: Dataset, column: str) -> list[Any]:
    table = dataset.documents().to_table(columns=[column])
    return [value for value in table[column].to_pylist() if value is not None]


@settings(max_examples=60)
@given(data=st.data())
def test_an_index_finds_what_a_scan_finds(pair: Pair, data: st.DataObject) -> None:
    plain, indexed = pair
    ids = all_values(plain, "doc_id") + plain.dropped()["doc_id"].to_pylist()
    some_id = data.draw(st.one_of(st.sampled_from(ids), st.binary(min_size=16, max_size=16)))
    digits = data.draw(st.integers(1, 32))
    url_hash = data.draw(
        st.one_of(st.sampled_from(all_values(plain, "url_hash")), st.integers(0, 2**64 - 1))
    )
    domain = data.draw(st.one_of(st.just("example.org"), st.text(max_size=20)))
    for wanted in (id_wanted(some_id.hex()[:digits]), url_wanted(url_hash), domain_wanted(domain)):
        expected = found(plain, wanted)
        assert found(indexed, wanted) == expected
        assert tables_of(plain, wanted) is None
        named = tables_of(indexed, wanted)
        assert named is not None
        assert named >= {TableName(source or None, number) for (source, number, _), _ in expected}


def test_every_document_is_found_by_its_whole_id(pair: Pair) -> None:
    for dataset in pair:
        for doc_id in all_values(dataset, "doc_id")[::97]:
            assert doc_id in [
                row.values["doc_id"] for row in find(dataset, id_wanted(doc_id.hex()))
            ]
        for doc_id in dataset.dropped()["doc_id"].to_pylist():
            rows = find(dataset, id_wanted(doc_id.hex()))
            assert {row.table.source for row in rows} == {None}


def test_records_and_places_are_found_by_scanning(pair: Pair) -> None:
    plain, indexed = pair
    by_record = found(indexed, record_wanted("r7"))
    assert by_record == found(plain, record_wanted("r7"))
    assert len(by_record) >= 2
    (row,) = (row for row in find(indexed, origin_wanted("part0.jsonl", 39_900)))
    assert key(row) == ("web", 0, 399)
    assert list(find(indexed, origin_wanted("part0.jsonl", 39_901))) == []


def test_a_limit_ends_the_search(pair: Pair) -> None:
    for dataset in pair:
        assert len(list(find(dataset, domain_wanted("example.org"), limit=3))) == 3


def test_documents_are_found_in_every_row_group(repo: Repository) -> None:
    count = 2 * GROUP_ROWS["docmap"] + 5
    commit_small(repo, small_draft(repo, {"web": [[1] * count]}))
    index_dataset(repo, time_seconds=1.0)
    dataset = repo.open()
    ids = dataset.docmap("web", 0)["doc_id"]
    places = [0, GROUP_ROWS["docmap"] - 1, GROUP_ROWS["docmap"], count - 1]
    for row in places:
        (one,) = find(dataset, id_wanted(ids[row].as_py().hex()))
        assert (key(one), one.values["doc_id"]) == (("web", 0, row), ids[row].as_py())
    read = read_rows(dataset, TableName("web", 0), places[::-1])
    assert read["token_start"].to_pylist() == places[::-1]
    with pytest.raises(DamagedError, match=f"names row {count} of docmap/"):
        read_rows(dataset, TableName("web", 0), [0, count])


def test_a_few_of_many_documents_are_read_alone(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, indexed = pair
    read: list[int] = []

    def reading(dataset: Dataset, name: TableName, rows: Sequence[int]) -> Any:
        read.append(len(rows))
        return read_rows(dataset, name, rows)

    monkeypatch.setattr("datapipe.dataset.find.read_rows", reading)
    assert len(list(find(indexed, domain_wanted("example.org"), limit=3))) == 3
    assert read == [3]


def test_a_scan_tells_how_far_it_is_and_leaves_out_what_was_read(pair: Pair) -> None:
    plain, _ = pair
    events: list[object] = []

    class Listener:
        def begin(self, phase: str, total: int, unit: str) -> None:
            events.append((phase, total, unit))

        def advance(self, amount: int) -> None:
            events.append(amount)

        def end(self) -> None:
            events.append("end")

        def note(self, message: str) -> None:
            raise AssertionError(message)

    listener: Progress = Listener()
    skip: set[str] = set()
    wanted = record_wanted("r7")
    rows = list(find(plain, wanted, skip=skip, progress=listener))
    assert events == [("looking", 7, "tables"), *[1] * 7, "end"]
    assert rows
    assert list(find(plain, wanted, skip=skip)) == []


@pytest.mark.parametrize("prefix", ["", "0", "00ff", "f" * 32])
def test_any_hex_digits_are_a_prefix(pair: Pair, prefix: str) -> None:
    plain, indexed = pair
    expected = found(plain, id_wanted(prefix))
    assert found(indexed, id_wanted(prefix)) == expected
    assert all(values["doc_id"].hex().startswith(prefix) for _, values in expected)


@pytest.mark.parametrize("prefix", ["xyz", "a b", "-1", "0" * 33])
def test_what_is_no_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match=r"hexadecimal|digits"):
        id_wanted(prefix)


def test_an_index_of_other_rows_is_damage(pair: Pair, tmp_path: Path) -> None:
    repo = Repository(str(tmp_path / "ds"))
    shutil.copytree(pair[1].url, repo.url)
    dataset = repo.open()
    digest = dataset.shards("web").docmap_sha256[1]
    path = next(Path(repo.url).rglob(f"{digest}.parquet"))
    other = next(Path(repo.url).rglob(f"{dataset.shards('web').docmap_sha256[2]}.parquet"))
    doc_id = small_docmap([3] * 70, source="web", file="part0.jsonl", first=400)["doc_id"][5]
    path.write_bytes(other.read_bytes())
    with pytest.raises(DamagedError, match=f"index 'doc'.*doesn't fit.*{digest}"):
        list(find(dataset, id_wanted(doc_id.as_py().hex())))


def test_a_store_that_fails_is_not_damage(pair: Pair) -> None:
    def fault(verb: str, path: str) -> Exception | None:
        is_row = verb == "open" and path.startswith("docmap/")
        return StoreError("the cable is out") if is_row else None

    store = FaultyStore(pair[1].repository.store, fault=fault)
    dataset = Repository.over(store).open()
    doc_id = pair[1].docmap("web", 0)["doc_id"][0].as_py()
    with pytest.raises(DatasetError, match="the cable is out") as raised:
        list(find(dataset, id_wanted(doc_id.hex())))
    assert not isinstance(raised.value, DamagedError)
