from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import datapipe
from datapipe.engine.own import find, installed_stages, stages_of_files
from datapipe.engine.rebuild import RebuildOptions, Verdict, rebuild_dataset
from datapipe.errors import FailedError, RecipeError, UsageError

STAGES = """
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from datapipe.documents import StageResult, dropped_rows


@dataclass
class Short:
    max_bytes: int = 10

    def apply(self, batch):
        stays = pc.less_equal(pc.binary_length(batch.column("text")), self.max_bytes)
        gone = batch.filter(pc.invert(stays))
        return StageResult(batch.filter(stays), dropped_rows(gone, stage="short", rule="long"))


STAGES = {"short": Short}
"""


@pytest.fixture
def folder(tmp_path: Path, tokenizer_path: Path) -> Path:
    lines = [json.dumps({"text": text}) for text in ("one", "a text that is long", "two", "three")]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "more.jsonl").write_text('{"text": "four"}\n{"text": "another long text"}\n')
    (tmp_path / "stages.py").write_text(STAGES)
    (tmp_path / "recipe.yaml").write_text(
        "name: x\ninputs: [{source: s, paths: [in.jsonl]}]\nstages:\n  - short: {max_bytes: 5}\n"
        f"tokenize: {{tokenizer: {tokenizer_path}}}\n"
    )
    return tmp_path


def built(folder: Path, **given: Any) -> datapipe.Dataset:
    options: dict[str, Any] = {"stages": [folder / "stages.py"], "workers": 1} | given
    return datapipe.build(folder / "recipe.yaml", out=folder / "out", **options)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_build_with_a_stage_of_ones_own(folder: Path, workers: int) -> None:
    if workers == 2:
        for number in range(3):
            (folder / f"in{number}.jsonl").write_text('{"text": "x"}\n' * 10)
    made = built(folder, workers=workers)
    assert made.dropped()["rule"].to_pylist() == ["long"]
    (stage,) = made.manifest.recipe["stages"]
    assert stage["short"]["options"] == {"max_bytes": 5}
    assert stage["short"]["code"].startswith("sha256:")


def test_other_code_is_another_recipe_and_other_work(folder: Path) -> None:
    first = built(folder)
    changed = STAGES.replace("less_equal", "less")
    (folder / "stages.py").write_text(changed)
    second = built(folder)
    assert second.version == first.version + 1
    assert pc.sum(second.dropped()["source_length"]).as_py() > 0
    assert second.dropped().num_rows == 2
    codes = [made.manifest.recipe["stages"][0]["short"]["code"] for made in (first, second)]
    assert codes[0] != codes[1]


def test_nonsense_commits_nothing(folder: Path) -> None:
    (folder / "stages.py").write_text(STAGES.replace("batch.filter(stays)", "batch.slice(1)"))
    with pytest.raises(FailedError, match=r"stage short of .*stages\.py returned nonsense"):
        built(folder)
    assert datapipe.dataset.Repository(str(folder / "out")).latest() is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("STAGES = {", r"stages\.py can't be run: SyntaxError"),
        (
            "1 / 0",
            r"stages\.py can't be run: ZeroDivisionError: division by zero; nothing was done",
        ),
        ("x = 1", r"stages\.py doesn't define `STAGES = {name: class}`"),
        ("STAGES = {'Big Name': list}", "doesn't define"),
        ("STAGES = {'short': 3}", "doesn't define"),
        (
            "STAGES = {'normalize': list}",
            "a stage normalize, and there is one of that name already",
        ),
        (STAGES.replace("max_bytes: int", "limit: int"), "can't be made with the options {'max_b"),
        (STAGES.replace("def apply", "def run"), "is a Short without a method apply"),
        (None, r"stages\.py' can't be read: No such file"),
    ],
)
def test_a_file_that_is_no_file_of_stages_is_named(
    folder: Path, source: str | None, message: str
) -> None:
    (folder / "stages.py").unlink()
    if source is not None:
        (folder / "stages.py").write_text(source)
    with pytest.raises(UsageError, match=message):
        built(folder)


def test_a_stage_that_nobody_gave_isnt_known(folder: Path) -> None:
    with pytest.raises(RecipeError, match="`short` isn't a known stage"):
        built(folder, stages=[])


def test_options_are_json_values(folder: Path) -> None:
    recipe = folder / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("max_bytes: 5", "max_bytes: 2024-01-01"))
    with pytest.raises(RecipeError, match=r"line 4: .*options of a stage are text, numbers"):
        built(folder)


def test_stages_without_a_recipe_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="is given without a recipe, so nothing says where"):
        datapipe.build(folder / "in.jsonl", out=folder / "out", stages=[folder / "stages.py"])


def test_a_stage_of_two_files_is_refused(folder: Path) -> None:
    (folder / "other.py").write_text(STAGES)
    with pytest.raises(UsageError, match=r"other\.py defines a stage short, and there is one"):
        stages_of_files([str(folder / "stages.py"), str(folder / "other.py")])


def test_an_append_loads_no_code_because_the_dataset_names_it(folder: Path) -> None:
    built(folder)
    out, more = str(folder / "out"), folder / "more.jsonl"
    with pytest.raises(
        RecipeError, match=r"no code is loaded because a dataset names it.*--stages"
    ):
        datapipe.append(out, more, workers=1)
    added = datapipe.append(out, more, stages=[folder / "stages.py"], workers=1)
    assert added.dropped().num_rows == 2
    (folder / "stages.py").write_text(STAGES + "\n")
    with pytest.raises(RecipeError, match=r"made with the stage 'short' of sha256:.*give the code"):
        datapipe.append(out, folder / "in.jsonl", stages=[folder / "stages.py"], workers=1)


def test_a_rebuild_runs_only_what_is_allowed(folder: Path) -> None:
    made = built(folder)
    files = (str(folder / "stages.py"),)
    for options in (RebuildOptions(), RebuildOptions(stages=files)):
        report = rebuild_dataset(made, options=options)
        assert report.verdict is Verdict.NOT_REBUILT
        (step,) = report.steps
        assert "no code is loaded because a dataset names it" in str(step.reason)
        assert "give --allow-stage NAME" in str(step.reason)
    with pytest.raises(UsageError, match=r"--allow-stage 'other': .*\(there are short\)"):
        rebuild_dataset(made, options=RebuildOptions(stages=files, allow_stages=("other",)))
    allowed = RebuildOptions(stages=files, allow_stages=("short",), workers=1)
    assert rebuild_dataset(made, options=allowed).verdict is Verdict.IDENTICAL


def test_stages_of_installed_packages_are_found_by_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = folder / "packages"
    info = packages / "mine-1.2.dist-info"
    info.mkdir(parents=True)
    (packages / "mine_stages.py").write_text(STAGES)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[datapipe.stages]\nshort = mine_stages:Short\n")
    monkeypatch.syspath_prepend(packages)
    assert installed_stages()["short"].code == "mine 1.2"
    made = built(folder, stages=[])
    assert made.dropped()["rule"].to_pylist() == ["long"]
    assert made.manifest.recipe["stages"][0]["short"]["code"] == "mine 1.2"
    assert metadata.version("mine") == "1.2"
    assert find.GROUP == "datapipe.stages"
