from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from datapipe.dataset import Repository, open_dataset, verify_dataset
from datapipe.engine import BuildOptions, BuildReport, Request, build_dataset, work
from datapipe.engine.executors import LocalExecutor
from datapipe.errors import ResumableError, SpaceError
from tiering.errors import NoSpaceError

_BUILD = """
import os, signal, sys
from datapipe.engine import BuildOptions, Request, build_dataset, units, work

units.UNIT_BYTES = 20_000
inputs, tokenizer, out, kill_at = sys.argv[1:]
finish, done = work.Work.finish, [0]

def finish_or_die(self, piece, record):
    done[0] += 1
    if done[0] == int(kill_at):
        os.kill(os.getpid(), signal.SIGKILL)
    finish(self, piece, record)

work.Work.finish = finish_or_die
request = Request(inputs=(inputs,), tokenizer=tokenizer)
build_dataset(request, out=out, options=BuildOptions(workers=1))
"""


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(6):
        texts = (f"{number} {n} fox dog wizard " * 8 for n in range(300))
        lines = (json.dumps({"text": text}) + "\n" for text in texts)
        (folder / f"{number}.jsonl").write_text("".join(lines))
    return folder


@pytest.fixture
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datapipe.engine.units.UNIT_BYTES", 20_000)


def _build(inputs: Path, tokenizer: Path, out: Path) -> BuildReport:
    request = Request(inputs=(str(inputs),), tokenizer=str(tokenizer))
    return build_dataset(request, out=str(out), options=BuildOptions(workers=1))


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize("kill_at", [1, 5, 25, 37])
def test_a_killed_build_is_completed_by_running_it_again(
    tmp_path: Path, tokenizer_path: Path, inputs: Path, kill_at: int
) -> None:
    undisturbed = _build(inputs, tokenizer_path, tmp_path / "reference")
    script = tmp_path / "build.py"
    script.write_text(_BUILD)
    out = tmp_path / "ds"
    command = [sys.executable, script, inputs, tokenizer_path, out, kill_at]
    killed = subprocess.run(list(map(str, command)), check=False)
    assert killed.returncode == -signal.SIGKILL
    assert Repository(str(out)).latest() is None
    assert not (out / "_manifests").exists()
    again = _build(inputs, tokenizer_path, out)
    assert again.manifest == undisturbed.manifest
    assert verify_dataset(open_dataset(str(out))).problems == []


@pytest.mark.usefixtures("small_units")
def test_a_run_again_does_only_what_is_unfinished(
    tmp_path: Path, tokenizer_path: Path, inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = _stop_at(monkeypatch, "encode", allowed=7)
    with pytest.raises(KeyboardInterrupt):
        _build(inputs, tokenizer_path, tmp_path / "ds")
    before = list(finished)
    finished.clear()
    monkeypatch.undo()
    monkeypatch.setattr("datapipe.engine.units.UNIT_BYTES", 20_000)
    after = _stop_at(monkeypatch, "encode", allowed=10_000)
    _build(inputs, tokenizer_path, tmp_path / "ds")
    assert not set(before) & set(after)
    assert [stage for stage, _ in after].count("scan") == 0
    assert [stage for stage, _ in before].count("encode") == 7


@pytest.mark.usefixtures("small_units")
def test_changed_input_does_not_meet_old_work(
    tmp_path: Path, tokenizer_path: Path, inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stop_at(monkeypatch, "encode", allowed=7)
    with pytest.raises(KeyboardInterrupt):
        _build(inputs, tokenizer_path, tmp_path / "ds")
    monkeypatch.undo()
    (inputs / "0.jsonl").write_text('{"text": "changed meanwhile"}\n')
    changed = _build(inputs, tokenizer_path, tmp_path / "ds")
    fresh = _build(inputs, tokenizer_path, tmp_path / "fresh")
    assert changed.content == fresh.content


def _stop_at(monkeypatch: pytest.MonkeyPatch, stage: str, *, allowed: int) -> list[tuple[str, str]]:
    """Interrupts the build when the given pass has finished so many pieces; returns them all."""
    finished: list[tuple[str, str]] = []
    finish = work.Work.finish

    def count(self: work.Work, piece: work.Piece, record: dict[str, object]) -> None:
        if [name for name, _ in finished].count(stage) == allowed:
            raise KeyboardInterrupt
        finish(self, piece, record)
        finished.append((piece.stage, piece.key))

    monkeypatch.setattr(work.Work, "finish", count)
    return finished


def test_a_killed_worker_is_a_build_to_run_again() -> None:
    executor = LocalExecutor(2)
    with pytest.raises(ResumableError, match=r"a worker process was killed.*again"):
        list(executor.map(_die, [1, 2, 3]))
    executor.close()


def _die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_workers_have_the_environment_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalExecutor(2) as first:
        list(first.map(_setting, [1, 2]))
    monkeypatch.setenv("DATAPIPE_SETTING", "new")
    with LocalExecutor(2) as second:
        assert [value for _, value in second.map(_setting, [1, 2])] == ["new", "new"]


def _setting(_: int) -> str | None:
    return os.environ.get("DATAPIPE_SETTING")


def test_workers_end_with_a_killed_build(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(_PARENT)
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()
    for _ in range(100):
        if not Path(f"/proc/{worker}").exists():
            return
        time.sleep(0.1)
    pytest.fail(f"worker {worker} outlives its build")


_PARENT = """
import os, time
from datapipe.engine.executors import LocalExecutor

def pid(_):
    return os.getpid()

if __name__ == "__main__":
    results = list(LocalExecutor(2).map(pid, [1, 2]))
    print(results[0][1], flush=True)
    time.sleep(60)
"""


def test_results_come_with_their_task_numbers() -> None:
    executor = LocalExecutor(2)
    assert sorted(executor.map(_double, list(range(9)))) == [(n, 2 * n) for n in range(9)]
    executor.close()


def _double(number: int) -> int:
    return 2 * number


def test_an_error_of_a_task_is_raised_as_it_is() -> None:
    executor = LocalExecutor(2)
    with pytest.raises(NoSpaceError, match="the disk is full"):
        list(executor.map(_fill, [1, 2]))
    executor.close()


def _fill(_: int) -> None:
    raise NoSpaceError("the disk is full", path="x")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(mount)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a tmpfs needs root")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


@pytest.mark.usefixtures("small_units")
def test_a_full_disk_leaves_nothing_visible_and_a_run_again_completes(
    tmp_path: Path, tokenizer_path: Path, inputs: Path, small_disk: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(2_000_000))
    with pytest.raises(SpaceError, match="run the same command again"):
        _build(inputs, tokenizer_path, small_disk / "ds")
    assert Repository(str(small_disk / "ds")).latest() is None
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    report = _build(inputs, tokenizer_path, small_disk / "ds")
    assert report.manifest == _build(inputs, tokenizer_path, tmp_path / "reference").manifest


def test_an_interruption_says_what_it_leaves(
    tmp_path: Path, tokenizer_path: Path, inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stop_at(monkeypatch, "scan", allowed=1)
    with pytest.raises(KeyboardInterrupt) as interrupted:
        _build(inputs, tokenizer_path, tmp_path / "ds")
    (note,) = interrupted.value.__notes__
    assert re.fullmatch(r"nothing was committed; .* finished work is kept in .*/ds/_work", note)
