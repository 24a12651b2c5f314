from __future__ import annotations

import json
from pathlib import Path

import pytest

from datapipe.dataset import Dataset, open_dataset
from datapipe.engine import BuildOptions, Request, build_dataset
from datapipe.engine.rebuild import RebuildOptions, Verdict, rebuild_dataset

RECIPE = """
name: filtered
inputs: [{source: web, paths: [a.jsonl]}]
stages: [{url_filter: {block_hosts: blocked.txt}}]
"""


@pytest.fixture
def made(tmp_path: Path, tokenizer_path: Path) -> Dataset:
    """A version whose stage read a file, which isn't there any more."""
    rows = [{"text": f"text {n}", "url": f"http://{'bad' if n else 'good'}.org"} for n in (0, 1)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "blocked.txt").write_text("bad.org\n")
    recipe = tmp_path / "r.yaml"
    recipe.write_text(RECIPE + f"tokenize: {{tokenizer: {tokenizer_path}}}\n")
    request = Request(inputs=(str(recipe),), max_dropped_fraction=1.0)
    build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))
    (tmp_path / "blocked.txt").rename(tmp_path / "moved.txt")
    return open_dataset(str(tmp_path / "ds"))


def test_a_file_is_found_by_its_bytes(made: Dataset, tmp_path: Path) -> None:
    assert made.dropped().num_rows == 1
    (tmp_path / "other.txt").write_text("good.org\n")
    given = (str(tmp_path / "other.txt"), str(tmp_path / "moved.txt"))
    report = rebuild_dataset(made, options=RebuildOptions(data_files=given, workers=1))
    assert report.verdict is Verdict.IDENTICAL


def test_without_it_nothing_is_rebuilt(made: Dataset, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("good.org\n")
    for given in ((), (str(tmp_path / "other.txt"),)):
        report = rebuild_dataset(made, options=RebuildOptions(data_files=given, workers=1))
        assert report.verdict is Verdict.NOT_REBUILT
        assert "name files with these bytes by --data-file" in report.steps[0].reason
