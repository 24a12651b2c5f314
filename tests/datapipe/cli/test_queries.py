from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from datapipe.cli.main import main
from datapipe.dataset import Repository, open_dataset
from datapipe.testing import commit_small, small_draft

pytest.importorskip("duckdb", reason="duckdb isn't installed")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Runs the command line in this process; returns exit code, output and messages."""

    def run(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exited:
            main([str(word) for word in words])
        out, err = capfdbinary.readouterr()
        return int(exited.value.code or 0), out.decode(), err.decode()

    return run


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    repo = Repository(str(tmp_path / "ds"))
    repo.create()
    commit_small(repo, small_draft(repo, {"web": [[3, 4], [5]]}, dropped=1, quarantined=1))
    more = {"web": [[2] * 1500], "books": [[9]]}
    draft = small_draft(repo, more, parent=repo.open(), operation="append", dropped=1, seed=2)
    commit_small(repo, draft, transaction="more")
    return repo.url


BY_SOURCE = "select source, count(*) as n, sum(num_tokens) as t from documents group by source"
EXPECTED = [{"source": "web", "n": 1503, "t": 3012}, {"source": "books", "n": 1, "t": 9}]


def by_name(rows: Any) -> list[Any]:
    return sorted(rows, key=lambda row: str(row["source"]), reverse=True)


def test_sql_prints_a_table(run: Run, dataset: str) -> None:
    code, out, err = run("sql", dataset, BY_SOURCE + " order by n")
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [
        ["source", "n", "t"],
        ["books", "1", "9"],
        ["web", "1,503", "3,012"],
    ]


def test_sql_prints_json_and_csv(run: Run, dataset: str) -> None:
    code, out, _ = run("sql", dataset, BY_SOURCE, "--json")
    assert (code, by_name(json.loads(out))) == (0, EXPECTED)
    _, out, _ = run("sql", dataset, BY_SOURCE, "--csv")
    rows = by_name(csv.DictReader(io.StringIO(out)))
    assert rows == [{name: str(value) for name, value in row.items()} for row in EXPECTED]


def test_sql_of_an_earlier_version(run: Run, dataset: str) -> None:
    _, out, _ = run("sql", f"{dataset}@1", "select count(*) as n from documents", "--json")
    assert json.loads(out) == [{"n": 3}]


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "jsonl"])
def test_sql_writes_a_file(run: Run, dataset: str, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    assert run("sql", dataset, BY_SOURCE, "--out", path) == (0, "", "")
    text = "" if ending == "parquet" else path.read_text()
    read: dict[str, Callable[[], list[Any]]] = {
        "parquet": lambda: [{**row, "t": int(row["t"])} for row in pq.read_table(path).to_pylist()],
        "csv": lambda: [
            {name: value if name == "source" else int(value) for name, value in row.items()}
            for row in csv.DictReader(io.StringIO(text))
        ],
        "json": lambda: list(json.loads(text)),
        "jsonl": lambda: [json.loads(line) for line in text.splitlines()],
    }
    rows = read[ending]()
    assert by_name(rows) == EXPECTED
    assert sorted(found.name for found in tmp_path.iterdir()) == ["ds", path.name]


@pytest.mark.parametrize(
    ("option", "expected"),
    [("--json", "[\n]\n"), ("--csv", "doc_id\n"), (None, "doc_id\n")],
    ids=["json", "csv", "table"],
)
def test_no_rows_are_printed_as_none(
    run: Run, dataset: str, option: str | None, expected: str
) -> None:
    words = [option] if option else []
    statement = "select doc_id from documents where false"
    assert run("sql", dataset, statement, *words) == (0, expected, "")


def test_a_table_of_many_rows_has_all_of_them(run: Run, dataset: str) -> None:
    _, out, _ = run("sql", dataset, "select doc_id from documents")
    assert len({line.strip() for line in out.splitlines()}) == 1504 + 1
    _, out, _ = run("sql", dataset, "select raw, null as nothing from quarantine", "--json")
    assert json.loads(out) == [{"raw": "{\\xFF", "nothing": None}]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["select nope from documents"], "nope"),
        (["select 1; select 2"], "2 statements"),
        (["drop view documents"], "DROP"),
        (["select 1", "--out", "x.xls"], "none of the endings"),
        (["select 1", "--csv", "--out", "x.json"], "give one"),
    ],
    ids=["column", "two", "drop", "ending", "two formats"],
)
def test_a_wrong_statement_is_one_line_and_exit_code_2(
    run: Run, dataset: str, words: list[str], message: str
) -> None:
    code, out, err = run("sql", dataset, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_file_that_can_not_be_written_is_one_line(run: Run, dataset: str) -> None:
    code, _, err = run("sql", dataset, "select 1", "--out", "/nowhere/out.csv")
    assert (code, err.count("\n")) == (1, 1)


# -- index, why, docs


def test_index_makes_what_is_missing(run: Run, dataset: str) -> None:
    code, out, _ = run("index", dataset, "--doc", "--dry-run", "--json")
    assert (code, json.loads(out)["made"], open_dataset(dataset).version) == (0, ["doc"], 2)
    _, out, _ = run("index", dataset, "--doc", "--json", "--author", "ann", "-m", "to find")
    found = json.loads(out)
    assert (found["version"], found["made"], found["indexes"]["doc"]["rows"]) == (3, ["doc"], 1506)
    _, out, _ = run("index", dataset, "-q")
    assert "url, domain made, version 4" in out
    _, out, _ = run("index", dataset)
    assert "there are no others to be made" in out
    _, out, _ = run("log", dataset, "--json")
    entry = next(entry for entry in json.loads(out) if entry["version"] == 3)
    assert (entry["operation"], entry["author"], entry["reason"]) == ("index", "ann", "to find")


@pytest.mark.parametrize("indexed", [False, True], ids=["scan", "index"])
def test_why_says_what_became_of_a_document(run: Run, dataset: str, indexed: bool) -> None:
    if indexed:
        assert run("index", dataset, "-q")[0] == 0
    opened = open_dataset(dataset)
    kept = opened.docmap("web", 1)["doc_id"][0].as_py().hex()
    dropped = opened.dropped()["doc_id"][0].as_py().hex()
    code, out, err = run("lineage", "why", dataset, kept)
    assert (code, "shard 1, tokens 0 to 5 (5)" in out) == (0, True)
    assert ("looking" in err) == (not indexed)
    (answer,) = json.loads(run("lineage", "why", dataset, kept[:10], "--json", "-q")[1])
    assert (answer["outcome"], answer["doc_id"], answer["shard"]) == ("kept", kept, 1)
    assert "by dedup_exact.duplicate" in run("lineage", "why", dataset, dropped, "-q")[1]
    out = run("lineage", "why", dataset, "--file", "bad.jsonl", "--offset", 0, "-q")[1]
    assert "error invalid_json" in out


@pytest.mark.parametrize(
    "words",
    [[], ["a", "--url", "b"], ["--file", "a"], ["--offset", "1"], ["a", "--offset", "1"], ["nix"]],
    ids=["nothing", "two", "no offset", "no file", "offset of an id", "unknown"],
)
def test_why_needs_one_way_to_name_a_document(run: Run, dataset: str, words: list[str]) -> None:
    code, out, err = run("lineage", "why", dataset, *words, "-q")
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_docs_lists_documents_by_condition(run: Run, dataset: str) -> None:
    _, out, _ = run("lineage", "docs", dataset, "--where", "source = 'books'", "--json")
    (found,) = json.loads(out)
    assert (found["source"], found["num_tokens"]) == ("books", 9)
    words = ["--domain", "example.org", "--limit", 2, "--json"]
    before = json.loads(run("lineage", "docs", dataset, *words)[1])
    run("index", dataset, "--domain", "-q")
    assert json.loads(run("lineage", "docs", dataset, *words)[1]) == before
    assert [row["domain"] for row in before] == ["example.org"] * 2
    code, _, err = run("lineage", "docs", dataset, "--where", "nope = 1")
    assert (code, err.count("\n")) == (2, 1)
