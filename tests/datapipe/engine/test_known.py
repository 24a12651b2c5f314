"""Which files an append reads again, and what it says of those that it doesn't."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from datapipe.dataset import Dataset, open_dataset, verify_dataset
from datapipe.engine import BuildOptions, BuildReport, Request, append_dataset, build_dataset
from datapipe.errors import UsageError

RECORD = {"text": "the text", "summary": "the summary", "uri": "http://example.org/x"}


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "a.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(RECORD) + "\n")
    return path


@pytest.fixture
def out(tmp_path: Path, tokenizer_path: Path, inputs: Path) -> Path:
    """A dataset that read `text` of the file, for source documents."""
    request = Request(inputs=(str(inputs),), tokenizer=str(tokenizer_path))
    build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))
    return tmp_path / "ds"


def append(out: Path, *inputs: Path, **request: str) -> BuildReport:
    asked = Request(inputs=tuple(map(str, inputs)), **request)  # type: ignore[arg-type]
    return append_dataset(str(out), asked, options=BuildOptions(workers=1))


def append_recipe(
    out: Path,
    inputs: Path,
    entry: str = "",
    stages: str = "[normalize, drop_empty, dedup_exact]",
    source: str = "documents",
) -> BuildReport:
    recipe = out.parent / "recipe.yaml"
    recipe.write_text(
        f"name: x\ninputs: [{{source: {source}, paths: ['{inputs}']{entry}}}]\nstages: {stages}\n"
    )
    return append(out, recipe)


def counts(out: Path) -> tuple[int, dict[str, int]]:
    """Returns how many documents were kept and dropped in all."""
    dataset: Dataset = open_dataset(str(out))
    assert verify_dataset(dataset).problems == []
    dropped: dict[str, int] = {}
    for row in dataset.manifest.conservation:
        for rule, count in row.dropped.items():
            dropped[rule] = dropped.get(rule, 0) + count
    return dataset.manifest.totals.kept, dropped


def test_another_text_field_is_read(out: Path, inputs: Path) -> None:
    report = append(out, inputs, text_field="summary")
    assert (report.inputs_read, report.inputs_skipped, report.version) == (1, 0, 2)
    assert counts(out) == (2, {})
    again = append(out, inputs, text_field="summary")
    assert (again.inputs_read, again.inputs_skipped, again.created) == (0, 1, False)


def test_another_text_field_with_a_text_that_is_in_is_a_duplicate(out: Path, inputs: Path) -> None:
    other = inputs.with_name("b.jsonl")
    other.write_text('{"text": "the text", "again": "the text"}\n')
    append(out, other)
    report = append(out, other, text_field="again")
    assert report.inputs_read == 1
    assert counts(out) == (1, {"dedup_exact.duplicate": 2})


def test_another_format_is_read(out: Path, inputs: Path) -> None:
    assert append_recipe(out, inputs, ", format: text").inputs_read == 1
    assert counts(out)[0] == 2
    assert append_recipe(out, inputs, ", format: text, fields: {text: any}").inputs_read == 0


def test_another_source_is_read(out: Path, inputs: Path) -> None:
    assert append(out, inputs, source="other").inputs_read == 1
    assert counts(out) == (1, {"dedup_exact.duplicate": 1})
    assert append_recipe(out, inputs, stages="[]", source="third").inputs_read == 1
    assert counts(out)[0] == 2


@pytest.mark.parametrize(
    "entry", [", licence: CC0-1.0", ", fields: {url: uri}"], ids=["licence", "url field"]
)
def test_another_description_is_not_read_and_that_is_said(
    out: Path, inputs: Path, entry: str
) -> None:
    report = append_recipe(out, inputs, entry)
    assert (report.inputs_read, report.inputs_skipped, report.created) == (0, 1, False)
    (note,) = report.warnings
    assert "1 files are in already with another licence, or other fields" in note
    assert "build anew" in note


def test_other_stages_are_not_run_again_and_that_is_said(out: Path, inputs: Path) -> None:
    new = inputs.with_name("b.jsonl")
    new.write_text('{"text": "new"}\n')
    report = append_recipe(out, inputs.parent, stages="[drop_empty, dedup_exact]")
    assert (report.inputs_read, report.inputs_skipped) == (1, 1)
    (note,) = report.warnings
    assert "1 files are in already, cleaned by other stages than this recipe has" in note
    assert counts(out) == (2, {})


def test_the_same_settings_say_nothing(out: Path, inputs: Path) -> None:
    assert append(out, inputs).warnings == []
    assert append_recipe(out, inputs).warnings == []


def test_settings_of_a_source_outlast_appends_to_others(out: Path, inputs: Path) -> None:
    append_recipe(out, inputs, ", fields: {text: summary}, licence: CC0-1.0", source="other")
    new = inputs.with_name("b.jsonl")
    new.write_text('{"text": "b", "summary": "sum of b"}\n')
    append(out, new, source="documents")
    last = inputs.with_name("c.jsonl")
    last.write_text('{"summary": "sum of c"}\n')
    append(out, last, source="other")
    table = open_dataset(str(out)).inputs().to_pylist()
    fields = {row["file"]: (json.loads(row["fields"])["text"], row["licence"]) for row in table[2:]}
    assert fields == {"b.jsonl": ("text", None), "c.jsonl": ("summary", "CC0-1.0")}


def test_a_source_read_in_two_ways_asks_which(out: Path, inputs: Path) -> None:
    append(out, inputs, text_field="summary")
    new = inputs.with_name("b.jsonl")
    new.write_text('{"text": "b"}\n')
    with pytest.raises(UsageError, match=r"different fields or licences.*--text-field"):
        append(out, new)
    assert append(out, new, text_field="text").inputs_read == 1
