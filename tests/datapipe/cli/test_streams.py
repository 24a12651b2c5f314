"""Standard streams that are closed, full or gone, in real processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
_ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tokenizers'}"}


@pytest.fixture
def build(tmp_path: Path, tokenizer_path: Path) -> str:
    """The words of a build that succeeds, for a shell."""
    lines = [json.dumps({"text": f"the fox number {n}"}) + "\n" for n in range(50)]
    (tmp_path / "a.jsonl").write_text("".join(lines))
    (tmp_path / "b.jsonl").write_text('{"text": "one more"}\n')
    out = tmp_path / "ds"
    return f"build {tmp_path}/a.jsonl {tmp_path}/b.jsonl -t {tokenizer_path} -o {out} -j 2"


def _shell(words: str) -> subprocess.CompletedProcess[str]:
    command = f"{sys.executable} -m datapipe {words}"
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=_ENVIRONMENT, check=False
    )


@pytest.mark.parametrize("sink", ["2>&-", "2>/dev/full", "2>&- <&-"])
def test_a_build_goes_on_without_standard_error(build: str, tmp_path: Path, sink: str) -> None:
    done = _shell(f"{build} --json {sink}")
    assert done.returncode == 0
    assert json.loads(done.stdout)["documents"]["kept"] == 51
    assert (tmp_path / "ds/_log").exists()


@pytest.mark.parametrize("sink", [">&-", ">/dev/full"])
@pytest.mark.parametrize("form", ["", "--json"])
def test_a_result_that_nobody_takes_is_said_to_be_committed(
    build: str, sink: str, form: str
) -> None:
    done = _shell(f"{build} -q {form} {sink}")
    assert done.returncode == 1
    assert re.fullmatch(
        r"datapipe: the result can't be written to standard output: .*; version 1 of .*ds was "
        r"committed all the same.*\n",
        done.stderr,
    ), done.stderr


@pytest.mark.parametrize("form", ["", "--json"])
def test_a_reader_that_has_seen_enough_is_no_failure(build: str, form: str) -> None:
    done = _shell(f"{build} -q {form} | true; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.parametrize("words", ["--help", "--version", "build --help", "frobnicate"])
@pytest.mark.parametrize("sink", [">&- 2>&-", ">/dev/full 2>/dev/full", "| true"])
def test_no_stream_makes_a_traceback(words: str, sink: str) -> None:
    done = _shell(f"{words} {sink}")
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 2)
