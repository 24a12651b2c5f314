"""Nothing stays in the work folder when a run ends, and nothing goes that another run needs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from datapipe.dataset import Repository, begin_transaction, open_dataset, verify_dataset
from datapipe.dataset.process import is_gone, this_process
from datapipe.dataset.workplace import await_work, emptying_work
from datapipe.engine import BuildOptions, BuildReport, Request, append_dataset, build_dataset
from datapipe.engine.work import Piece, Work
from datapipe.errors import DatasetError, GuardError, ResumableError

_KILLED = """
import os, signal, sys
from datapipe.engine import BuildOptions, Request, append_dataset, building

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(building, sys.argv[3], die)
append_dataset(sys.argv[1], Request(inputs=(sys.argv[2],)), options=BuildOptions(workers=1))
"""


def write(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def build(inputs: Path, tokenizer: Path, out: Path, **options: Any) -> BuildReport:
    request = Request(inputs=(str(inputs),), tokenizer=str(tokenizer))
    return build_dataset(request, out=str(out), options=BuildOptions(workers=1, **options))


def append(out: Path, inputs: Path) -> BuildReport:
    request = Request(inputs=(str(inputs),))
    return append_dataset(str(out), request, options=BuildOptions(workers=1))


def left(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.fixture
def out(tmp_path: Path, tokenizer_path: Path) -> Path:
    """A dataset of one version."""
    build(write(tmp_path / "first.jsonl", ["first"]), tokenizer_path, tmp_path / "ds")
    return tmp_path / "ds"


def kill_append(out: Path, inputs: Path, *, at: str) -> None:
    """Runs an append that is killed where it would call a function of `building`."""
    command = [sys.executable, "-c", _KILLED, str(out), str(inputs), at]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


def test_what_an_append_killed_behind_its_commit_left_goes_with_the_next_run(
    tmp_path: Path, out: Path
) -> None:
    second = write(tmp_path / "b.jsonl", ["second"])
    kill_append(out, second, at="empty_work")
    assert open_dataset(str(out)).version == 2
    assert any("documents" in name for name in left(out / "_work"))
    report = append(out, second)
    assert (report.created, report.version) == (False, 2)
    assert left(out / "_work") == []


def test_what_an_append_killed_before_its_commit_left_goes_with_another_ones_end(
    tmp_path: Path, out: Path
) -> None:
    kill_append(out, write(tmp_path / "b.jsonl", ["second"]), at="commit_version")
    assert left(out / "_work")
    append(out, write(tmp_path / "c.jsonl", ["third"]))
    assert left(out / "_work") == []
    assert verify_dataset(open_dataset(str(out))).problems == []


def test_a_mended_input_takes_away_what_the_stopped_build_left(
    tmp_path: Path, tokenizer_path: Path, out: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("private, and no JSON\n" * 20)
    with pytest.raises(GuardError):
        build(bad, tokenizer_path, out)
    assert left(out / "_work")
    build(write(bad, ["mended"]), tokenizer_path, out)
    assert left(out / "_work") == []


def test_a_repeated_build_leaves_nothing(tmp_path: Path, tokenizer_path: Path, out: Path) -> None:
    assert not build(tmp_path / "first.jsonl", tokenizer_path, out).created
    assert left(out / "_work") == []


def test_a_work_folder_of_its_own_is_emptied_by_dataset(
    tmp_path: Path, tokenizer_path: Path
) -> None:
    work = tmp_path / "work"
    inputs = write(tmp_path / "a.jsonl", ["a"])
    (work / "mine").mkdir(parents=True)
    (work / "mine" / "file").write_text("")
    Work(str(work), "0" * 32 + "/").finish(Piece("scan", "other dataset's"), {})
    build(inputs, tokenizer_path, tmp_path / "ds", work=str(work))
    kept = [f"{'0' * 32}/scan/other dataset's/record.json", "mine/file"]
    assert [name for name in left(work) if not name.startswith(".tiering")] == kept


# -- beside others


@contextmanager
def another_writer(out: Path) -> Iterator[None]:
    repo = Repository(str(out))
    with begin_transaction(repo, base_version=1, author="", time_seconds=0.0):
        yield


def test_what_others_may_use_stays_while_they_work(
    tmp_path: Path, tokenizer_path: Path, out: Path
) -> None:
    theirs = Work(str(out), "_work/")
    theirs.finish(Piece("scan", "theirs"), {})
    with another_writer(out):
        append(out, write(tmp_path / "b.jsonl", ["second"]))
        names = left(out / "_work")
        assert [name.split("/")[0] for name in names if "theirs" not in name] == ["tokenizer"]
        build(tmp_path / "first.jsonl", tokenizer_path, tmp_path / "ds")
    assert theirs.record(Piece("scan", "theirs")) is not None
    append(out, tmp_path / "b.jsonl")
    assert left(out / "_work") == []


def test_a_run_that_commits_nothing_leaves_what_its_twin_needs(
    tmp_path: Path, tokenizer_path: Path, out: Path
) -> None:
    with another_writer(out):
        build(tmp_path / "first.jsonl", tokenizer_path, out)
        assert any(name.startswith("scan/") for name in left(out / "_work"))
    build(tmp_path / "first.jsonl", tokenizer_path, out)
    assert left(out / "_work") == []


def test_a_writer_waits_while_the_folder_is_emptied(out: Path) -> None:
    repo = Repository(str(out))
    waited = threading.Event()

    def begin() -> None:
        await_work(repo)
        waited.set()

    with emptying_work(repo) as is_alone:
        assert is_alone
        thread = threading.Thread(target=begin)
        thread.start()
        assert not waited.wait(0.3)
    thread.join()
    assert waited.is_set()
    assert list(repo.store.list("_gc/")) == []


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"no Arrow")])
@pytest.mark.parametrize("name", ["documents.arrow", "keys.arrow"])
def test_half_of_a_piece_is_made_anew(
    tmp_path: Path,
    out: Path,
    name: str,
    harm: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inputs = write(tmp_path / "b.jsonl", ["x", "y"])
    with monkeypatch.context() as patched:
        patched.setattr("datapipe.engine.building.commit_version", _fail)
        with pytest.raises(KeyboardInterrupt):
            append(out, inputs)
    for path in (out / "_work").rglob("*"):
        if path.name == name:
            harm(path)
        elif path.parent.parent.name == "encode":
            path.unlink()
    with pytest.raises(ResumableError, match=r"is gone or damaged \(scan .*the same command again"):
        append(out, inputs)
    assert append(out, inputs).version == 2


def test_a_damaged_record_is_of_an_unfinished_piece(tmp_path: Path) -> None:
    work, piece = Work(str(tmp_path), "_work/"), Piece("scan", "a")
    work.finish(piece, {"parts": []})
    assert work.record(piece) == {"parts": []}
    work.put_bytes(piece, "record.json", memoryview(b'{"parts"'))
    assert work.record(piece) is None


def _fail(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_store_that_cannot_be_emptied_is_only_noted(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise DatasetError("read only")

    monkeypatch.setattr("datapipe.engine.building.empty_work", refuse)
    assert append(out, write(tmp_path / "b.jsonl", ["second"])).version == 2


# -- processes


def test_this_process_is_there() -> None:
    assert this_process()
    assert not is_gone(this_process())


def test_a_killed_process_is_gone() -> None:
    code = "from datapipe.dataset.process import this_process; print(this_process())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert is_gone(done.stdout.strip())


@pytest.mark.parametrize(
    "change",
    [
        lambda _: [],
        lambda words: ["other-boot", *words[1:]],
        lambda words: [words[0], "pid:[1]", *words[2:]],
        lambda words: [*words[:2], "not a number", words[3]],
        lambda words: [*words[:2], "9" * 30, words[3]],
    ],
    ids=["unknown", "another boot", "another container", "damaged", "too large"],
)
def test_what_cannot_be_known_is_not_gone(change: Callable[[list[str]], list[str]]) -> None:
    assert not is_gone(" ".join(change(this_process().split(" "))))


def test_a_number_that_is_used_again_is_gone() -> None:
    words = this_process().split(" ")
    assert words[2] == str(os.getpid())
    assert is_gone(" ".join([*words[:3], "1"]))
