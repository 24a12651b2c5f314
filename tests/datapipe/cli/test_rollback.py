from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datapipe.dataset import open_dataset
from datapipe.testing import make_dataset


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A dataset that lost its second version after it was opened."""
    url = str(tmp_path / "ds")
    make_dataset(url, {"web": [[[3, 4, 0]]]})
    make_dataset(url, {"web": [[[5, 0]]]})
    assert open_dataset(url).version == 2
    (tmp_path / "ds/_log" / f"{2:020d}.json").unlink()
    (tmp_path / "ds/_log/HINT").write_text("1")
    return url


def test_nothing_is_built_upon_what_was_rolled_back(
    command: Callable[..., Any], url: str, tokenizer_path: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text('{"text": "more"}\n')
    for words in (["append", url, more], ["build", more, "-t", tokenizer_path, "-o", url]):
        refused = command(*words, "-q")
        assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
        assert "but version 2 was there" in refused.err


def test_what_this_user_committed_was_seen(
    command: Callable[..., Any], tokenizer_path: Path, tmp_path: Path
) -> None:
    url, log = tmp_path / "ds", tmp_path / "ds/_log"
    for number in (1, 2):
        (tmp_path / f"{number}.jsonl").write_text(f'{{"text": "number {number}"}}\n')
    assert command("build", tmp_path / "1.jsonl", "-t", tokenizer_path, "-o", url, "-q").code == 0
    assert command("append", url, tmp_path / "2.jsonl", "-q").code == 0
    assert command("index", url, "-q").code == 0
    for lost in (3, 2):
        (log / f"{lost:020d}.json").unlink()
        (log / "HINT").unlink(missing_ok=True)
        refused = command("show", url)
        assert refused.code == 1
        assert "but version 3 was there" in refused.err


def test_a_rollback_is_accepted_once_by_hand(command: Callable[..., Any], url: str) -> None:
    for words in (["show"], ["verify", "-q"], ["read"]):
        refused = command(*words, url)
        assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
        assert "is 1, but version 2 was there" in refused.err
    assert f"`datapipe show {url} --accept-rollback`" in refused.err
    assert command("show", url, "--accept-rollback", "--json").json()["version"] == 1
    assert command("show", url, "--json").json()["version"] == 1


def test_a_home_that_cant_be_written_is_one_line(tmp_path: Path) -> None:
    url = make_dataset(tmp_path / "ds", {"web": [[[3, 4, 0]]]}).url
    (tmp_path / "state").touch()
    done = subprocess.run(
        [sys.executable, "-m", "datapipe", "show", url, "--json"],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["version"] == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("datapipe: warning: ")
    assert "seen.json can't be written (Not a directory)" in done.stderr
