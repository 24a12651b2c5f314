"""Real processes, ended from outside: one line, the right exit code, nothing left running."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
_ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tokenizers'}", "TERM": "xterm"}
_NOTHING = r"datapipe: interrupted; nothing was .*run the same command again.*\n"
_COMMITTED = r"datapipe: interrupted; version 1 of .* was committed.*\n"

# Sends this process's whole group a signal when the build comes to a point, as a terminal does.
_PATCHED = """
import os, signal, sys, time
from datapipe.cli import main
from datapipe.engine import building, units, work

point, number = os.environ["POINT"], int(os.environ["NUMBER"])
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored below a background job
units.UNIT_BYTES = 100_000  # enough units that workers are started

def interrupting(function):
    def called(*given, **named):
        os.killpg(0, number)
        time.sleep(0.01)
        return function(*given, **named)
    return called

def interrupted_after(function):
    def called(*given, **named):
        result = function(*given, **named)
        os.killpg(0, number)
        time.sleep(0.01)
        return result
    return called

if __name__ == "__main__":
    if point == "start-up":
        from concurrent.futures import ProcessPoolExecutor

        ProcessPoolExecutor.submit = interrupted_after(ProcessPoolExecutor.submit)
    if point == "encode":
        building.merge.quarantine_table = interrupting(building.merge.quarantine_table)
    if point == "emptying":
        building.empty_work = interrupting(building.empty_work)
    if point == "printing":
        import datapipe.cli.build as build
        build._draw = interrupted_after(build._draw)
    main()
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(4):
        texts = (f"{number} {n} fox dog wizard " * 8 for n in range(2000))
        lines = (json.dumps({"text": text}) + "\n" for text in texts)
        (folder / f"{number}.jsonl").write_text("".join(lines))
    return folder


def _group_is_gone(group: int) -> bool:
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def _ended(process: subprocess.Popen[str]) -> Ended:
    out, err = process.communicate(timeout=60)
    assert _group_is_gone(process.pid), "a process outlives the command"
    return Ended(process.returncode, out, err)


def _started(words: list[str], *, point: str = "", number: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**_ENVIRONMENT, "POINT": point, "NUMBER": str(int(number))},
        start_new_session=True,
    )


def _wait_for_handlers(pid: int) -> None:
    """Waits until the command has begun: before, Python itself answers a signal."""
    for _ in range(600):
        status = Path(f"/proc/{pid}/status").read_text()
        caught = int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16)  # type: ignore[index]
        if caught >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.02)


def _build(inputs: Path, tokenizer: Path, out: Path) -> list[str]:
    script = inputs.with_name("patched.py")
    script.write_text(_PATCHED)
    return [
        str(script),
        "build",
        str(inputs),
        "-t",
        str(tokenizer),
        "-o",
        str(out),
        "-j",
        "2",
        "-q",
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("point", "line"),
    [
        ("start-up", _NOTHING),
        ("encode", _NOTHING),
        ("emptying", _COMMITTED),
        ("printing", _COMMITTED),
    ],
)
def test_a_signal_at_a_known_point_says_what_it_leaves(
    inputs: Path, tokenizer_path: Path, tmp_path: Path, number: int, point: str, line: str
) -> None:
    words = _build(inputs, tokenizer_path, tmp_path / "ds")
    ended = _ended(_started(words, point=point, number=number))
    assert ended.code == 128 + number
    assert re.fullmatch(line, ended.err), ended.err


@pytest.mark.parametrize("milliseconds", [0, 300, 1000])
@pytest.mark.parametrize("to_group", [True, False], ids=["terminal", "kill"])
def test_an_interruption_at_any_time_is_one_line(
    inputs: Path, tokenizer_path: Path, tmp_path: Path, milliseconds: int, to_group: bool
) -> None:
    process = _started(_build(inputs, tokenizer_path, tmp_path / "ds"))
    _wait_for_handlers(process.pid)
    time.sleep(milliseconds / 1000)
    (os.killpg if to_group else os.kill)(process.pid, signal.SIGINT)
    ended = _ended(process)
    assert ended.code in (130, 0)
    line = f"({_NOTHING}|{_COMMITTED}|datapipe: interrupted; it was committing.*\n)"
    assert re.fullmatch(line if ended.code else "", ended.err), ended.err


def test_an_ignored_signal_stays_ignored() -> None:
    code = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
        "from datapipe.cli.signals import catch_signals; catch_signals();"
        "signal.raise_signal(signal.SIGHUP); print('went on')"
    )
    assert _ended(_started(["-c", code])).out == "went on\n"
