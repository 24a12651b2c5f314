from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from datapipe.engine import stages
from datapipe.engine.stages import StageCall, file_digests
from datapipe.errors import InputError, ResumableError
from datapipe.recipe import Recipe, data_files, stage_options
from datapipe.recipe.strict import DataFile, Strict


class Words(Strict):
    words: DataFile


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**stage_options.STAGE_OPTIONS, "words": Words}
    for module in (data_files, stage_options):
        monkeypatch.setattr(module, "STAGE_OPTIONS", known)
    monkeypatch.setattr("datapipe.recipe.model.STAGE_OPTIONS", known)
    monkeypatch.setitem(stages._STAGES, "words", lambda options: options)


def recipe(path: str) -> Recipe:
    return Recipe.model_validate(
        {
            "name": "x",
            "inputs": [{"source": "s", "paths": ["in"]}],
            "stages": [{"words": {"words": path}}],
        }
    )


def call(path: Path) -> StageCall:
    made = recipe(str(path))
    (found,) = stages.stage_calls(made, file_digests(made))
    return found


def test_a_stage_is_what_its_files_say_and_not_where_they_are(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"one\n")
    one, other = call(tmp_path / "a"), call(tmp_path / "b")
    digest = hashlib.sha256(b"one\n").hexdigest()
    assert one.identity == other.identity == {"words": f"sha256:{digest}"}
    made: object = one.make()
    assert made == {"words": str(tmp_path / "a")}


def test_a_file_that_changes_stops_the_build(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\n")
    made = call(path)
    path.write_bytes(b"other\n")
    with pytest.raises(ResumableError, match="has changed since the build began"):
        made.make()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing", "missing', which a stage reads, can't be read: No such file"),
        ("~nobody-of-that-name/x", "can't be read: .*home"),
        ("a\0b", "can't be read: .*null"),
        (".", "Is a directory"),
        ("s3://key:secret@bucket/x", r"is to read s3://bucket/x; stages read local files"),
    ],
    ids=["missing", "no user", "NUL", "folder", "url"],
)
def test_a_file_that_cant_be_read_is_named(
    path: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message) as caught:
        file_digests(recipe(path))
    assert "secret" not in str(caught.value)
