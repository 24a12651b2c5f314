from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from datapipe.dataset import Dataset, Repository, index_dataset
from datapipe.errors import DatasetError, MissingExtraError, UsageError
from datapipe.lineage.sql import VIEWS, open_sql, rows_where
from datapipe.testing import commit_small, small_draft

pytest.importorskip("duckdb", reason="duckdb isn't installed")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    repo = Repository(str(tmp_path_factory.mktemp("sql") / "ds"))
    repo.create()
    sources = {"web": [[3, 4], [5] * 30], "books": [[9]]}
    commit_small(repo, small_draft(repo, sources, dropped=2, quarantined=1))
    return repo.open()


def rows(dataset: Dataset | str, statement: str) -> list[dict[str, Any]]:
    with open_sql(dataset, statement) as found:
        return [row for batch in found.batches() for row in batch.to_pylist()]


def test_documents_are_counted_by_source(dataset: Dataset) -> None:
    statement = "select source, count(*) as n, sum(num_tokens) as t from documents group by source"
    found = sorted(tuple(map(str, row.values())) for row in rows(dataset, statement))
    assert found == [("books", "1", "9"), ("web", "32", "157")]


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_the_columns_and_rows_of_its_table(dataset: Dataset, view: str) -> None:
    tables = {
        "documents": lambda: dataset.documents().to_table(),
        "dropped": dataset.dropped,
        "shards": lambda: dataset.whole_table("shards"),
        "quarantine": dataset.quarantine,
        "signals": dataset.signals,
    }
    expected = tables[view]()
    found = rows(dataset, f"select * from {view}")
    assert len(found) == expected.num_rows
    assert bool(found) == (view != "signals")
    with open_sql(dataset, f"select * from {view}") as opened:
        assert list(opened.columns) == expected.column_names
    for row, values in zip(found, expected.to_pylist(), strict=True):
        for name, value in values.items():
            if isinstance(value, bytes) and name != "raw":
                assert row[name] == value.hex()
            elif name == "url_hash":
                assert row[name] == (None if value is None else f"{value:016x}")
            else:
                assert row[name] == value, name


def test_hashes_are_compared_as_hex(dataset: Dataset) -> None:
    doc_id = dataset.docmap("web", 0)["doc_id"][1].as_py().hex()
    (row,) = rows(dataset, f"select num_tokens from documents where doc_id = '{doc_id}'")
    assert row == {"num_tokens": 4}


def test_an_url_opens_the_latest_version(dataset: Dataset) -> None:
    assert rows(dataset.url, "select count(*) as n from dropped") == [{"n": 2}]


def test_results_come_in_batches_and_need_not_be_read_to_the_end(dataset: Dataset) -> None:
    with open_sql(dataset, "select range as n from range(100000000000)") as found:
        batches = found.batches()
        assert (next(batches).num_rows, next(batches).num_rows) == (0, 10_000)


def test_no_rows_have_columns_all_the_same(dataset: Dataset) -> None:
    with open_sql(dataset, "select doc_id, shard from documents where false") as found:
        assert found.columns == ("doc_id", "shard")
        assert [batch.num_rows for batch in found.batches()] == [0]


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "secret.csv"
    path.write_text("canary\n1\n")
    yield path
    assert [found.name for found in tmp_path.iterdir()] == ["secret.csv"]
    assert path.read_text() == "canary\n1\n"


@pytest.mark.parametrize(
    "statement",
    [
        "select * from read_csv('{path}')",
        "select * from read_text('{path}')",
        "select * from '{path}'",
        "select * from glob('{folder}/*')",
        "select * from parquet_scan('{path}')",
        "copy (select 1) to '{folder}/out.csv'",
        "attach '{folder}/other.db'",
        "explain analyze copy (select 1) to ':memory:' (format csv)",
        "explain analyze create table t as select 1",
        "export database '{folder}/export'",
        "import database '{folder}'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "reset enable_external_access",
        "set lock_configuration = false",
        "pragma enable_external_access = true",
        "pragma table_info('documents')",
        "pragma add_parquet_key('key', '0123456789112345')",
        "call enable_logging(storage = 'file', storage_path = '{folder}/log')",
        "prepare one as select 1",
        "execute one",
        "use memory",
        "with x as (copy (select 1) to '{folder}/out.csv') select 1",
        "select * from json_execute_serialized_sql(json_serialize_sql("
        "'from read_text(''{path}'')'))",
        "pivot read_csv('{path}') on canary",
        "summarize '{path}'",
        "select * from read_text(current_setting('temp_directory') || '/../{path}')",
        "set allowed_directories = ['{folder}']",
        "select * from read_csv('http://127.0.0.1:9/x')",
        "select * from read_csv('s3://bucket/x')",
        "create table t as select 1",
        "drop view documents",
        "delete from documents",
        "insert into documents select * from documents",
        "select 1; select 2",
        "select 1; copy (select 1) to '{folder}/out.csv'",
        "select * from secret_table",
        "select * from dataset",
        "",
        " ; ",
        "-- nothing",
        "selec 1",
        "select nope from documents",
        "select cast('x' as int) from documents",
        "select 1 as a, 2 as a",
        "'",
        "with recursive",
        "select * from pandas_scan(1)",
    ],
)
def test_a_statement_sees_nothing_but_the_views(
    dataset: Dataset, secret: Path, statement: str
) -> None:
    secret_table = {"canary": [1]}
    with pytest.raises(UsageError) as raised:
        rows(dataset, statement.format(path=secret, folder=secret.parent))
    assert "\n" not in str(raised.value)
    assert secret_table


_READERS = (
    "read_text read_blob read_csv read_json read_json_objects read_ndjson_objects read_parquet "
    "parquet_metadata parquet_schema sniff_csv glob"
)


@pytest.mark.parametrize("reader", _READERS.split())
@pytest.mark.parametrize(
    "name", [":memory:", "./:memory:", "{here}/:memory:", ":memory:.wal", "file://{here}/:memory:"]
)
def test_no_file_is_open_under_the_name_of_the_database(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in (":memory:", ":memory:.wal"):
        Path(file).write_text("canary\n1\n")
    with pytest.raises(UsageError, match="disabled by configuration"):
        rows(dataset, f"select * from {reader}('{name.format(here=tmp_path)}')")


@pytest.mark.parametrize("name", [":memory:", ":memory:.wal"])
def test_no_file_is_written_under_the_name_of_the_database(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError):
        rows(dataset, f"with x as (copy (select 1) to '{name}' (format csv)) select 1")
    assert list(tmp_path.iterdir()) == []


def test_only_the_folder_for_spilled_rows_is_open(dataset: Dataset) -> None:
    names = ("allowed_paths", "allowed_directories", "temp_directory", "enable_external_access")
    found = rows(dataset, f"select name, value from duckdb_settings() where name in {names}")
    settings = {row["name"]: row["value"] for row in found}
    folder = settings["temp_directory"]
    assert settings == {
        "allowed_paths": "[]",
        "allowed_directories": f"[{folder}/]",
        "temp_directory": folder,
        "enable_external_access": "false",
    }
    assert Path(folder).name.startswith("datapipe-sql-")
    assert rows(dataset, "select * from glob(current_setting('temp_directory') || '/*')") == []


def test_an_error_names_the_views(dataset: Dataset) -> None:
    with pytest.raises(UsageError, match=r"document does not exist.*views are documents, dropped"):
        rows(dataset, "select * from document")


@pytest.mark.parametrize("what", ["gone", "cut"])
def test_damage_is_not_taken_for_a_wrong_statement(tmp_path: Path, what: str) -> None:
    repo = Repository(str(tmp_path / "ds"))
    repo.create()
    commit_small(repo, small_draft(repo, {"web": [[3, 4], [5] * 30]}))
    digest = repo.open().shards("web").docmap_sha256[1]
    path = next(Path(repo.url).rglob(f"{digest}.parquet"))
    data = path.read_bytes()
    path.unlink()
    if what == "cut":
        path.write_bytes(data[:-9])
    with pytest.raises(DatasetError, match=rf"isn't whole.*{digest}.*verify"):
        rows(repo.open(), "select * from documents")


def test_without_duckdb_it_says_what_to_install(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'datapipe-train\[sql\]'"):
        rows(dataset, "select 1")


# -- documents by a condition


def where(dataset: Dataset, condition: str, **options: Any) -> list[dict[str, Any]]:
    with rows_where(dataset, condition, **options) as found:
        return [row for batch in found.batches() for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("true", 33),
        ("source = 'books' -- a comment", 1),
        ("num_tokens > 4 or shard = 7", 31),
        ("domain = 'example.org' and language is null", 21),
        ("false) or (true", 33),
    ],
)
def test_documents_are_listed_by_any_column(dataset: Dataset, condition: str, count: int) -> None:
    assert len(where(dataset, condition)) == count


@pytest.mark.parametrize(
    "condition", ["true); drop view documents; --", "nope = 1", "", "1 = 1) union all select (2"]
)
def test_a_condition_that_is_none_is_refused(dataset: Dataset, condition: str) -> None:
    with pytest.raises(UsageError):
        where(dataset, condition)


def test_a_limit_ends_the_list(dataset: Dataset) -> None:
    assert len(where(dataset, "true", limit=3)) == 3


@pytest.mark.parametrize("domain", ["example.org", "none.example", "' or true --", "ex'ample"])
def test_a_domain_is_the_same_with_and_without_index(
    dataset: Dataset, tmp_path: Path, domain: str
) -> None:
    shutil.copytree(dataset.url, tmp_path / "ds")
    repo = Repository(str(tmp_path / "ds"))
    index_dataset(repo, ["domain"], time_seconds=1.0)
    expected = where(dataset, "num_tokens > 3", domain=domain)
    assert where(repo.open(), "num_tokens > 3", domain=domain) == expected
    assert bool(expected) == (domain == "example.org")
