from __future__ import annotations

import json
import re
import shutil
import uuid
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from datapipe.clean import normalize
from datapipe.dataset import Dataset, index_dataset, open_dataset, parquet
from datapipe.dataset.index.complete import MOST_FILES
from datapipe.engine import BuildOptions, Request, append_dataset, build_dataset, building
from datapipe.engine.rebuild import RebuildOptions, RebuildReport, Verdict, rebuild_dataset
from datapipe.engine.rebuild.inputs import RecordedFile, find_files, fits
from datapipe.errors import DamagedError, InputError
from tiering.store import open_store
from tiering.testing import S3Server

RECIPE = """
name: mixed
inputs:
  - {source: web, paths: [raw/web/*.jsonl], root: raw}
  - {source: web, paths: [raw/old], fields: {text: body}, licence: CC0-1.0}
  - {source: books, paths: [raw/books/a.txt, raw/books/deep/**/b.txt]}
output: {shard_bytes: 2KiB}
stages: [normalize, drop_empty, dedup_exact]
guards: {max_quarantined_fraction: 1.0}
"""


def write(path: Path, count: int, *, word: str, field: str = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [{field: f"{word} {number} jumps over a lazy dog"} for number in range(count)]
    lines += [{field: " "}, {field: f"{word} 1 jumps over a lazy dog"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "{cut\n")
    return path


def make(folder: Path, tokenizer: Path) -> Dataset:
    """A build of a recipe, an append of a new file, and one of a file that grew."""
    raw, out = folder / "raw", str(folder / "ds")
    write(raw / "web" / "a.jsonl", 60, word="fox")
    write(raw / "web" / "b.jsonl", 20, word="dog")
    write(raw / "old" / "a" / "c.jsonl", 20, word="cat", field="body")
    for name, text in (("a.txt", "a book\r\n"), ("deep/x/y/b.txt", "another one")):
        (raw / "books" / name).parent.mkdir(parents=True, exist_ok=True)
        (raw / "books" / name).write_text(text)
    (folder / "recipe.yaml").write_text(RECIPE)
    options = BuildOptions(workers=1)
    request = Request(inputs=(str(folder / "recipe.yaml"),), tokenizer=str(tokenizer))
    build_dataset(request, out=out, options=options)
    more: dict[str, Any] = {"source": "books", "max_quarantined_fraction": 1.0}
    for count in (30, 40):
        path = write(raw / "more" / "d.jsonl", count, word="wizard")
        append_dataset(out, Request(inputs=(str(path),), **more), options=options)
        shutil.copy(path, folder / f"d{count}.jsonl")
    return open_dataset(out)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory, tokenizer_path: Path) -> Path:
    folder = tmp_path_factory.mktemp("rebuild") / "made"
    folder.mkdir()
    make(folder, tokenizer_path)
    return folder


@pytest.fixture
def made(template: Path, tmp_path: Path) -> Dataset:
    """Three versions; inputs lie in `moved`, no longer where the log says."""
    shutil.copytree(template / "ds", tmp_path / "ds")
    shutil.copytree(template / "raw", tmp_path / "moved")
    return open_dataset(str(tmp_path / "ds"))


def again(version: Dataset, *, inputs: Path | None, last_step: bool = True) -> RebuildReport:
    given = None if inputs is None else str(inputs)
    options = RebuildOptions(inputs=given, last_step=last_step, workers=1)
    return rebuild_dataset(version, options=options)


def first_version(made: Dataset) -> Dataset:
    return made.repository.open(1)


# -- identical


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_step_comes_out_byte_for_byte(made: Dataset, tmp_path: Path, version: int) -> None:
    if version == 2:
        shutil.copy(tmp_path / "moved/more/d.jsonl", tmp_path / "grown")
        text = (tmp_path / "grown").read_text()
        assert text.count("wizard") == 41
        write(tmp_path / "moved/more/d.jsonl", 30, word="wizard")
    report = again(made.repository.open(version), inputs=tmp_path / "moved")
    (step,) = report.steps
    assert report.verdict is Verdict.IDENTICAL, step.reason
    assert step.rebuilt == step.manifest
    assert step.reason == ""
    assert step.num_inputs == {1: 5, 2: 1, 3: 1}[version]


def test_all_steps_are_done_from_the_build_on(made: Dataset, tmp_path: Path) -> None:
    second = made.repository.open(2)
    write(tmp_path / "moved/more/d.jsonl", 30, word="wizard")
    report = again(second, inputs=tmp_path / "moved", last_step=False)
    assert [step.version for step in report.steps] == [1, 2]
    assert report.to_json()["verdict"] == "identical"


@pytest.mark.parametrize("num_appends", [1, MOST_FILES])
def test_indexes_come_out_too_and_are_no_step(
    made: Dataset, tmp_path: Path, num_appends: int
) -> None:
    index_dataset(made.repository, time_seconds=1.0)
    indexed = made.repository.open()
    report = again(indexed, inputs=tmp_path / "moved")
    assert (report.version, report.verdict) == (4, Verdict.IDENTICAL)
    assert [step.version for step in report.steps] == [3]
    for number in range(num_appends):
        path = write(tmp_path / "moved" / "late" / f"{number}.jsonl", 3, word=f"late{number}")
        more = Request(inputs=(str(path),), source="books", max_quarantined_fraction=1.0)
        append_dataset(made.url, more, options=BuildOptions(workers=1))
    latest = made.repository.open()
    assert len(latest.manifest.indexes["doc"]) == 2
    report = again(latest, inputs=None)
    assert (report.verdict, report.steps[-1].version) == (Verdict.IDENTICAL, latest.version)


@pytest.mark.parametrize("asked", ["", "true", "false"])
def test_indexes_that_a_recipe_asks_for_come_out_too(
    made: Dataset, tmp_path: Path, tokenizer_path: Path, asked: str
) -> None:
    if asked != "true":
        index_dataset(made.repository, time_seconds=1.0)
    path, index = write(tmp_path / "late.jsonl", 9, word="late"), f", index: {asked}"
    text = (
        f"{{name: late, inputs: [{{source: books, paths: [{path}]}}], "
        f"output: {{shard_bytes: 2KiB{index if asked else ''}}}, "
        "stages: [normalize, drop_empty, dedup_exact], guards: {max_quarantined_fraction: 1.0}}"
    )
    (tmp_path / "late.yaml").write_text(text)
    request = Request(inputs=(str(tmp_path / "late.yaml"),), tokenizer=str(tokenizer_path))
    options = BuildOptions(workers=1)
    for is_append in (True, False):
        if is_append:
            append_dataset(made.url, request, options=options)
        else:
            build_dataset(request, out=made.url, options=options)
        latest = made.repository.open()
        assert len(latest.manifest.indexes) == (0 if asked == "false" else 3)
        report = again(latest, inputs=None)
        assert report.verdict is Verdict.IDENTICAL, report.steps[-1].reason


def test_inputs_are_found_where_they_were(template: Path, tmp_path: Path) -> None:
    shutil.copytree(template / "ds", tmp_path / "ds")
    report = again(open_dataset(str(tmp_path / "ds")), inputs=None)
    assert report.verdict is Verdict.IDENTICAL


@pytest.mark.parametrize("level", ["moved", "", "moved/more"])
def test_the_root_may_be_any_folder_above_the_inputs(
    made: Dataset, tmp_path: Path, level: str
) -> None:
    if level == "":
        (tmp_path / "moved").rename(tmp_path / "raw")
    assert again(made, inputs=tmp_path / level).verdict is Verdict.IDENTICAL


def test_the_root_may_be_relative(
    made: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "ds")
    assert again(made, inputs=Path("../moved")).verdict is Verdict.IDENTICAL


@pytest.mark.s3
def test_a_dataset_on_s3_is_rebuilt(
    made: Dataset, tmp_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    url = f"s3://bucket/{uuid.uuid4().hex}"
    bucket = open_store(url).blocking()
    for info in made.repository.store.list():
        bucket.put(info.path, made.repository.store.get(info.path))
    assert again(open_dataset(url), inputs=tmp_path / "moved").verdict is Verdict.IDENTICAL


def test_a_build_over_another_version_is_a_chain_of_its_own(
    made: Dataset, tmp_path: Path, tokenizer_path: Path
) -> None:
    path = write(tmp_path / "other" / "e.jsonl", 9, word="potion")
    request = Request(
        inputs=(str(path),), tokenizer=str(tokenizer_path), max_quarantined_fraction=1.0
    )
    build_dataset(request, out=made.url, options=BuildOptions(workers=1))
    report = again(made.repository.open(), inputs=tmp_path / "other", last_step=False)
    assert [step.version for step in report.steps] == [4]
    assert report.verdict is Verdict.IDENTICAL


def test_the_original_is_only_read(made: Dataset, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path(made.url).rglob("*")}
    again(made, inputs=tmp_path / "moved")
    assert {path: path.stat().st_mtime_ns for path in Path(made.url).rglob("*")} == before


# -- logically identical


def test_another_environment_is_named(
    made: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {**made.manifest.environment, "numpy": "9.9", "newlib": "1.0"}
    monkeypatch.setattr(building, "environment", lambda: now)
    report = again(made, inputs=tmp_path / "moved")
    assert report.verdict is Verdict.LOGICALLY_IDENTICAL
    reason = report.steps[0].reason
    assert reason.startswith("all objects are the same; the manifest names another environment")
    assert "newlib absent then, 1.0 now; numpy 2" in reason


def test_tables_with_other_bytes_are_named(
    made: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(parquet.GROUP_ROWS, "docmap", 7)
    report = again(made, inputs=tmp_path / "moved")
    assert report.verdict is Verdict.LOGICALLY_IDENTICAL
    assert "docmap" in report.steps[0].other_bytes
    assert report.steps[0].reason.startswith("same rows, other bytes of docmap")


# -- different


def test_a_changed_input_is_named_and_nothing_is_built(made: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "moved/web/b.jsonl"
    path.write_bytes(path.read_bytes().replace(b"dog 7", b"dog 8"))
    report = again(made, inputs=tmp_path / "moved", last_step=False)
    (step,) = report.steps
    assert report.verdict is Verdict.DIFFERENT
    assert step.difference is not None
    assert step.difference.cause == "input"
    assert step.difference.where["file"] == "web/b.jsonl"
    assert step.rebuilt is None
    assert step.to_json()["reason"].endswith("cause: an input changed")


def test_changed_code_is_told_by_the_first_document_that_differs(
    made: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed_normalize(monkeypatch)
    report = again(first_version(made), inputs=tmp_path / "moved")
    difference = report.steps[0].difference
    assert difference is not None
    assert difference.cause == "code"
    assert difference.where["source"] == "web"
    assert {"shard", "row", "recorded", "rebuilt", "doc_id"} <= set(difference.where)


def test_a_changed_library_is_the_cause_where_it_alone_differs(
    made: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed_normalize(monkeypatch)
    now = {**made.manifest.environment, "tokenizers": "9.9"}
    monkeypatch.setattr(building, "environment", lambda: now)
    report = again(first_version(made), inputs=tmp_path / "moved")
    difference = report.steps[0].difference
    assert difference is not None
    assert difference.cause == "library"
    assert "tokenizers 0" in report.steps[0].reason


def changed_normalize(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage `normalize` makes texts upper case."""
    apply = normalize.Normalize.apply

    def upper(self: Any, batch: pa.RecordBatch) -> Any:
        result = apply(self, batch)
        place = result.batch.schema.get_field_index("text")
        texts = pa.compute.utf8_upper(result.batch.column(place))
        changed = result.batch.set_column(place, result.batch.schema.field(place), texts)
        return result._replace(batch=changed)

    monkeypatch.setattr(normalize.Normalize, "apply", upper)


# -- what can't be rebuilt


def test_missing_inputs_are_counted(made: Dataset, tmp_path: Path) -> None:
    (tmp_path / "moved/old/a/c.jsonl").unlink()
    with pytest.raises(InputError, match=r"1 of 5 recorded inputs aren't below .*c\.jsonl of web"):
        again(first_version(made), inputs=tmp_path / "moved")


def test_links_out_of_the_root_are_not_followed(made: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "moved/more/d.jsonl"
    path.rename(tmp_path / "secret")
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="1 of 1 recorded inputs"):
        again(made, inputs=tmp_path / "moved")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a\0b", "."])
def test_recorded_names_can_not_lead_outside(tmp_path: Path, name: str) -> None:
    file = RecordedFile(source="web", relative=name, size_bytes=1, sha256="0" * 64)
    (tmp_path / "secret").write_text("x")
    (tmp_path / "root").mkdir()
    roots = [{"source": "web", "root": str(tmp_path / "root")}]
    for inputs in (None, str(tmp_path / "root")):
        with pytest.raises(InputError, match="recorded inputs"):
            find_files([file], roots=roots, inputs=inputs)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"stages": [{"normalize": {}}, {"os.system": {"run": "true"}}]},
            r"the stage 'os\.system'",
        ),
        ({"stages": [{"normalize": {"unicode": "NFX"}}]}, "can't be understood"),
        ({"output": None}, "can't be understood"),
        ({"stages": [7]}, "can't be understood"),
        ({"inputs": []}, "can't be understood"),
        ({"inputs": [{"source": "a/b"}]}, "can't be understood"),
        ({"inputs": None}, "can't be understood"),
        ({"name": "-"}, "can't be understood"),
        ({"guards": {"max_quarantined_fraction": 2}}, "can't be understood"),
        ({"tokenize": {"special_text": "nonsense"}}, "can't be understood"),
        ({"tokenize": {"backend": "nonsense"}}, "can't be understood"),
    ],
    ids=str,
)
def test_recipes_that_can_not_be_carried_out_are_not_rebuilt(
    made: Dataset, change: dict[str, Any], expected: str
) -> None:
    foreign = with_recipe(made, change)
    report = again(foreign, inputs=None)
    assert_refused(report, expected)


def test_a_file_of_a_source_that_the_recipe_does_not_have_is_not_rebuilt(made: Dataset) -> None:
    inputs = [{**entry, "source": "other"} for entry in made.manifest.recipe["inputs"]]
    report = again(with_recipe(made, {"inputs": inputs}), inputs=None)
    assert_refused(report, "a source that the recipe doesn't have")


@pytest.mark.parametrize(
    ("version", "section", "change", "expected"),
    [
        (3, "tokenize", {"append_eos": False}, "without an end-of-document token"),
        (1, "guards", {"max_quarantined_fraction": 0, "max_dropped_fraction_per_source": 0}, None),
        (1, "tokenize", {"special_text": "error"}, None),
        (1, "tokenize", {"eos": "<|nobody|>"}, None),
    ],
    ids=["append_eos", "guards", "special_text", "eos"],
)
def test_what_a_build_refuses_is_a_verdict(
    made: Dataset,
    tmp_path: Path,
    version: int,
    section: str,
    change: dict[str, Any],
    expected: str | None,
) -> None:
    opened = made.repository.open(version)
    recipe = opened.manifest.recipe
    foreign = with_recipe(opened, {section: {**recipe[section], **change}})
    report = again(foreign, inputs=tmp_path / "moved")
    if expected is not None:
        assert_refused(report, expected)
    assert report.verdict in Verdict


def test_a_guard_that_stops_it_is_a_verdict(made: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "moved/books/bad.jsonl"
    path.write_text('{"text": "a"}\n' + "bad\n" * 20)
    request = Request(inputs=(str(path),), source="books", max_quarantined_fraction=1.0)
    append_dataset(made.repository.url, request, options=BuildOptions(workers=1))
    opened = open_dataset(made.repository.url)
    strict = with_recipe(opened, {"guards": {"max_quarantined_fraction": 0.5}})
    assert_refused(again(strict, inputs=tmp_path / "moved"), "max_quarantined_fraction 0.5")


def with_recipe(version: Dataset, change: dict[str, Any]) -> Dataset:
    """Returns a version as somebody else might have written it."""
    recipe = {**version.manifest.recipe, **change}
    return Dataset(
        repository=version.repository,
        version=version.version,
        manifest=msgspec.structs.replace(version.manifest, recipe=recipe),
        manifest_sha256=version.manifest_sha256,
    )


def assert_refused(report: RebuildReport, expected: str) -> None:
    assert report.verdict is Verdict.NOT_REBUILT
    (step,) = report.steps
    assert step.rebuilt is None
    assert step.difference is not None
    assert step.difference.cause == "recipe"
    assert re.search(expected, step.reason)


def test_a_rebuild_is_not_remembered(
    made: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert again(made, inputs=tmp_path / "moved", last_step=True).verdict is Verdict.IDENTICAL
    assert not (tmp_path / "state").exists()


def test_a_damaged_parent_is_named(made: Dataset, tmp_path: Path) -> None:
    parent = made.repository.open(2)
    path = Path(made.url) / f"signatures/{parent.manifest.files('signatures')[0].sha256}.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(DamagedError, match="signatures/"):
        again(made, inputs=tmp_path / "moved")


@pytest.mark.parametrize(
    ("pattern", "path", "covers"),
    [
        ("a.jsonl", "a.jsonl", True),
        ("web", "web/deep/a.jsonl", True),
        ("", "a.jsonl", True),
        ("web/*.jsonl", "web/a.jsonl", True),
        ("web/*.jsonl", "old/a.jsonl", False),
        ("**/b.txt", "x/y/b.txt", True),
        ("**/b.txt", "b.txt", True),
        ("**", "x/y/b.txt", True),
        ("w[0]", "w[0]/a", True),
        ("web/a", "web", False),
    ],
)
def test_whose_a_file_is(pattern: str, path: str, covers: bool) -> None:
    assert fits(pattern, path) is covers
