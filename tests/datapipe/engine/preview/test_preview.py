from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from datapipe.documents import StageResult, Threshold, dropped_rows
from datapipe.engine import Request, stages
from datapipe.engine.preview import PreviewOptions, PreviewReport, preview_recipe
from datapipe.errors import InputError
from datapipe.recipe import stage_options
from datapipe.recipe.strict import Strict


class LengthSpec(Strict):
    least: int = 5


class Length:
    """Drops texts of fewer characters than it is told."""

    name, version = "length", 1

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options
        self.thresholds = {"short": Threshold("length.characters", float(options["least"]))}

    def apply(self, batch: pa.RecordBatch) -> StageResult:
        length = pc.utf8_length(batch.column("text"))
        short = pc.less(length, self.options["least"])
        value = length.filter(short).cast(pa.float64())
        gone = dropped_rows(
            batch.filter(short),
            stage=self.name,
            rule="short",
            value=value,
            threshold=float(self.options["least"]),
        )
        signals = pa.record_batch({"doc_id": batch.column("doc_id"), "length.characters": length})
        return StageResult(batch.filter(pc.invert(short)), gone, signals)


@pytest.fixture(autouse=True)
def length(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**stage_options.STAGE_OPTIONS, "length": LengthSpec}
    for module in ("stage_options", "data_files", "load", "model"):
        monkeypatch.setattr(f"datapipe.recipe.{module}.STAGE_OPTIONS", known)
    monkeypatch.setitem(stages._STAGES, "length", Length)


def write(path: Path, texts: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))


def preview(folder: Path, *, stages: str = "", **options: Any) -> PreviewReport:
    lines = "\n".join(
        f"  - {{source: {path.name}, paths: [{path.name}]}}"
        for path in sorted(folder.iterdir())
        if path.is_dir()
    )
    (folder / "r.yaml").write_text(f"name: x\ninputs:\n{lines}\nstages: [{stages}]\n")
    request = Request(inputs=(str(folder / "r.yaml"),))
    return preview_recipe(request, options=PreviewOptions(**options))


def test_each_stage_counts_what_comes_and_what_stays(tmp_path: Path) -> None:
    write(tmp_path / "a/1.jsonl", ["abcdefg\r", "ab", "abcdefg", ""])
    write(tmp_path / "b/1.jsonl", ["abc"])
    report = preview(tmp_path, stages="normalize, drop_empty, dedup_exact, {length: {least: 3}}")
    found = [(s.stage, s.documents_in, s.kept, s.changed) for s in report.stages]
    assert found == [
        ("normalize", 5, 5, 1),
        ("drop_empty", 5, 4, 0),
        ("dedup_exact", 4, 4, 0),
        ("length", 4, 3, 0),
    ]
    assert report.stages[-1].kept_of_source == {"a": (3, 2), "b": (1, 1)}
    assert [(s.source, s.documents, s.kept) for s in report.sources] == [("a", 4, 2), ("b", 1, 1)]


def test_equal_texts_are_found_within_the_sample(tmp_path: Path) -> None:
    write(tmp_path / "a/1.jsonl", ["same", "other", "same"])
    write(tmp_path / "b/1.jsonl", ["same"])
    (stage,) = preview(tmp_path, stages="dedup_exact").stages
    assert (stage.kept, stage.rules["duplicate"].dropped) == (2, 2)


def test_examples_on_both_sides_are_those_next_to_the_threshold(tmp_path: Path) -> None:
    write(tmp_path / "a/1.jsonl", ["x" * n for n in range(1, 20)])
    (stage,) = preview(tmp_path, stages="{length: {least: 10}}", examples=2).stages
    rule = stage.rules["short"]
    assert (rule.threshold, rule.dropped) == (10.0, 9)
    assert [(e.value, e.text) for e in rule.examples_dropped] == [(9.0, "x" * 9), (8.0, "x" * 8)]
    assert [e.value for e in rule.examples_kept] == [10.0, 11.0]


def test_the_sample_is_the_same_again_and_spread_over_the_files(tmp_path: Path) -> None:
    for name in "abcdef":
        write(tmp_path / f"s/{name}.jsonl", [f"{name} {n}" * 1000 for n in range(300)])
    write(tmp_path / "t/1.jsonl", ["small"])
    options: dict[str, Any] = {"sample_bytes": 6 << 20, "examples": 2000}
    options["stages"] = "{length: {least: 100000}}"
    one, other = preview(tmp_path, **options), preview(tmp_path, **options)
    assert one.sources == other.sources
    examples = one.stages[0].rules["short"].examples_dropped
    assert examples == other.stages[0].rules["short"].examples_dropped
    big, small = one.sources
    assert 0.5 < big.fraction < 1
    assert small.fraction == 1
    assert {e.source_file for e in examples if e.source_file != "1.jsonl"} == {
        f"{name}.jsonl" for name in "abcdef"
    }


def test_bad_records_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/1.jsonl").write_text('{"text": "one"}\n{"text":\n')
    (source,) = preview(tmp_path).sources
    assert (source.documents, source.quarantined) == (1, {"invalid_json": 1})


def test_the_whole_is_estimated(tmp_path: Path, tokenizer_path: Path) -> None:
    write(tmp_path / "a.jsonl", [f"some words to count {n}" for n in range(100)])
    request = Request(inputs=(str(tmp_path / "a.jsonl"),), tokenizer=str(tokenizer_path))
    report = preview_recipe(request, options=PreviewOptions(workers=3))
    found = report.estimate
    tokens = report.sources[0].tokens
    assert tokens is not None
    assert found.tokens is not None
    assert (found.workers, found.documents) == (3, 100)
    assert found.tokens == tokens
    assert found.disk_bytes == pytest.approx(2 * found.tokens + 60 * found.documents, abs=60)
    json.dumps(report.to_json())


def test_nothing_to_read_is_said(tmp_path: Path) -> None:
    write(tmp_path / "a/1.jsonl", [])
    with pytest.raises(InputError, match="hold no document that can be read"):
        preview(tmp_path)
