from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from datapipe.dataset import Collector, Repository, open_dataset, verify_dataset
from datapipe.engine import BuildOptions, BuildReport, Request, append_dataset, build_dataset
from datapipe.errors import CommitConflictError
from datapipe.observe import NO_PROGRESS
from tiering.store import open_store
from tiering.testing import FaultyStore


class At:
    """Listens to a build and does something when a phase begins, once."""

    def __init__(self, phase: str, action: Callable[[], object]) -> None:
        self._phase, self._action, self._done = phase, action, False
        self.notes: list[str] = []

    def begin(self, phase: str, total: int, unit: str) -> None:  # noqa: ARG002 (the protocol's)
        if phase == self._phase and not self._done:
            self._done = True
            self._action()

    def advance(self, amount: int) -> None: ...

    def end(self) -> None: ...

    def note(self, message: str) -> None:
        self.notes.append(message)


def write(path: Path, *texts: str) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


@pytest.fixture
def dataset(tmp_path: Path, tokenizer_path: Path) -> Path:
    first = write(tmp_path / "first.jsonl", "one", "two")
    request = Request(inputs=(str(first),), tokenizer=str(tokenizer_path))
    build_dataset(request, out=str(tmp_path / "ds"), options=BuildOptions(workers=1))
    return tmp_path / "ds"


def append(dataset: Path, path: Path, listener: At | None = None) -> BuildReport:
    options = BuildOptions(workers=1, progress=listener or NO_PROGRESS)
    return append_dataset(str(dataset), Request(inputs=(str(path),)), options=options)


def test_an_append_follows_one_that_came_meanwhile(dataset: Path, tmp_path: Path) -> None:
    ours, theirs = write(tmp_path / "a.jsonl", "three"), write(tmp_path / "b.jsonl", "four")
    report = append(dataset, ours, At("write shards", lambda: append(dataset, theirs)))
    assert (report.version, report.created) == (3, True)
    latest = open_dataset(str(dataset))
    assert latest.manifest.totals.kept == 4
    assert verify_dataset(latest).problems == []


def test_the_same_text_in_both_is_dropped_by_running_again(dataset: Path, tmp_path: Path) -> None:
    ours = write(tmp_path / "a.jsonl", "three", "five")
    theirs = write(tmp_path / "b.jsonl", "four", "three")
    with pytest.raises(CommitConflictError, match="1 texts were kept by both"):
        append(dataset, ours, At("write shards", lambda: append(dataset, theirs)))
    again = append(dataset, ours).to_json()
    assert again["version"] == 3
    assert again["documents"]["dropped"] == {"dedup_exact.duplicate": 1}
    assert verify_dataset(open_dataset(str(dataset))).problems == []


def test_shards_of_an_interrupted_append_that_were_freed_are_written_anew(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    repo, ours = Repository(str(dataset)), write(tmp_path / "a.jsonl", "three")
    with monkeypatch.context() as patched:
        patched.setattr(sys.modules["datapipe.engine.building"], "commit_version", interrupt)
        with pytest.raises(KeyboardInterrupt):
            append(dataset, ours)
    shutil.copytree(dataset / "_work", tmp_path / "work")
    collector = Collector(repo, grace_seconds=0)
    collector.mark(collector.find())
    assert collector.sweep().objects > 2
    shutil.copytree(tmp_path / "work", dataset / "_work")
    assert append(dataset, ours).version == 2
    assert verify_dataset(repo.open()).problems == []


def test_a_store_for_one_writer_is_noted(
    tmp_path: Path, tokenizer_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datapipe.dataset.repository.open_store", Lying)
    first = write(tmp_path / "first.jsonl", "one", "two")
    request = Request(inputs=(str(first),), tokenizer=str(tokenizer_path))
    listener = At("", lambda: None)
    options = BuildOptions(workers=1, progress=listener)
    assert build_dataset(request, out=str(tmp_path / "ds"), options=options).version == 1
    assert [note for note in listener.notes if "only one writer at a time" in note]


class Lying:
    """A local store behind a proxy that drops conditions."""

    def __init__(self, url: str) -> None:
        self._url = url

    def blocking(self) -> FaultyStore:
        return FaultyStore(open_store(self._url).blocking(), drops_conditions=True)
