from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    texts = ["one\nline", "two", "two", " "]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def test_a_preview_shows_what_stays_and_writes_nothing(
    raw: Path, command: Command, tokenizer_path: Path
) -> None:
    before = sorted(raw.parent.rglob("*"))
    ended = command("preview", raw, "-t", tokenizer_path, "-q")
    assert ended.code == 0
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert any(line.startswith("documents 4") for line in lines)
    assert any(line.startswith("drop_empty 4 3 75.0% 0") for line in lines)
    assert "dedup_exact.duplicate: 1 dropped (33.3%)" in lines
    assert "a build of all, if the rest is like the sample" in ended.out
    assert sorted(raw.parent.rglob("*")) == before


def test_a_preview_as_json(raw: Path, command: Command) -> None:
    data = command("preview", raw, "--json", "-q").json()
    assert [stage["stage"] for stage in data["stages"]] == [
        "normalize",
        "drop_empty",
        "dedup_exact",
    ]
    assert data["sources"][0]["kept"] == 2
    assert data["estimate"]["tokens"] is None


@pytest.mark.parametrize("size", ["much", "0", "-1", ""])
def test_a_sample_that_is_no_size_is_refused(size: str, raw: Path, command: Command) -> None:
    ended = command("preview", raw, "--sample", size)
    assert ended.code == 2
    assert "isn't a size" in ended.err
    assert ended.err.count("\n") == 1


def test_a_recipe_that_is_wrong_is_refused(tmp_path: Path, command: Command) -> None:
    (tmp_path / "r.yaml").write_text("name: x\ninputs: [{source: s, paths: [missing.jsonl]}]\n")
    ended = command("preview", tmp_path / "r.yaml", "-q")
    assert ended.code != 0
    assert "missing.jsonl" in ended.err
