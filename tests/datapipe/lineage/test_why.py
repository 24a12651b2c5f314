from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from datapipe.dataset import Dataset, Repository, index_dataset, open_dataset
from datapipe.engine import BuildOptions, Request, append_dataset, build_dataset
from datapipe.errors import UnknownReferenceError, UsageError
from datapipe.lineage import read_documents
from datapipe.lineage.why import why_document, why_record, why_url
from datapipe.testing import commit_small, small_draft

RECIPE = """
name: asked
inputs: [{source: web, paths: [raw/*.jsonl], fields: {text: text, id: id, url: url}}]
stages: [normalize: {}, drop_empty: {}, dedup_exact: {}]
tokenize: {tokenizer: tokenizer.json}
guards: {max_quarantined_fraction: 0.9, max_dropped_fraction_per_source: 0.9}
"""


def record(name: str, text: str, url: str | None = None) -> str:
    return json.dumps({"id": name, "text": text, "url": url or f"https://example.org/{name}"})


FIRST = [
    *(record(f"d{n}", f"the fox number {n} jumps") for n in range(20)),
    record("same", "the fox number 3 jumps", url="https://mirror.example.net/d3"),
    record("empty", "  "),
    '{"id": "cut", "text": ',
    record("last", "a lazy dog", url="https://example.org/d5"),
]
SECOND = [record("late", "the fox number 7 jumps"), record("new", "seven wizards")]


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines))


@pytest.fixture(scope="module")
def built(tokenizer_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset: a build and an append, which the same folder holds without and with an index."""
    folder = tmp_path_factory.mktemp("why")
    shutil.copy(tokenizer_path, folder / "tokenizer.json")
    (folder / "recipe.yaml").write_text(RECIPE)
    write(folder / "raw" / "first.jsonl", FIRST)
    options = BuildOptions(workers=1)
    recipe = Request(inputs=(str(folder / "recipe.yaml"),))
    build_dataset(recipe, out=str(folder / "plain"), options=options)
    write(folder / "raw" / "second.jsonl", SECOND)
    append_dataset(str(folder / "plain"), recipe, options=options)
    shutil.copytree(folder / "plain", folder / "indexed")
    index_dataset(Repository(str(folder / "indexed")), time_seconds=1.0)
    return folder


@pytest.fixture(params=["plain", "indexed"])
def dataset(built: Path, request: pytest.FixtureRequest) -> Dataset:
    return open_dataset(str(built / request.param))


def ids(dataset: Dataset) -> dict[str, str]:
    """Returns doc_ids by record id, of kept and dropped documents."""
    kept = dataset.documents().to_table(columns=["record_id", "doc_id"]).to_pylist()
    rows = kept + dataset.dropped().select(["record_id", "doc_id"]).to_pylist()
    return {row["record_id"]: row["doc_id"].hex() for row in rows}


def offsets(lines: list[str]) -> list[int]:
    return [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))]


def test_every_record_that_was_read_has_an_answer(dataset: Dataset) -> None:
    outcomes: Counter[str] = Counter()
    for file, lines in (("first.jsonl", FIRST), ("second.jsonl", SECOND)):
        for line, offset in zip(lines, offsets(lines), strict=True):
            (fate,) = why_record(dataset, file=file, offset=offset)
            outcomes[fate.outcome] += 1
            if fate.outcome == "quarantined":
                assert fate.values["raw"] == line
                continue
            assert fate.values["record_id"] == json.loads(line)["id"]
            assert why_document(dataset, fate.values["doc_id"]) == [fate]
            assert fate in why_url(dataset, json.loads(line)["url"])
    totals = dataset.manifest.totals
    assert outcomes == {
        "kept": totals.kept,
        "dropped": totals.dropped,
        "quarantined": totals.quarantined,
    }
    assert totals.dropped == 3


def test_a_kept_document_is_where_it_says(dataset: Dataset) -> None:
    (fate,) = why_document(dataset, ids(dataset)["d4"])
    answer = fate.to_json()
    assert (answer["outcome"], answer["version"]) == ("kept", dataset.version)
    place = answer["source"], answer["shard"], answer["token_start"], answer["num_tokens"]
    (text,) = (document["text"] for document in read_documents(dataset, doc="d4"))
    assert text == "the fox number 4 jumps"
    docmap = dataset.docmap(answer["source"], answer["shard"]).to_pylist()
    assert place[2:] in [(row["token_start"], row["num_tokens"]) for row in docmap]
    json.dumps(answer, default=str)


@pytest.mark.parametrize(("name", "of"), [("same", "d3"), ("late", "d7")])
def test_a_duplicate_names_what_stayed_in_its_place(dataset: Dataset, name: str, of: str) -> None:
    known = ids(dataset)
    (answer,) = [fate.to_json() for fate in why_document(dataset, known[name])]
    assert (answer["outcome"], answer["stage"], answer["rule"]) == (
        "dropped",
        "dedup_exact",
        "duplicate",
    )
    assert answer["survivor"] == known[of]
    (survivor,) = answer["survivors"]
    assert (survivor["outcome"], survivor["record_id"]) == ("kept", of)
    assert survivor["shard"] == 0


def test_an_empty_document_names_its_rule(dataset: Dataset) -> None:
    (answer,) = [fate.to_json() for fate in why_document(dataset, "empty")]
    assert (answer["outcome"], answer["stage"]) == ("dropped", "drop_empty")
    assert "survivors" not in answer


def test_a_url_answers_for_all_its_documents(dataset: Dataset) -> None:
    fates = why_url(dataset, "https://example.org/d5")
    assert sorted(fate.values["record_id"] for fate in fates) == ["d5", "last"]


@pytest.mark.parametrize("form", ["whole", "upper", "prefix", "record id"])
def test_a_document_is_named_in_several_ways(dataset: Dataset, form: str) -> None:
    doc_id = ids(dataset)["d9"]
    named = {"whole": doc_id, "upper": doc_id.upper(), "prefix": doc_id[:13], "record id": "d9"}
    (fate,) = why_document(dataset, named[form])
    assert fate.values["record_id"] == "d9"


def test_a_prefix_of_several_documents_is_refused(tmp_path: Path) -> None:
    repo = Repository(str(tmp_path / "ds"))
    repo.create()
    commit_small(repo, small_draft(repo, {"web": [[1] * 2000]}))
    found = repo.open().documents().to_table()["doc_id"].to_pylist()
    counts = Counter(doc_id.hex()[:4] for doc_id in found)
    prefix = counts.most_common()[0][0]
    with pytest.raises(UnknownReferenceError, match=rf"documents .* begin with {prefix}: "):
        why_document(repo.open(), prefix)


@pytest.mark.parametrize(
    "document",
    ["nowhere", "f" * 32, "0f", "' or 1=1 --", "\x00", "../../etc/passwd", "f" * 400, "%", ""],
)
def test_a_document_that_was_never_read_is_said_so(dataset: Dataset, document: str) -> None:
    with pytest.raises(UnknownReferenceError, match="ever read into"):
        why_document(dataset, document)


@pytest.mark.parametrize(
    "url",
    ["https://example.org/D5", "https://example.org/d5/", "", "https://user:secret@example.org"],
    ids=["case", "slash", "nothing", "secret"],
)
def test_urls_are_compared_as_they_stand(dataset: Dataset, url: str) -> None:
    with pytest.raises(UnknownReferenceError, match="ever read into") as raised:
        why_url(dataset, url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda dataset: why_document(dataset, "\udcff"),
        lambda dataset: why_url(dataset, "https://example.org/\udcff"),
        lambda dataset: why_record(dataset, file="\udcff.jsonl", offset=0),
    ],
    ids=["id", "url", "file"],
)
def test_what_no_input_can_hold_is_refused(
    dataset: Dataset, ask: Callable[[Dataset], object]
) -> None:
    with pytest.raises(UsageError, match=r"udcff.*isn't UTF-8"):
        ask(dataset)


def test_a_place_that_is_none_is_told_from_a_file_that_is_none(dataset: Dataset) -> None:
    with pytest.raises(UnknownReferenceError, match=r"no file first\.json; did you mean .*first"):
        why_record(dataset, file="first.json", offset=0)
    with pytest.raises(UnknownReferenceError, match=r"no record of first\.jsonl begins at 1"):
        why_record(dataset, file="first.jsonl", offset=1)


def test_a_document_of_another_version_is_found_there(built: Path, tmp_path: Path) -> None:
    for name in ("plain", "indexed"):
        shutil.copytree(built / name, tmp_path / name)
        url, latest = str(tmp_path / name), open_dataset(str(tmp_path / name)).version
        write(tmp_path / "raw" / "other.jsonl", [record("alone", "nothing else is here")])
        other = Request(
            inputs=(str(tmp_path / "raw" / "other.jsonl"),),
            tokenizer=str(built / "tokenizer.json"),
        )
        build_dataset(other, out=url, options=BuildOptions(workers=1))
        (fate,) = why_document(open_dataset(url), "d4")
        assert (fate.outcome, fate.version) == ("kept", 2 if name == "plain" else latest)
        (late,) = why_document(open_dataset(f"{url}@1"), "late")
        assert late.outcome == "dropped"


def test_answers_are_json(dataset: Dataset) -> None:
    values: list[Any] = [fate.to_json() for fate in why_url(dataset, "https://example.org/d5")]
    assert json.loads(msgspec.json.encode(values))[0]["url_hash"] == values[0]["url_hash"]
