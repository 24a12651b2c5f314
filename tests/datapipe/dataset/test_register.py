from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import pytest

from datapipe.dataset import (
    Collector,
    Dataset,
    Repository,
    delete_tag,
    drop_hold,
    hold_version,
    log_entries,
    read_tag,
    retire_versions,
    set_tag,
    verify_dataset,
)
from datapipe.dataset.layout import hold_path
from datapipe.dataset.register import read_register
from datapipe.errors import CommitConflictError, DamagedError, DatasetError, UsageError
from tiering.errors import StoreError, UndecidedError
from tiering.store import Mode
from tiering.testing import FaultyStore

WORDS: dict[str, Any] = {"author": "ada", "reason": "why", "time_seconds": 1.0}
RELEASE = "_refs/tags/release-1.json"
REGISTER = "_refs/register.json"


def test_the_bytes_of_the_format(dataset: Dataset) -> None:
    set_tag(dataset, "release-1", **WORDS)
    store = dataset.repository.store
    data = store.get(REGISTER)
    seal = sha256(data.partition(b',"register_sha256"')[0] + b"}").hexdigest()
    assert json.loads(data) == {
        "format": 1,
        "objects": {
            RELEASE: {
                "final": True,
                "manifest": dataset.manifest_sha256,
                "sha256": sha256(store.get(RELEASE)).hexdigest(),
                "version": 1,
            }
        },
        "register_sha256": seal,
    }


def test_a_removed_release_is_noticed_and_not_made_anew_elsewhere(
    appended: Dataset, dataset: Dataset
) -> None:
    store = appended.repository.store
    set_tag(dataset, "release-1", **WORDS)
    store.delete(RELEASE)
    assert verify_dataset(appended).problems == [f"{RELEASE}: it is missing"]
    for dry_run in (True, False):
        with pytest.raises(UsageError, match="release: it names version 1 for good"):
            set_tag(appended, "release-1", dry_run=dry_run, **WORDS)
    assert set_tag(dataset, "release-1", **WORDS).version == 1
    assert verify_dataset(appended).problems == []


def test_a_release_that_was_written_over_is_noticed_and_stays(
    appended: Dataset, dataset: Dataset
) -> None:
    store = appended.repository.store
    set_tag(dataset, "release-1", **WORDS)
    forged = store.get(RELEASE).replace(b'"release":true', b'"release":false')
    forged = forged.replace(b'"version":1', b'"version":2')
    forged = forged.replace(dataset.manifest_sha256.encode(), appended.manifest_sha256.encode())
    store.put(RELEASE, forged, mode=Mode.OVERWRITE)
    (problem,) = verify_dataset(appended).problems
    assert problem.startswith(f"{RELEASE}: SHA-256 ")
    with pytest.raises(UsageError, match="release: it names version 1 for good"):
        set_tag(appended, "release-1", **WORDS)
    with pytest.raises(UsageError, match="release: it names version 1 for good"):
        delete_tag(store, "release-1", **WORDS)


def test_words_of_a_tag_that_were_changed_are_noticed(dataset: Dataset) -> None:
    set_tag(dataset, "prod", **WORDS)
    store, path = dataset.repository.store, "_refs/tags/prod.json"
    store.put(path, store.get(path).replace(b"ada", b"eve"), mode=Mode.OVERWRITE)
    (problem,) = verify_dataset(dataset).problems
    assert problem.startswith(f"{path}: SHA-256 ")


def test_a_removed_hold_is_noticed_and_holds_until_it_is_dropped(appended: Dataset) -> None:
    repo, path = appended.repository, hold_path(1)
    hold_version(repo.open(1), **WORDS)
    repo.store.delete(path)
    assert verify_dataset(appended).problems == [f"{path}: it is missing"]
    collector = Collector(repo, grace_seconds=0)
    assert collector.retirable(older_than_seconds=0, time_seconds=9e9) == []
    assert path in collector.find().kept[1][0]
    assert drop_hold(repo.store, 1).version == 1
    assert verify_dataset(appended).problems == []
    assert len(collector.retirable(older_than_seconds=0, time_seconds=9e9)) == 1


def test_a_removed_list_of_retired_versions_is_noticed(appended: Dataset) -> None:
    store = appended.repository.store
    retire_versions(store, log_entries(appended.repository)[:1], **WORDS)
    store.delete("_refs/retired.json")
    assert verify_dataset(appended).problems == ["_refs/retired.json: it is missing"]


def test_a_removed_register_is_noticed_and_comes_back(dataset: Dataset) -> None:
    store = dataset.repository.store
    set_tag(dataset, "prod", **WORDS)
    hold_version(dataset, **WORDS)
    before = store.get(REGISTER)
    store.delete(REGISTER)
    (problem,) = verify_dataset(dataset).problems
    assert problem.startswith(f"{REGISTER}: it is missing, though _refs/holds/")
    set_tag(dataset, "prod", **WORDS)
    hold_version(dataset, **WORDS)
    assert store.get(REGISTER) == before


def test_what_is_only_in_a_lost_log_is_no_garbage(appended: Dataset) -> None:
    """A tag of version 2 was removed, and version 2 from the log."""
    repo = appended.repository
    set_tag(appended, "prod", **WORDS)
    for path in ("_refs/tags/prod.json", f"_log/{2:020d}.json", "_log/HINT"):
        repo.store.delete(path)
    with pytest.raises(DamagedError, match=r"prod.json, registered but missing, names version 2"):
        Collector(repo, grace_seconds=0).find()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data.replace(b'"final":false', b'"final":true'),
        lambda data: data.replace(b":1", b": 1"),
        lambda _: b'{"format":1}',
    ],
    ids=["cut", "changed", "spaced", "empty"],
)
def test_a_damaged_register_stops_who_needs_it(
    dataset: Dataset, damage: Callable[[bytes], bytes]
) -> None:
    store = dataset.repository.store
    set_tag(dataset, "prod", **WORDS)
    store.put(REGISTER, damage(store.get(REGISTER)), mode=Mode.OVERWRITE)
    assert verify_dataset(dataset).problems[0].startswith(REGISTER)
    for act in (
        lambda: set_tag(dataset, "prod", **WORDS),
        lambda: hold_version(dataset, **WORDS),
        lambda: Collector(dataset.repository, grace_seconds=0).find(),
    ):
        with pytest.raises(DamagedError, match=f"{REGISTER} .*restore it from a copy"):
            act()
    assert dataset.repository.open("prod").version == 1


def test_a_command_that_was_stopped_is_done_again(dataset: Dataset) -> None:
    broken = [True]

    def fault(verb: str, path: str) -> Exception | None:
        return StoreError("broken") if verb == "put" and path == REGISTER and broken else None

    store = FaultyStore(dataset.repository.store, fault=fault)
    same = Repository.over(store).open()
    with pytest.raises(DatasetError, match="broken"):
        set_tag(same, "prod", **WORDS)
    assert any("_refs/" in problem for problem in verify_dataset(dataset).problems)
    broken.clear()
    tag = set_tag(same, "prod", **WORDS)
    assert len(tag.moves) == 1
    assert verify_dataset(dataset).problems == []


@pytest.mark.parametrize("applied", ["before", "after"])
def test_a_lost_answer_is_asked_for_again(dataset: Dataset, applied: Any) -> None:
    losses = iter([UndecidedError("lost"), UndecidedError("lost")])

    def fault(verb: str, path: str) -> Exception | None:
        return next(losses, None) if verb == "put" and path == REGISTER else None

    store = FaultyStore(dataset.repository.store, fault=fault, applied=applied)
    set_tag(Repository.over(store).open(), "prod", **WORDS)
    assert list(read_register(dataset.repository.store) or {}) == ["_refs/tags/prod.json"]


def test_many_writers_are_all_registered(appended: Dataset, dataset: Dataset) -> None:
    def move(number: int) -> None:
        with contextlib.suppress(CommitConflictError):
            set_tag((appended, dataset)[number % 2], f"t{number % 3}", **WORDS)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(move, range(24)))
    register = read_register(appended.repository.store) or {}
    for name in ("t0", "t1", "t2"):
        tag = read_tag(appended.repository.store, name)
        assert tag is not None
        assert register[f"_refs/tags/{name}.json"].version == tag.version
    assert verify_dataset(appended).problems == []
