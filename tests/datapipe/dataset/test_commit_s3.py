"""Commits on a real S3 server behind a proxy that loses answers, drops conditions and fails."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from datapipe.dataset import Collector, Dataset, Repository, log_entries, verify_dataset
from datapipe.errors import StoreUnfitError
from datapipe.testing import commit_small, small_draft, start_appender
from tiering.testing import Fault, FaultProxy, S3Server

pytestmark = pytest.mark.s3


@pytest.fixture
def proxy(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    """A proxy that every client of this process and its children goes through."""
    with FaultProxy(s3_server.url) as proxy:
        for name, value in s3_server.environment(url=proxy.url).items():
            monkeypatch.setenv(name, value)
        yield proxy


@pytest.fixture
def first(proxy: FaultProxy) -> Dataset:
    """Version 1."""
    assert proxy.url
    repository = Repository(f"s3://bucket/{uuid.uuid4().hex}")
    repository.create()
    commit_small(repository, small_draft(repository, {"web": [[3, 4], [5]]}))
    return repository.open()


def append(dataset: Dataset, *, name: str = "ours") -> int:
    repository = dataset.repository
    draft = small_draft(
        repository, {"web": [[2]]}, parent=dataset, operation="append", file=f"{name}.jsonl", seed=3
    )
    return commit_small(repository, draft, transaction=name).version


@pytest.mark.parametrize(
    "target", ["/_log/0", "/_log/HINT", "/tokens/", "/_manifests/", "/_transactions/"]
)
def test_a_lost_answer_is_no_lost_version(proxy: FaultProxy, first: Dataset, target: str) -> None:
    proxy.fail(Fault(method="PUT", target=target, times=2, lose_answer=True))
    assert append(first) == 2
    assert [seen for seen in proxy.seen if seen.fault is not None]
    assert [entry.transaction for entry in log_entries(first.repository)][1:] == ["ours"]
    assert verify_dataset(first.repository.open()).problems == []


def test_a_lost_answer_isnt_mistaken_for_anothers_version(
    proxy: FaultProxy, first: Dataset
) -> None:
    """Ours is committed, the answer is lost, and another version follows before we ask again."""
    proxy.fail(Fault(method="PUT", target="/_log/0", times=1, lose_answer=True))
    assert append(first) == 2
    proxy.fail()
    assert append(first.repository.open(), name="theirs") == 3
    proxy.fail(Fault(method="PUT", target="/_log/0", times=1, lose_answer=True))
    assert append(first, name="late") == 4
    transactions = [entry.transaction for entry in log_entries(first.repository)]
    assert transactions[1:] == ["ours", "theirs", "late"]


def test_a_proxy_that_drops_the_condition_is_refused(proxy: FaultProxy) -> None:
    """Unsigned requests, because a server refuses signed ones that lost a header."""
    url = f"s3://anonymous/{uuid.uuid4().hex}"
    repository = Repository(url, endpoint_url=proxy.url, anonymous=True)
    repository.create()
    commit_small(repository, small_draft(repository, {"web": [[3]]}))
    first = repository.open()
    proxy.fail(Fault(method="PUT", drop_headers=("If-None-Match",)))
    with pytest.raises(StoreUnfitError, match="If-None-Match"):
        append(first)
    proxy.fail()
    assert len(log_entries(repository)) == 1
    assert append(first) == 2
    assert verify_dataset(repository.open()).problems == []


def test_a_flaky_server_costs_only_time(proxy: FaultProxy, first: Dataset) -> None:
    proxy.fail(
        Fault(method="PUT", share=0.2, lose_answer=True),
        Fault(status=503, share=0.1),
        Fault(method="GET", share=0.1, reset_at_byte=20),
    )
    assert [append(first, name=f"n{number}") for number in range(3)] == [2, 3, 4]
    proxy.fail()
    assert verify_dataset(first.repository.open()).problems == []


KILLED = """
import os, signal, sys
from datapipe.dataset import Repository
from datapipe.testing import append_often
from tiering.store import remote
url, kill_at = sys.argv[1], int(sys.argv[2])
put, done = remote.RemoteFiles.put, [0]

def put_or_die(self, *arguments, **options):
    done[0] += 1
    if done[0] == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return put(self, *arguments, **options)

remote.RemoteFiles.put = put_or_die
append_often(url, "k1", 1)
"""


def kill_an_append(url: str, *, kill_at: int) -> bool:
    """Returns whether an append was killed at its nth write, or else ended before."""
    command = [sys.executable, "-c", KILLED, url, str(kill_at)]
    return subprocess.run(command, check=False).returncode < 0


@pytest.mark.parametrize(
    "steps",
    [pytest.param(range(1, 30), marks=pytest.mark.slow), (2, 7, 12)],
    ids=["every write", "some"],
)
def test_kill_between_any_two_writes_loses_nothing(first: Dataset, steps: list[int]) -> None:
    url, num_killed = first.url, 0
    for kill_at in steps:
        before = len(log_entries(Repository(url)))
        if not kill_an_append(url, kill_at=kill_at):
            break
        num_killed += 1
        after = log_entries(Repository(url))
        assert len(after) - before in (0, 1)
        latest = Repository(url).open()
        assert verify_dataset(latest).problems == []
    assert num_killed >= len(steps) or num_killed > 10
    assert start_appender(url, "k2", 1).wait() == 0
    collector = Collector(first.repository, grace_seconds=0)
    collector.mark(collector.find())
    collector.sweep()
    assert verify_dataset(Repository(url).open()).problems == []


@pytest.mark.parametrize("appends", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_collecting_all_the_time_takes_nothing_from_appends(first: Dataset, appends: int) -> None:
    running = [start_appender(first.url, f"p{number}", appends) for number in range(2)]
    collector, rounds = Collector(first.repository, grace_seconds=0), 0
    while any(process.poll() is None for process in running):
        collector.mark(collector.find())
        collector.sweep()
        rounds += 1
    assert [process.returncode for process in running] == [0, 0]
    assert rounds > 0
    entries = log_entries(first.repository)
    assert len(entries) == 1 + 2 * appends
    for entry in entries:
        assert verify_dataset(first.repository.open(entry.version)).problems == []
