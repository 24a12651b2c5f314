from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from datapipe.dataset import Dataset, LogEntry, Repository, open_dataset
from datapipe.dataset.layout import entry_path
from datapipe.dataset.log import encode_entry, read_entry, seal_entry
from datapipe.dataset.seen import SeenVersions
from datapipe.errors import DamagedError, RollbackError
from datapipe.testing import commit_small, small_draft
from tiering.store import Mode


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that remembers, in a state home of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "datapipe" / "seen.json"


def roll_back(dataset: Dataset, *, to: int = 1) -> None:
    """Puts an older state in the dataset's place, its HINT included."""
    root = Path(dataset.url)
    for version in range(to + 1, dataset.version + 1):
        (root / entry_path(version)).unlink()
    (root / "_log/HINT").write_text(str(to))


def rewrite(dataset: Dataset, version: int) -> None:
    store = dataset.repository.store
    entry, _ = read_entry(store, version)
    forged = seal_entry(msgspec.structs.replace(entry, author="mallory"))
    store.put(entry_path(version), encode_entry(forged), mode=Mode.OVERWRITE)


def test_what_is_remembered(appended: Dataset, state: Path) -> None:
    open_dataset(f"{appended.url}@1")
    identity = json.loads(appended.repository.store.get("format.json"))["id"]
    entry, _ = read_entry(appended.repository.store, 2)
    assert json.loads(state.read_bytes()) == {
        "datasets": {
            f"{identity} {appended.url}": {"version": 2, "entry_sha256": entry.entry_sha256}
        },
        "format": 1,
    }


def test_an_older_state_is_refused_until_it_is_accepted(appended: Dataset) -> None:
    open_dataset(appended.url)
    roll_back(appended)
    message = r"is 1, but version 2 was there.*`datapipe show .* --accept-rollback`"
    for _ in range(2):
        with pytest.raises(RollbackError, match=message):
            open_dataset(appended.url)
    assert open_dataset(f"{appended.url}@1").version == 1  # asked for by name
    with pytest.raises(RollbackError):
        open_dataset(appended.url)
    assert open_dataset(appended.url, accept_rollback=True).version == 1
    assert open_dataset(appended.url).version == 1


def test_another_entry_of_the_same_version_is_refused(appended: Dataset) -> None:
    open_dataset(appended.url)
    rewrite(appended, 2)
    with pytest.raises(RollbackError, match=r"version 2 of .* isn't the one that was there"):
        open_dataset(appended.url)
    with pytest.raises(RollbackError, match="the log was written anew"):
        open_dataset(f"{appended.url}@2")
    assert open_dataset(f"{appended.url}@1").version == 1
    assert open_dataset(f"{appended.url}@2", accept_rollback=True).version == 2
    assert open_dataset(appended.url).version == 2


def test_a_forged_history_that_is_longer_is_refused(
    dataset: Dataset, templates: Path, state: Path
) -> None:
    open_dataset(dataset.url)
    shutil.copytree(templates / "2", dataset.url, dirs_exist_ok=True)
    longer = Repository(dataset.url).open()
    before = state.read_bytes()
    rewrite(longer, 1)
    assert open_dataset(f"{dataset.url}@2").version == 2  # by name; remembers nothing of it
    for ref in (dataset.url, f"{dataset.url}@1"):
        with pytest.raises(RollbackError, match=r"version 1 of .* isn't the one"):
            open_dataset(ref)
    assert state.read_bytes() == before


def test_new_versions_are_remembered(dataset: Dataset, templates: Path) -> None:
    open_dataset(dataset.url)
    shutil.copytree(templates / "2", dataset.url, dirs_exist_ok=True)
    longer = open_dataset(dataset.url)
    assert longer.version == 2
    roll_back(longer)
    with pytest.raises(RollbackError, match="but version 2 was there"):
        open_dataset(dataset.url)


def test_a_damaged_entry_in_the_place_of_the_one_seen_is_damage(
    dataset: Dataset, templates: Path
) -> None:
    open_dataset(dataset.url)
    shutil.copytree(templates / "2", dataset.url, dirs_exist_ok=True)
    (Path(dataset.url) / entry_path(1)).write_text("{}")
    with pytest.raises(DamagedError):
        open_dataset(dataset.url)


def test_a_dataset_made_anew_raises_no_alarm(appended: Dataset) -> None:
    open_dataset(appended.url)
    shutil.rmtree(appended.url)
    repository = Repository(appended.url)
    repository.create()
    commit_small(repository, small_draft(repository, {"web": [[3]]}))
    assert open_dataset(appended.url).version == 1


def test_a_copy_elsewhere_may_be_older(appended: Dataset, templates: Path, tmp_path: Path) -> None:
    open_dataset(appended.url)
    shutil.copytree(templates / "1", tmp_path / "mirror")
    assert open_dataset(str(tmp_path / "mirror")).version == 1


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[" * 99_999, b"[]", b'{"format":1,"datasets":{"x":{"version":"2"}}}', b"\xff"],
    ids=["empty", "cut", "deep", "list", "types", "not UTF-8"],
)
def test_a_damaged_file_is_written_anew(appended: Dataset, state: Path, data: bytes) -> None:
    state.parent.mkdir(parents=True)
    state.write_bytes(data)
    with pytest.warns(RuntimeWarning, match=r"seen\.json is damaged .* is forgotten"):
        assert open_dataset(appended.url).version == 2
    roll_back(appended)
    with pytest.raises(RollbackError):
        open_dataset(appended.url)


@pytest.fixture
def _unwritable(state: Path) -> Iterator[None]:
    """A state home that isn't a folder: what a read-only one is to somebody who isn't root."""
    state.parent.parent.write_text("")
    yield
    state.parent.parent.unlink()


@pytest.mark.usefixtures("_unwritable")
def test_a_home_that_cant_be_written_only_warns(appended: Dataset) -> None:
    with pytest.warns(RuntimeWarning, match=r"seen\.json can't be written .*XDG_STATE_HOME"):
        assert open_dataset(appended.url).version == 2


def test_without_a_home_nothing_is_remembered(
    appended: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert open_dataset(appended.url).version == 2


@pytest.mark.parametrize("given", [None, "", "relative/path"])
def test_the_default_is_below_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, appended: Dataset
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if given is None:
        monkeypatch.delenv("XDG_STATE_HOME")
    else:
        monkeypatch.setenv("XDG_STATE_HOME", given)
    open_dataset(appended.url)
    assert (tmp_path / "home/.local/state/datapipe/seen.json").exists()


def entry_of(version: int, *, name: str = "d" * 32) -> LogEntry:
    return seal_entry(
        LogEntry(
            format=1, dataset=name, version=version, previous_sha256=None, manifest="0" * 64,
            transaction="t", operation="build", author="", reason="", time_seconds=0.0,
            input_roots=(), entry_sha256="",
        )
    )  # fmt: skip


def look(seen: SeenVersions, version: int, *, name: str = "d" * 32, accept: bool = False) -> None:
    latest = entry_of(version, name=name)
    make: Callable[[int], LogEntry] = lambda number: entry_of(number, name=name)  # noqa: E731
    seen.check("place", latest=latest, entry_at=make, accept=accept)


def _look_often(path: Path, name: str) -> None:
    for version in range(1, 21):
        look(SeenVersions(path), version, name=name)


def test_concurrent_processes_lose_nothing(state: Path) -> None:
    context = multiprocessing.get_context("spawn")
    names = [f"{number:032x}" for number in range(4)]
    running = [context.Process(target=_look_often, args=(state, name)) for name in names]
    for process in running:
        process.start()
    for process in running:
        process.join()
    found = json.loads(state.read_bytes())["datasets"]
    assert {key: seen["version"] for key, seen in found.items()} == {
        f"{name} place": 20 for name in names
    }
    assert sorted(path.name for path in state.parent.iterdir()) == ["seen.json", "seen.lock"]


def test_a_higher_version_noted_meanwhile_stays(state: Path) -> None:
    slow = SeenVersions(state)
    stale = slow._read
    slow._read = lambda: {} if not state.exists() else stale()  # type: ignore[method-assign]
    look(SeenVersions(state), 7)
    slow._remember(f"{'d' * 32} place", entry_of(5), replace=False)
    with pytest.raises(RollbackError, match="is 6, but version 7"):
        look(SeenVersions(state), 6)


def test_a_lock_that_is_held_doesnt_stop_anybody(state: Path) -> None:
    state.parent.mkdir(parents=True)
    with (state.parent / "seen.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        look(SeenVersions(state), 3)
    with pytest.raises(RollbackError):
        look(SeenVersions(state), 2)


def test_only_so_many_datasets_are_remembered(state: Path) -> None:
    names = [f"{number:032x}" for number in range(503)]
    datasets = {
        f"{name} place": {"version": 1, "entry_sha256": entry_of(1, name=name).entry_sha256}
        for name in names
    }
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({"format": 1, "datasets": datasets}))
    look(SeenVersions(state), 2, name=names[0])  # the oldest, but it changed last
    kept = list(json.loads(state.read_bytes())["datasets"])
    assert kept == [f"{name} place" for name in [*names[4:], names[0]]]


def test_a_look_takes_less_than_a_millisecond(state: Path) -> None:
    for number in range(20):
        look(SeenVersions(state), 1, name=f"{number:032x}")
    latest, seconds = entry_of(1, name="0" * 32), []
    for _ in range(20):
        started = time.perf_counter()
        SeenVersions(state).check("place", latest=latest, entry_at=lambda _: latest)
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.001


def test_the_file_is_the_users_own(state: Path) -> None:
    look(SeenVersions(state), 1)
    assert state.stat().st_uid == os.getuid()
    assert stat.S_ISREG(state.stat().st_mode)


def test_a_place_that_is_given_up_is_forgotten(appended: Dataset, state: Path) -> None:
    open_dataset(appended.url)
    SeenVersions.of_user().forget(appended.url + "2")
    assert len(json.loads(state.read_bytes())["datasets"]) == 1
    SeenVersions.of_user().forget(appended.url)
    assert json.loads(state.read_bytes())["datasets"] == {}


def test_nothing_is_made_to_forget(state: Path) -> None:
    SeenVersions.of_user().forget("anything")
    assert not state.parent.exists()
