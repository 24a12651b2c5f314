from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import datapipe
from datapipe.dataset import (
    Dataset,
    Repository,
    index_dataset,
    log_entries,
    open_dataset,
    verify_dataset,
)
from datapipe.engine import (
    BuildOptions,
    BuildReport,
    Request,
    append_dataset,
    build_dataset,
)
from datapipe.engine.api import plan_build
from datapipe.errors import (
    DamagedError,
    FailedError,
    GuardError,
    InputError,
    TokenizerMismatchError,
    UnknownReferenceError,
    UsageError,
)
from datapipe.read import InputFile, input_sha256
from datapipe_tokenizers import load_files

WORDS = ["fox", "dog", "wizard", "potion", "seven", "lazy", "quick", "brown", "caf\u00e9"]


def make_texts(count: int, *, seed: int = 0, most_words: int = 40) -> list[str]:
    generator = random.Random(seed)
    return [
        f"{number} " + " ".join(generator.choices(WORDS, k=generator.randint(1, most_words)))
        for number in range(count)
    ]


def write_jsonl(path: Path, texts: Iterable[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def build(
    inputs: Sequence[Path], tokenizer: Path, out: Path, *, workers: int = 1, **request: Any
) -> BuildReport:
    asked = Request(inputs=tuple(map(str, inputs)), tokenizer=str(tokenizer), **request)
    return build_dataset(asked, out=str(out), options=BuildOptions(workers=workers))


def append(out: Path, inputs: Sequence[Path], **request: Any) -> BuildReport:
    asked = Request(inputs=tuple(map(str, inputs)), **request)
    return append_dataset(str(out), asked, options=BuildOptions(workers=1))


def recipe(folder: Path, text: str) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(text)
    return path


def decoded(dataset: Dataset) -> list[str]:
    """Returns the texts of all documents, from tokens and docmaps alone."""
    tokenizer = load_files(dataset.tokenizer_files(), eos=dataset.eos_id)
    texts = []
    for source in dataset.sources:
        for number in range(source.num_shards):
            with dataset.open_shard(source.name, number) as view:
                tokens = np.empty(view.size // dataset.token_dtype.itemsize, dataset.token_dtype)
                view.read_into(tokens.data.cast("B"), 0)
            docmap = dataset.docmap(source.name, number)
            for start, count in _spans(docmap):
                ids = tokens[start : start + count]
                assert ids[-1] == dataset.eos_id
                assert dataset.eos_id not in ids[:-1]
                texts.append(tokenizer.decode(ids[:-1]))
    return texts


def _spans(docmap: pa.Table) -> list[tuple[int, int]]:
    columns = (docmap[name].to_pylist() for name in ("token_start", "num_tokens"))
    return list(zip(*columns, strict=True))


# -- what comes out


def test_every_text_can_be_read_back(tmp_path: Path, tokenizer_path: Path) -> None:
    texts = make_texts(300)
    report = build([write_jsonl(tmp_path / "a.jsonl", texts)], tokenizer_path, tmp_path / "ds")
    dataset = open_dataset(str(tmp_path / "ds"))
    assert sorted(decoded(dataset)) == sorted(texts)
    assert report.to_json()["documents"] == {
        "in": 300,
        "kept": 300,
        "dropped": {},
        "quarantined": {},
    }
    assert verify_dataset(dataset).problems == []


def test_all_formats_give_the_same_content(tmp_path: Path, tokenizer_path: Path) -> None:
    texts = make_texts(200)
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    write_jsonl(tmp_path / "plain" / "a.jsonl", texts)
    for name in ("gzip", "zstd", "parquet", "folder"):
        (tmp_path / name).mkdir()
    (tmp_path / "gzip" / "a.jsonl.gz").write_bytes(gzip.compress(lines, mtime=0))
    (tmp_path / "zstd" / "a.jsonl.zst").write_bytes(zstandard.compress(lines))
    pq.write_table(pa.table({"text": texts}), tmp_path / "parquet" / "a.parquet", row_group_size=30)
    for number, text in enumerate(texts):
        (tmp_path / "folder" / f"{number}.txt").write_text(text)
    contents = {
        build([tmp_path / name], tokenizer_path, tmp_path / f"ds-{name}").content
        for name in ("plain", "gzip", "zstd", "parquet", "folder")
    }
    assert len(contents) == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_input_gives_the_same_manifest_in_another_folder(
    tmp_path: Path, tokenizer_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr("datapipe.engine.units.UNIT_BYTES", 4000)
    inputs = [write_jsonl(tmp_path / "in" / f"{n}.jsonl", make_texts(99, seed=n)) for n in range(3)]
    first = build(inputs, tokenizer_path, tmp_path / "one" / "ds")
    second = build(inputs, tokenizer_path, tmp_path / "two" / "other", workers=workers)
    assert (first.manifest, first.logical) == (second.manifest, second.logical)


@pytest.mark.parametrize("files", [1, 2, 7], ids=lambda files: f"{files}-files")
def test_the_same_documents_in_other_files_give_the_same_content(
    tmp_path: Path, tokenizer_path: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    texts = make_texts(210) + make_texts(20) + ["  ", "FOX\r\ndog", "FOX\ndog"]
    reference = build([write_jsonl(tmp_path / "all.jsonl", texts)], tokenizer_path, tmp_path / "a")
    random.Random(files).shuffle(texts)
    monkeypatch.setattr("datapipe.engine.units.UNIT_BYTES", 3000)
    for number in range(files):
        write_jsonl(tmp_path / "parts" / f"p{number}.jsonl", texts[number::files])
    parts = build([tmp_path / "parts"], tokenizer_path, tmp_path / "b")
    assert parts.content == reference.content
    assert parts.logical != reference.logical


def test_shards_are_shuffled_and_about_equal(tmp_path: Path, tokenizer_path: Path) -> None:
    write_jsonl(tmp_path / "in" / "a.jsonl", make_texts(2000))
    path = recipe(
        tmp_path,
        f"name: x\ninputs: [{{source: s, paths: [in]}}]\n"
        f"tokenize: {{tokenizer: {tokenizer_path}}}\noutput: {{shard_bytes: 16KiB}}\n",
    )
    request = Request(inputs=(str(path),))
    build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))
    shards = open_dataset(str(tmp_path / "ds")).shards("s")
    assert len(shards) > 3
    assert shards.num_tokens.max() - shards.num_tokens.min() < 300
    assert shards.num_tokens.max() <= 8192 + 300


def test_sources_keep_their_own_shards(tmp_path: Path, tokenizer_path: Path) -> None:
    write_jsonl(tmp_path / "a" / "x.jsonl", make_texts(50))
    write_jsonl(tmp_path / "b" / "x.jsonl", make_texts(70, seed=1))
    path = recipe(
        tmp_path,
        "name: x\ninputs:\n  - {source: one, paths: [a], licence: CC0-1.0}\n"
        f"  - {{source: two, paths: [b]}}\ntokenize: {{tokenizer: {tokenizer_path}}}\n",
    )
    request = Request(inputs=(str(path),))
    build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))
    dataset = open_dataset(str(tmp_path / "ds"))
    assert [(s.name, s.num_documents) for s in dataset.sources] == [("one", 50), ("two", 70)]
    assert set(dataset.docmap("one", 0)["licence"].to_pylist()) == {"CC0-1.0"}


# -- duplicates


def test_one_of_two_hundred_copies_stays(tmp_path: Path, tokenizer_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ["same text"] * 200 + ["another"])
    report = build([path], tokenizer_path, tmp_path / "ds")
    assert report.to_json()["documents"]["kept"] == 2
    assert sorted(decoded(open_dataset(str(tmp_path / "ds")))) == ["another", "same text"]


def test_a_dropped_duplicate_names_its_survivor(tmp_path: Path, tokenizer_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ["x y", "x\u0000 y", "z"])
    build([path], tokenizer_path, tmp_path / "ds")
    dataset = open_dataset(str(tmp_path / "ds"))
    (row,) = dataset.dropped().to_pylist()
    kept = dataset.docmap("documents", 0)["doc_id"].to_pylist()
    assert (row["stage"], row["rule"]) == ("dedup_exact", "duplicate")
    assert row["survivor"] in kept
    assert row["doc_id"] not in kept


def test_the_first_source_of_the_recipe_survives(tmp_path: Path, tokenizer_path: Path) -> None:
    write_jsonl(tmp_path / "a" / "x.jsonl", ["shared"])
    write_jsonl(tmp_path / "b" / "x.jsonl", ["shared", "own"])
    path = recipe(
        tmp_path,
        "name: x\ninputs: [{source: b, paths: [b]}, {source: a, paths: [a]}]\n"
        f"stages: [dedup_exact]\ntokenize: {{tokenizer: {tokenizer_path}}}\n",
    )
    request = Request(inputs=(str(path),))
    report = build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))
    assert {s: c["kept"] for s, c in report.to_json()["sources"].items()} == {"b": 2, "a": 0}


def test_without_stages_nothing_is_dropped(tmp_path: Path, tokenizer_path: Path) -> None:
    write_jsonl(tmp_path / "in" / "x.jsonl", ["same", "same", "", "  "])
    path = recipe(
        tmp_path,
        "name: x\ninputs: [{source: s, paths: [in]}]\n"
        f"tokenize: {{tokenizer: {tokenizer_path}}}\n",
    )
    request = Request(inputs=(str(path),))
    build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))
    assert sorted(decoded(open_dataset(str(tmp_path / "ds")))) == ["", "  ", "same", "same"]


# -- versions


def test_a_repeated_build_commits_nothing(tmp_path: Path, tokenizer_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(20))
    first = build([path], tokenizer_path, tmp_path / "ds")
    again = build([path], tokenizer_path, tmp_path / "ds")
    assert (again.version, again.created, again.manifest) == (1, False, first.manifest)


def test_an_append_shares_shards_and_numbers_on(tmp_path: Path, tokenizer_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(20))
    build([path], tokenizer_path, tmp_path / "ds")
    report = append(tmp_path / "ds", [write_jsonl(tmp_path / "b.jsonl", make_texts(30, seed=5))])
    first, second = (open_dataset(f"{tmp_path / 'ds'}@{n}") for n in (1, 2))
    assert report.version == 2
    assert second.shards("documents").raw_sha256[0] == first.shards("documents").raw_sha256[0]
    assert len(decoded(second)) == 50
    assert sorted(decoded(first)) == sorted(make_texts(20))
    assert verify_dataset(second).problems == []


def test_an_append_skips_inputs_that_are_in(tmp_path: Path, tokenizer_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(20))
    first = build([path], tokenizer_path, tmp_path / "ds")
    report = append(tmp_path / "ds", [path])
    assert (report.version, report.created, report.inputs_skipped) == (1, False, 1)
    assert report.manifest == first.manifest


def test_an_append_skips_a_known_file_under_another_name(
    tmp_path: Path, tokenizer_path: Path
) -> None:
    path = write_jsonl(tmp_path / "raw" / "more" / "a.jsonl", make_texts(20))
    build([tmp_path / "raw"], tokenizer_path, tmp_path / "ds")
    assert append(tmp_path / "ds", [path.parent]).inputs_skipped == 1


def test_a_version_without_documents_is_warned_of(tmp_path: Path, tokenizer_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [" ", ""])
    report = build([path], tokenizer_path, tmp_path / "ds")
    assert report.warnings == ["no document was kept of 2 records: nothing can be trained on"]


def test_nothing_is_written_where_the_log_has_a_gap(tmp_path: Path, tokenizer_path: Path) -> None:
    out, more = tmp_path / "ds", write_jsonl(tmp_path / "b.jsonl", ["new"])
    build([write_jsonl(tmp_path / "a.jsonl", ["old"])], tokenizer_path, out)
    append(out, [more])
    (out / "_log/00000000000000000001.json").unlink()
    write_jsonl(more, ["newer"])
    with pytest.raises(DamagedError, match=r"0001.json is (damaged: it is )?missing"):
        append(out, [more])
    assert len(list((out / "_log").glob("0*.json"))) == 1


def test_a_few_bad_records_and_nothing_else_commit_nothing(
    tmp_path: Path, tokenizer_path: Path
) -> None:
    build([write_jsonl(tmp_path / "a.jsonl", ["old"])], tokenizer_path, tmp_path / "ds")
    (tmp_path / "bad.jsonl").write_text("{broken\n" * 9)
    with pytest.raises(GuardError, match=r"9 of 9 records could not be read and no document"):
        build([tmp_path / "bad.jsonl"], tokenizer_path, tmp_path / "ds")
    with pytest.raises(GuardError, match="no document was kept; nothing was committed"):
        append(tmp_path / "ds", [tmp_path / "bad.jsonl"])
    assert open_dataset(str(tmp_path / "ds")).version == 1


def test_an_append_drops_texts_that_are_in(tmp_path: Path, tokenizer_path: Path) -> None:
    build([write_jsonl(tmp_path / "a.jsonl", ["old", "older"])], tokenizer_path, tmp_path / "ds")
    report = append(tmp_path / "ds", [write_jsonl(tmp_path / "b.jsonl", ["new", "old"])])
    assert report.to_json()["documents"]["dropped"] == {"dedup_exact.duplicate": 1}
    dataset = open_dataset(str(tmp_path / "ds"))
    assert sorted(decoded(dataset)) == ["new", "old", "older"]
    (row,) = dataset.dropped().to_pylist()
    assert row["survivor"] in dataset.docmap("documents", 0)["doc_id"].to_pylist()


def test_an_append_of_a_file_that_grew_adds_only_its_new_records(
    tmp_path: Path, tokenizer_path: Path
) -> None:
    path = write_jsonl(tmp_path / "in" / "a.jsonl", ["one", "two", "two"])
    asked = recipe(
        tmp_path,
        "name: x\ninputs: [{source: s, paths: [in]}]\n"
        f"tokenize: {{tokenizer: {tokenizer_path}}}\n",
    )
    request = Request(inputs=(str(asked),))
    build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))
    write_jsonl(path, ["one", "two", "two", "three"])
    report = append(tmp_path / "ds", [path])
    assert report.to_json()["documents"]["dropped"] == {"append.already_in": 3}
    assert sorted(decoded(open_dataset(str(tmp_path / "ds")))) == ["one", "three", "two", "two"]


def test_an_append_reads_the_fields_that_the_source_had(
    tmp_path: Path, tokenizer_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"body": "first", "text": "not it"}\n')
    (tmp_path / "b.jsonl").write_text('{"body": "second", "text": "nor this"}\n')
    asked = recipe(
        tmp_path,
        "name: x\ninputs: [{source: s, paths: [a.jsonl], fields: {text: body}, "
        f"licence: CC0-1.0}}]\ntokenize: {{tokenizer: {tokenizer_path}}}\n",
    )
    request = Request(inputs=(str(asked),))
    build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))
    append(tmp_path / "ds", [tmp_path / "b.jsonl"])
    dataset = open_dataset(str(tmp_path / "ds"))
    assert sorted(decoded(dataset)) == ["first", "second"]
    assert dataset.docmap("s", 1)["licence"].to_pylist() == ["CC0-1.0"]


def test_the_same_file_twice_in_a_source_is_refused(tmp_path: Path, tokenizer_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", ["x"])
    asked = recipe(
        tmp_path,
        "name: x\ninputs: [{source: s, paths: [a.jsonl]}, {source: s, paths: [a.jsonl]}]\n"
        f"tokenize: {{tokenizer: {tokenizer_path}}}\n",
    )
    request = Request(inputs=(str(asked),))
    with pytest.raises(InputError, match=r"a\.jsonl is given twice, by"):
        build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))


def test_documents_beyond_the_limits_of_the_tokenizer_are_dropped(
    tmp_path: Path, tokenizer_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datapipe_tokenizers import fast
    from datapipe_tokenizers.windows import Windows

    monkeypatch.setattr(fast, "LONG_BYTES", 20_000)
    monkeypatch.setattr(fast, "WINDOWS", Windows(chars=2048, most_chars=8192))
    write_jsonl(tmp_path / "a.jsonl", ["one", "x\n" + " " * 30_000 + "y", "a b " * 9000, "two"])
    asked = recipe(
        tmp_path,
        "name: x\ninputs: [{source: s, paths: [a.jsonl]}]\n"
        f"stages: []\ntokenize: {{tokenizer: {tokenizer_path}}}\n",
    )
    request = Request(inputs=(str(asked),))
    report = build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))
    documents = report.to_json()["documents"]
    assert (documents["kept"], documents["dropped"]) == (3, {"encode.beyond_limits": 1})
    assert verify_dataset(open_dataset(str(tmp_path / "ds"))).problems == []


@pytest.mark.parametrize("texts", [["", ""], ["", "one", "", "two"]], ids=["all", "some"])
def test_documents_without_a_token_are_dropped(
    tmp_path: Path, tokenizer_path: Path, texts: list[str]
) -> None:
    write_jsonl(tmp_path / "a.jsonl", texts)
    asked = recipe(
        tmp_path,
        "name: x\ninputs: [{source: s, paths: [a.jsonl]}]\n"
        f"tokenize: {{tokenizer: {tokenizer_path}, append_eos: false}}\n",
    )
    request = Request(inputs=(str(asked),))
    report = build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))
    kept = sum(map(bool, texts))
    assert report.to_json()["documents"] == {
        "in": len(texts),
        "kept": kept,
        "dropped": {"encode.no_tokens": 2},
        "quarantined": {},
    }
    dataset = open_dataset(str(tmp_path / "ds"))
    assert report.shards == (kept > 0)
    assert dataset.dropped()["rule"].to_pylist() == ["no_tokens"] * 2
    assert verify_dataset(dataset).problems == []


def test_a_large_compressed_file_is_worked_on_in_parts(
    tmp_path: Path, tokenizer_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = make_texts(4000) + make_texts(50)
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    (tmp_path / "a.jsonl.zst").write_bytes(zstandard.compress(lines + b"{\n"))
    whole = build([tmp_path / "a.jsonl.zst"], tokenizer_path, tmp_path / "whole")
    monkeypatch.setattr("datapipe.engine.scan.PART_BYTES", 50_000)
    monkeypatch.setattr("datapipe.read.ranges.BATCH_BYTES", 20_000)
    parts = build([tmp_path / "a.jsonl.zst"], tokenizer_path, tmp_path / "parts", workers=2)
    assert parts.manifest == whole.manifest
    assert not list((tmp_path / "parts" / "_work").rglob("*"))


def test_a_file_written_to_after_it_was_listed_stops_the_build(
    tmp_path: Path, tokenizer_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ["one"])
    digest = input_sha256

    def change(file: InputFile) -> bytes:
        found = digest(file)
        write_jsonl(path, ["two"])
        return found

    monkeypatch.setattr("datapipe.engine.sources.input_sha256", change)
    with pytest.raises(FailedError, match=r"a\.jsonl was changed or replaced after it was listed"):
        build([path], tokenizer_path, tmp_path / "ds")


def test_building_on_a_dataset_replaces_its_documents(tmp_path: Path, tokenizer_path: Path) -> None:
    build([write_jsonl(tmp_path / "a.jsonl", ["old"])], tokenizer_path, tmp_path / "ds")
    build([write_jsonl(tmp_path / "b.jsonl", ["new"])], tokenizer_path, tmp_path / "ds")
    assert decoded(open_dataset(str(tmp_path / "ds"))) == ["new"]
    assert decoded(open_dataset(f"{tmp_path / 'ds'}@1")) == ["old"]


# -- bad input


def test_bad_records_are_quarantined_and_counted(tmp_path: Path, tokenizer_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good = json.dumps({"text": "good"}).encode()
    path.write_bytes(good + b'\n{"text": "cut\n\n[1]\n{"text": "a\xffb"}\n{"text": 5}\n')
    report = build([path], tokenizer_path, tmp_path / "ds").to_json()
    assert report["documents"]["in"] == 5
    assert report["blank_lines"] == 1
    rows = open_dataset(str(tmp_path / "ds")).quarantine().to_pylist()
    assert [row["source_offset"] for row in rows] == [17, 32, 36, 52]
    assert all(row["source_file"] == "a.jsonl" for row in rows)
    assert rows[0]["raw"] == b'{"text": "cut'


def test_a_cut_gzip_gives_its_whole_records(tmp_path: Path, tokenizer_path: Path) -> None:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in make_texts(500)).encode()
    packed = gzip.compress(lines, mtime=0)
    (tmp_path / "a.jsonl.gz").write_bytes(packed[: len(packed) * 6 // 10])
    report = build([tmp_path / "a.jsonl.gz"], tokenizer_path, tmp_path / "ds")
    texts = decoded(open_dataset(str(tmp_path / "ds")))
    assert report.truncated == ("a.jsonl.gz",)
    assert not report.is_complete
    assert 200 < len(texts) < 400
    assert set(texts) <= set(make_texts(500))


def test_the_backend_changes_nothing_but_its_own_name(tmp_path: Path, tokenizer_path: Path) -> None:
    write_jsonl(tmp_path / "in" / "a.jsonl", make_texts(200))
    reports = [
        build_dataset(
            Request(inputs=(str(recipe(tmp_path, BACKEND_RECIPE % (tokenizer_path, name))),)),
            out=str(tmp_path / name),
            options=BuildOptions(workers=1),
        )
        for name in ("gigatoken", "huggingface")
    ]
    assert [report.backend for report in reports] == ["gigatoken", "huggingface"]
    assert reports[0].logical == reports[1].logical
    recipes = [open_dataset(report.dataset).manifest.recipe for report in reports]
    assert recipes[0] == recipes[1]


BACKEND_RECIPE = """
name: x
inputs: [{source: s, paths: [in]}]
tokenize: {tokenizer: %s, backend: %s, check_one_in: 5}
"""


SPECIAL_RECIPE = """
name: x
inputs: [{source: s, paths: [in]}]
tokenize: {tokenizer: %s, special_text: %s}
"""


def build_special(tmp_path: Path, tokenizer: Path, policy: str) -> BuildReport:
    config = json.loads(tokenizer.read_bytes())
    user = {"content": "<|user|>", "id": len(config["model"]["vocab"])}
    config["added_tokens"].append(config["added_tokens"][0] | user)
    (tmp_path / "special.json").write_text(json.dumps(config))
    (tmp_path / "in").mkdir(exist_ok=True)
    texts = ["plain", "<|user|>hello", "the <|endoftext|> and <|user|>"]
    write_jsonl(tmp_path / "in" / "a.jsonl", texts)
    path = recipe(tmp_path, SPECIAL_RECIPE % (tmp_path / "special.json", policy))
    return build_dataset(
        Request(inputs=(str(path),)), out=str(tmp_path / policy), options=BuildOptions(workers=1)
    )


@pytest.mark.parametrize("policy", ["text", "special"])
def test_text_of_special_tokens_is_counted(
    tmp_path: Path, tokenizer_path: Path, policy: str
) -> None:
    report = build_special(tmp_path, tokenizer_path, policy)
    counts = report.to_json()["special_text"]
    assert counts == {"policy": policy, "documents": 2, "with_eos": 1}
    assert any("1 documents have the text of" in text for text in report.warnings) == (
        policy == "special"
    )
    dataset = open_dataset(report.dataset)
    assert sorted(decoded(dataset))[0] == "<|user|>hello"
    assert verify_dataset(dataset).problems == []


def test_special_tokens_are_read_where_asked_for(tmp_path: Path, tokenizer_path: Path) -> None:
    tokens = {
        policy: build_special(tmp_path, tokenizer_path, policy).to_json()["tokens"]
        for policy in ("text", "special")
    }
    assert tokens["special"] < tokens["text"]


def test_text_of_special_tokens_is_refused(tmp_path: Path, tokenizer_path: Path) -> None:
    with pytest.raises(FailedError, match=r"a\.jsonl at \d+\) has the text of a special token"):
        build_special(tmp_path, tokenizer_path, "error")


def test_too_many_bad_records_stop_the_build(tmp_path: Path, tokenizer_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(50))
    path.write_text(path.read_text() + "{\n" * 12)
    with pytest.raises(GuardError, match=r"12 of 62 records .*invalid_json 12.*a\.jsonl"):
        build([path], tokenizer_path, tmp_path / "ds")
    with pytest.raises(UnknownReferenceError, match="no version yet"):
        open_dataset(str(tmp_path / "ds"))
    report = build([path], tokenizer_path, tmp_path / "ds", max_quarantined_fraction=0.5)
    assert report.version == 1


def test_losing_a_whole_source_stops_the_build(tmp_path: Path, tokenizer_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [" "] * 30 + ["x"])
    with pytest.raises(GuardError, match=r"30 of 31 documents .*drop_empty\.empty 30"):
        build([path], tokenizer_path, tmp_path / "ds")


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\n \n"], ids=["empty", "newline", "blank"])
def test_empty_inputs_are_no_documents(
    tmp_path: Path, tokenizer_path: Path, content: bytes
) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    report = build([tmp_path / "a.jsonl"], tokenizer_path, tmp_path / "ds")
    dataset = open_dataset(str(tmp_path / "ds"))
    assert report.to_json()["documents"]["in"] == 0
    assert dataset.inputs().num_rows == 1
    assert verify_dataset(dataset).problems == []


def test_a_dataset_of_another_tokenizer_is_refused(
    tmp_path: Path, tokenizer_path: Path, other_tokenizer_path: Path
) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ["x"])
    build([path], tokenizer_path, tmp_path / "ds")
    with pytest.raises(TokenizerMismatchError, match="another tokenizer"):
        build([path], other_tokenizer_path, tmp_path / "ds")


def test_a_dataset_with_another_end_of_document_is_refused(
    tmp_path: Path, tokenizer_path: Path
) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ["x"])
    config = json.loads(tokenizer_path.read_text())
    special = dict(config["added_tokens"][0])
    config["added_tokens"].append({**special, "content": "<|stop|>", "id": 5000})
    two = tmp_path / "two.json"
    two.write_text(json.dumps(config))
    build([path], two, tmp_path / "ds")
    with pytest.raises(TokenizerMismatchError, match="eos_id"):
        build([path], two, tmp_path / "ds", eos="<|stop|>")


def test_an_append_is_not_compared_with_documents_that_have_no_keys(
    tmp_path: Path, tokenizer_path: Path
) -> None:
    write_jsonl(tmp_path / "a.jsonl", ["x"])
    write_jsonl(tmp_path / "b.jsonl", ["y"])
    text = (
        "name: x\ninputs: [{{source: s, paths: [{}.jsonl]}}]\nstages: {}\n"
        "tokenize: {{tokenizer: {}}}"
    )
    asked = recipe(tmp_path, text.format("a", "[]", tokenizer_path))
    request = Request(inputs=(str(asked),))
    build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))
    recipe(tmp_path, text.format("b", "[dedup_exact]", tokenizer_path))
    with pytest.raises(UsageError, match="added without dedup_exact"):
        append(tmp_path / "ds", [asked])


def test_where_inputs_lay_stands_in_the_log(tmp_path: Path, tokenizer_path: Path) -> None:
    path = write_jsonl(tmp_path / "in" / "a.jsonl", ["x"])
    build([path], tokenizer_path, tmp_path / "ds")
    (entry,) = log_entries(Repository(str(tmp_path / "ds")))
    assert entry.input_roots == ({"source": "documents", "root": f"{path.parent}/"},)


def test_a_log_that_lost_its_end_is_not_written_on(tmp_path: Path, tokenizer_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ["x"])
    build([path], tokenizer_path, tmp_path / "ds")
    for entry in (tmp_path / "ds" / "_log").glob("0*.json"):
        entry.unlink()
    with pytest.raises(DamagedError, match="HINT names version 1"):
        build([path], tokenizer_path, tmp_path / "ds")


def test_a_rebuild_heals_a_damaged_shard(tmp_path: Path, tokenizer_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(20))
    build([path], tokenizer_path, tmp_path / "ds")
    (shard,) = (tmp_path / "ds" / "tokens").rglob("*.bin")
    shard.write_bytes(bytes([shard.read_bytes()[0] ^ 1]) + shard.read_bytes()[1:])
    assert verify_dataset(open_dataset(str(tmp_path / "ds"))).problems
    build([path], tokenizer_path, tmp_path / "ds")
    assert verify_dataset(open_dataset(str(tmp_path / "ds"))).problems == []


def test_a_folder_with_other_things_is_not_made_a_dataset(
    tmp_path: Path, tokenizer_path: Path
) -> None:
    path = write_jsonl(tmp_path / "in" / "a.jsonl", ["x"])
    with pytest.raises(UsageError, match="isn't empty and isn't a dataset"):
        build([path], tokenizer_path, tmp_path / "in")


def test_nothing_is_made_when_the_inputs_are_wrong(tmp_path: Path, tokenizer_path: Path) -> None:
    with pytest.raises(InputError, match="doesn't exist"):
        build([tmp_path / "missing.jsonl"], tokenizer_path, tmp_path / "ds")
    assert not (tmp_path / "ds").exists()


def test_a_wrong_text_field_is_named(tmp_path: Path, tokenizer_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"content": "some text"}\n')
    with pytest.raises(InputError, match="did you mean `content`"):
        build([path], tokenizer_path, tmp_path / "ds")


def test_no_tokenizer_says_how_to_get_one(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ["x"])
    request = Request(inputs=(str(path),))
    with pytest.raises(UsageError, match="datapipe tokenizer train"):
        build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))


def test_the_python_functions_return_datasets(tmp_path: Path, tokenizer_path: Path) -> None:
    first = write_jsonl(tmp_path / "a.jsonl", make_texts(5))
    second = write_jsonl(tmp_path / "b.jsonl", make_texts(5, seed=9))
    built = datapipe.build(first, out=tmp_path / "ds", tokenizer=tokenizer_path, workers=1)
    appended = datapipe.append(tmp_path / "ds", [second], workers=1)
    assert (built.version, appended.version) == (1, 2)
    assert datapipe.open(str(tmp_path / "ds")).version == 2


def test_a_plan_writes_nothing(tmp_path: Path, tokenizer_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", make_texts(5))
    request = Request(inputs=(str(path),), tokenizer=str(tokenizer_path))
    plan = plan_build(request, dataset=None)
    assert plan["sources"][0]["files"] == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl"]


# -- indexes


def test_indexes_change_no_digest_but_the_manifests(tmp_path: Path, tokenizer_path: Path) -> None:
    texts = write_jsonl(tmp_path / "web" / "a.jsonl", make_texts(200))
    reports = {}
    for name, asked, workers in (("none", "false", 1), ("one", "true", 1), ("two", "true", 2)):
        asking = recipe(
            tmp_path,
            f"name: web\ninputs: [{{source: web, paths: [{texts}]}}]\nstages: [dedup_exact]\n"
            f"output: {{shard_bytes: 4KiB, index: {asked}}}\n",
        )
        reports[name] = build([asking], tokenizer_path, tmp_path / name, workers=workers)
    assert len({(report.logical, report.content) for report in reports.values()}) == 1
    assert reports["one"].manifest == reports["two"].manifest != reports["none"].manifest
    indexed, plain = (open_dataset(str(tmp_path / name)) for name in ("one", "none"))
    assert indexed.version == 1
    assert sorted(indexed.manifest.indexes) == ["doc", "domain", "url"]
    assert plain.manifest.indexes == {}
    assert verify_dataset(indexed).problems == []
    again = build([asking], tokenizer_path, tmp_path / "one")
    assert (again.created, again.version) == (False, 1)


def test_indexes_stay_unless_a_recipe_says_so(tmp_path: Path, tokenizer_path: Path) -> None:
    out, first = tmp_path / "ds", write_jsonl(tmp_path / "a.jsonl", make_texts(20))
    more = [write_jsonl(tmp_path / f"{n}.jsonl", make_texts(9, seed=n)) for n in range(4)]

    def kinds() -> int:
        return len(open_dataset(str(out)).manifest.indexes)

    def asking(path: Path, index: bool) -> Path:
        text = f"name: web\ninputs: [{{source: documents, paths: [{path}]}}]\n"
        return recipe(tmp_path, f"{text}output: {{index: {str(index).lower()}}}\n")

    build([first], tokenizer_path, out)
    assert kinds() == 0
    append(out, [asking(more[0], True)])
    assert kinds() == 3
    append(out, [more[1]])
    build([more[1]], tokenizer_path, out)
    assert kinds() == 3
    append(out, [asking(more[2], False)])
    assert kinds() == 0
    index_dataset(Repository(str(out)), time_seconds=1.0)
    append(out, [more[3]])
    assert kinds() == 3
    assert verify_dataset(open_dataset(str(out))).problems == []
