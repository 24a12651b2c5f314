from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from datapipe.dataset import Dataset, Repository, Transaction, begin_transaction, log_entries
from datapipe.dataset.process import this_process
from datapipe.dataset.transaction import live_transactions, store_seconds
from datapipe.errors import (
    CommitUndecidedError,
    DatasetError,
    StoreUnfitError,
    TransactionExpiredError,
)
from datapipe.testing import commit_small, small_draft
from tiering.errors import StoreError, UndecidedError
from tiering.testing import FaultyStore

SOURCES = {"web": [[3, 4], [5]], "books": [[9]]}


def begin(repo: Repository, id: str = "t", *, heartbeat_seconds: float = 3600.0) -> Transaction:
    return begin_transaction(
        repo,
        base_version=0,
        author="ada",
        time_seconds=1000.0,
        id=id,
        heartbeat_seconds=heartbeat_seconds,
    )


def age(repo: Repository, path: str, seconds: float) -> None:
    """Makes an object as old as if it had been written so long ago."""
    then = time.time() - seconds
    os.utime(Path(repo.url) / path, (then, then))


def test_a_transaction_is_there_as_long_as_it_runs(repo: Repository) -> None:
    with begin(repo) as transaction:
        (found,) = live_transactions(repo)
        assert (found.id, found.author) == ("t", "ada")
        assert found.begun_seconds == found.renewed_seconds == transaction.started_seconds
    assert live_transactions(repo) == []
    assert list(repo.store.list("_transactions/")) == []


def test_the_bytes_of_the_format(repo: Repository) -> None:
    with begin(repo):
        assert repo.store.get("_transactions/t.json") == (
            b'{"author":"ada","base_version":0,"begun_seconds":null,"format":1,'
            b'"grace_seconds":86400,"heartbeats":0,"id":"t",'
            b'"process":"%s","started_seconds":1000}' % this_process().encode()
        )


def test_it_is_renewed_and_keeps_its_begin(repo: Repository) -> None:
    with begin(repo, heartbeat_seconds=0.01) as transaction:
        renewed = threading.Event()
        for _ in range(500):
            (found,) = live_transactions(repo)
            if found.renewed_seconds > transaction.started_seconds:
                renewed.set()
                break
            time.sleep(0.01)
        assert renewed.is_set()
        assert found.begun_seconds == transaction.started_seconds
        transaction.check()


def test_a_silent_transaction_is_dead(repo: Repository) -> None:
    with begin(repo):
        age(repo, "_transactions/t.json", 2 * 86_400)
        assert live_transactions(repo) == []


def test_one_that_was_silent_for_too_long_aborts_itself(repo: Repository) -> None:
    draft = small_draft(repo, SOURCES)
    with begin(repo) as transaction:
        age(repo, "_transactions/t.json", 90_000)
        transaction._info = repo.store.head("_transactions/t.json")
        with pytest.raises(TransactionExpiredError, match=r"t in .* wasn't renewed for 90,0\d\d s"):
            transaction.check()
        with pytest.raises(TransactionExpiredError, match="run the same command again"):
            transaction.check()
    commit_small(repo, draft)


def test_one_that_was_removed_aborts_itself(repo: Repository) -> None:
    with begin(repo) as transaction:
        repo.store.delete("_transactions/t.json")
        with pytest.raises(TransactionExpiredError, match="was removed by another program"):
            transaction.check()


def test_a_heartbeat_that_fails_is_tried_again(repo: Repository) -> None:
    heads: list[str] = []

    def fault(verb: str, path: str) -> Exception | None:
        if (verb, path) != ("head", "_transactions/u.json"):
            return None
        heads.append(path)
        return StoreError("no") if len(heads) <= 2 else None

    store = FaultyStore(repo.store, fault=lambda *_: None)
    with begin(Repository.over(store), "u", heartbeat_seconds=0.01) as transaction:
        store._fault = fault
        for _ in range(500):
            if len(heads) > 2:
                break
            time.sleep(0.01)
        assert len(heads) > 2
        transaction.check()


def test_what_is_no_transaction_protects_everything(repo: Repository) -> None:
    repo.store.put("_transactions/odd.json", b"{")
    assert [(t.id, t.begun_seconds) for t in live_transactions(repo)] == [("odd", 0.0)]


def test_a_transaction_under_the_name_of_another_protects_everything(repo: Repository) -> None:
    with begin(repo, "one"):
        repo.store.put("_transactions/two.json", repo.store.get("_transactions/one.json"))
        assert ("two", 0.0) in [(t.id, t.begun_seconds) for t in live_transactions(repo)]


@pytest.mark.parametrize("applied", ["before", "after"])
def test_lost_answers_at_the_begin_are_asked_for_again(repo: Repository, applied: str) -> None:
    losses = iter([UndecidedError("lost"), UndecidedError("lost")])

    def fault(verb: str, path: str) -> Exception | None:
        return next(losses, None) if (verb, path) == ("put", "_transactions/t.json") else None

    store = FaultyStore(repo.store, fault=fault, applied=applied)  # type: ignore[arg-type]
    with begin(Repository.over(store)) as transaction:
        assert transaction.is_exclusive
        transaction.check()


@pytest.mark.parametrize("applied", ["before", "after"])
def test_a_commit_survives_a_lost_answer_to_any_write(repo: Repository, applied: str) -> None:
    asked: set[tuple[str, str]] = set()

    def fault(verb: str, path: str) -> Exception | None:
        if verb != "put" or (verb, path) in asked or "/clock-" in path:
            return None
        asked.add((verb, path))
        return UndecidedError("lost")

    store = FaultyStore(repo.store, fault=fault, applied=applied)  # type: ignore[arg-type]
    lossy = Repository.over(store)
    committed = commit_small(lossy, small_draft(lossy, SOURCES))
    assert (committed.version, committed.created, len(log_entries(repo))) == (1, True, 1)
    assert len(asked) > 10


def test_an_undecided_commit_keeps_its_transaction(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datapipe.dataset.log._PAUSES_SECONDS", (0.0,))

    def fault(verb: str, path: str) -> Exception | None:
        return UndecidedError("lost") if verb == "put" and path.startswith("_log/") else None

    lossy = Repository.over(FaultyStore(repo.store, fault=fault))
    with pytest.raises(CommitUndecidedError, match="undecided"):
        commit_small(lossy, small_draft(repo, SOURCES))
    assert [t.id for t in live_transactions(repo)] == ["t"]


# -- freshness


def test_objects_older_than_the_transaction_are_written_again(repo: Repository) -> None:
    draft = small_draft(repo, SOURCES)
    written = [info.path for info in repo.store.list() if info.path.startswith(("to", "do"))]
    for path in written:
        age(repo, path, 10_000)
    commit_small(repo, draft)
    now = store_seconds(repo.store)
    assert all(repo.store.head(path).modified_seconds > now - 1000 for path in written)


def test_objects_that_are_young_enough_are_not(repo: Repository) -> None:
    puts: list[str] = []

    def fault(verb: str, path: str) -> Exception | None:
        if verb == "put":
            puts.append(path)
        return None

    watched = Repository.over(FaultyStore(repo.store, fault=fault))
    with begin(watched) as transaction:
        draft = small_draft(watched.since(transaction.started_seconds), SOURCES)
    with begin(watched) as transaction:
        pass
    assert len([path for path in puts if path.startswith("tokens/")]) == len(draft.shards)


def test_a_shard_written_again_in_a_transaction_becomes_young(repo: Repository) -> None:
    small_draft(repo, {"web": [[3]]})
    (old,) = repo.store.list("tokens/")
    age(repo, old.path, 10_000)
    with begin(repo) as transaction:
        small_draft(repo.since(transaction.started_seconds), {"web": [[3]]})
        assert repo.store.head(old.path).modified_seconds >= transaction.started_seconds


def test_a_clock_that_runs_backwards_is_named(repo: Repository) -> None:
    draft = small_draft(repo, SOURCES)
    path = next(iter(repo.store.list("tokens/"))).path

    def fault(verb: str, asked: str) -> Exception | None:
        if (verb, asked) == ("head", path):
            age(repo, path, 10_000)
        return None

    with pytest.raises(DatasetError, match="clock runs backwards"):
        commit_small(Repository.over(FaultyStore(repo.store, fault=fault)), draft)


# -- stores that ignore "create only"


@pytest.fixture
def lying(tmp_path: Path) -> Repository:
    """A dataset on a store that was found to ignore conditions when the dataset was made."""
    honest = Repository(str(tmp_path / "lying"))
    repo = Repository.over(FaultyStore(honest.store, drops_conditions=True))
    repo.create()
    return repo


def test_one_writer_at_a_time_may_commit(lying: Repository) -> None:
    commit_small(lying, small_draft(lying, SOURCES))
    parent = lying.open()
    draft = small_draft(lying, {"web": [[2]]}, parent=parent, operation="append")
    assert commit_small(lying, draft, transaction="u").version == 2


def test_a_second_writer_is_refused_by_name(lying: Repository) -> None:
    with begin(lying, "first"):
        with pytest.raises(StoreUnfitError, match=r"If-None-Match.* ada writes .* first"):
            begin(lying, "second")
        assert [t.id for t in live_transactions(lying)] == ["first"]


def test_a_writer_that_came_meanwhile_stops_the_commit(lying: Repository) -> None:
    draft = small_draft(lying, SOURCES)
    seen: list[str] = []

    def fault(verb: str, path: str) -> Exception | None:
        if verb == "put" and path.startswith("_manifests/") and not seen:
            seen.append(path)
            lying.store.put("_transactions/other.json", b"{}")
        return None

    store = FaultyStore(lying.store, fault=fault, drops_conditions=True)
    with pytest.raises(StoreUnfitError, match="transaction other"):
        commit_small(Repository.over(store), draft)
    assert lying.latest() is None


def test_a_proxy_that_drops_the_condition_is_refused(repo: Repository, dataset: Dataset) -> None:
    behind = Repository.over(FaultyStore(repo.store, drops_conditions=True))
    draft = small_draft(repo, {"web": [[2]]}, parent=dataset, operation="append")
    with pytest.raises(StoreUnfitError, match=r"If-None-Match.*a proxy in between drops it"):
        commit_small(behind, draft, transaction="u")
    assert len(log_entries(repo)) == 1
    assert live_transactions(repo) == []


@pytest.mark.parametrize("name", ["", "../x", "a/b", "x" * 65])
def test_names_that_could_leave_the_folder_are_refused(repo: Repository, name: str) -> None:
    if not name:
        return
    with pytest.raises(ValueError, match="can't name a transaction"):
        begin(repo, name)
