from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from datapipe.recipe import load_recipe, named_files, stage_options, with_files
from datapipe.recipe.strict import DataFile, Strict


class Words(Strict):
    one: DataFile | None = None
    several: list[DataFile] = []  # noqa: RUF012 - a pydantic model
    named: dict[str, DataFile] = {}  # noqa: RUF012
    other: str = ""


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, type[BaseModel]] = {**stage_options.STAGE_OPTIONS, "words": Words}
    for module in ("stage_options", "data_files", "load", "model"):
        monkeypatch.setattr(f"datapipe.recipe.{module}.STAGE_OPTIONS", known)


RECIPE = """
name: x
inputs: [{source: s, paths: [in.jsonl]}]
stages: [{words: {one: a.txt, several: [b.txt, /c.txt], named: {d: d.txt}, other: e.txt}}]
"""


def test_paths_of_data_files_are_relative_to_the_recipe(tmp_path: Path) -> None:
    recipe = load_recipe(RECIPE, folder=tmp_path)
    names = [f"{tmp_path}/{name}.txt" for name in "abd"]
    assert recipe.data_files == sorted(["/c.txt", *names])
    assert recipe.stages[0].options["other"] == "e.txt"


def test_a_resolved_recipe_has_digests_in_their_place(tmp_path: Path) -> None:
    recipe = load_recipe(RECIPE, folder=tmp_path)
    files = {path: f"sha256:{Path(path).stem}" for path in recipe.data_files}
    assert recipe.resolved(files=files)["stages"] == [
        {
            "words": {
                "one": "sha256:a",
                "several": ["sha256:b", "sha256:c"],
                "named": {"d": "sha256:d"},
                "other": "e.txt",
            }
        }
    ]


def test_options_without_files_stay() -> None:
    options: dict[str, object] = {"one": None, "several": [], "named": {}, "other": "x"}
    assert with_files("words", options, str.upper) == options
    assert named_files("unknown", {"one": "a"}) == set()
