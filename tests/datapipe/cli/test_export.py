from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datapipe.dataset import Dataset

Command = Callable[..., Any]


def test_export_says_what_it_wrote(command: Command, streamed: Dataset, tmp_path: Path) -> None:
    words = ("export", f"{streamed.url}@1", "--to", "megatron", "--out", tmp_path / "out")
    planned = command(*words, "--dry-run", "--json", "-q").json()
    assert (planned["written"], planned["dry_run"]) == (21, True)
    assert not (tmp_path / "out").exists()
    made = command(*words, "--source", "books")
    assert made.out.endswith("7 files written, 0 were there already\n")
    assert f"{tmp_path}/out/books.txt" in made.out
    assert "export: 52 documents" in made.err.replace("52/52", "52")
    again = command(*words, "--json").json()
    assert (again["written"], again["existing"]) == (14, 7)
    assert again["sources"][1] == {
        "source": "books",
        "listing": f"{tmp_path}/out/books.txt",
        "num_files": 3,
        "num_documents": 52,
        "num_tokens": again["sources"][1]["num_tokens"],
    }


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["{ds}", "--to", "numpy", "-o", "{tmp}/x"], 2, "Invalid value"),
        (["{ds}", "--to", "megatron"], 2, "Missing option"),
        (["{ds}", "--to", "megatron", "-o", "s3://b/x"], 2, "is no folder of this machine"),
        (["{tmp}/no", "--to", "megatron", "-o", "{tmp}/x"], 2, "no dataset at"),
        (["{ds}@9", "--to", "megatron", "-o", "{tmp}/x"], 2, "version"),
        (["{ds}", "--to", "megatron", "-o", "{tmp}/x", "--source", "z"], 2, "no source 'z'"),
        (["{ds}", "--to", "megatron", "-o", "{tmp}/file"], 1, "can't be written"),
    ],
)
def test_wrong_usage(
    command: Command, streamed: Dataset, tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    (tmp_path / "file").touch()
    filled = [word.format(ds=streamed.url, tmp=tmp_path) for word in words]
    ended = command("export", *filled, "-q")
    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err
