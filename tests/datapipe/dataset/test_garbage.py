from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datapipe.dataset import (
    Collector,
    Dataset,
    Repository,
    begin_transaction,
    hold_version,
    list_holds,
    log_entries,
    retire_versions,
    set_tag,
    verify_dataset,
    version_history,
)
from datapipe.dataset.deletion import Deletion, await_deletions, write_deletion
from datapipe.dataset.keep import drop_hold
from datapipe.dataset.parts import Part, SourceParts
from datapipe.dataset.run_records import DatasetUse, RunSegment
from datapipe.dataset.runs import RunStore
from datapipe.dataset.transaction import store_seconds
from datapipe.errors import DamagedError, UnknownReferenceError, UsageError
from datapipe.testing import commit_small, small_draft
from tiering.testing import FaultyStore

HOUR = 3600.0


def paths(repo: Repository) -> set[str]:
    return {info.path for info in repo.store.list()}


def age_all(repo: Repository, seconds: float) -> None:
    """Makes everything that is there so old."""
    then = time.time() - seconds
    for path in paths(repo):
        os.utime(Path(repo.url) / path, (then, then))


def free(repo: Repository, *, grace_seconds: float = 0.0, **options: Any) -> int:
    """Marks and deletes; returns how many objects went."""
    collector = Collector(repo, grace_seconds=grace_seconds, **options)
    collector.mark(collector.find())
    return collector.sweep().objects


@pytest.fixture
def leftovers(appended: Dataset) -> set[str]:
    """What an interrupted build wrote into a dataset of two versions."""
    before = paths(appended.repository)
    small_draft(appended.repository, {"web": [[6], [7]]}, seed=99)
    appended.repository.store.put("_work/scan/ab/record.json", b"{}")
    return paths(appended.repository) - before


def test_what_versions_need_stays(appended: Dataset) -> None:
    repo = appended.repository
    before = paths(repo)
    assert Collector(repo, grace_seconds=0).find().objects == ()
    assert free(repo) == 0
    assert paths(repo) == before


def test_leftovers_of_an_interrupted_build_are_freed(
    appended: Dataset, leftovers: set[str]
) -> None:
    repo = appended.repository
    before = paths(repo) - leftovers
    garbage = Collector(repo, grace_seconds=0).find()
    assert {info.path for info in garbage.objects} == leftovers
    assert garbage.num_bytes == sum(repo.store.head(path).size for path in leftovers)
    assert garbage.by_folder()["_work"] == (1, 2)
    assert free(repo) == len(leftovers) == 5
    assert paths(repo) == before
    assert [verify_dataset(repo.open(v)).problems for v in (1, 2)] == [[], []]


def test_what_is_young_is_no_garbage(appended: Dataset, leftovers: set[str]) -> None:
    repo = appended.repository
    assert Collector(repo, grace_seconds=HOUR).find().objects == ()
    age_all(repo, 2 * HOUR)
    assert len(Collector(repo, grace_seconds=HOUR).find().objects) == len(leftovers)


def test_what_is_marked_waits_for_the_grace_period(appended: Dataset, leftovers: set[str]) -> None:
    repo = appended.repository
    age_all(repo, 2 * HOUR)
    collector = Collector(repo, grace_seconds=HOUR)
    mark = collector.mark(collector.find())
    assert mark is not None
    assert collector.mark(collector.find()) is None
    assert (collector.sweep().waiting, leftovers <= paths(repo)) == (len(leftovers), True)
    then = time.time() - 2 * HOUR
    os.utime(Path(repo.url) / mark.path, (then, then))
    swept = collector.sweep()
    assert (swept.objects, swept.num_bytes) == (len(leftovers), mark.num_bytes)
    assert mark.path not in paths(repo)


def test_what_became_needed_or_young_is_spared(appended: Dataset, leftovers: set[str]) -> None:
    repo = appended.repository
    collector = Collector(repo, grace_seconds=0)
    collector.mark(collector.find())
    draft = small_draft(repo, {"web": [[6], [7]]}, seed=99, parent=appended)
    commit_small(repo, draft, transaction="again")
    swept = collector.sweep()
    assert (swept.objects, swept.spared) == (1, len(leftovers) - 1)
    assert verify_dataset(repo.open()).problems == []


def test_a_living_writer_protects_what_is_younger(appended: Dataset, leftovers: set[str]) -> None:
    repo = appended.repository
    with begin_transaction(repo, base_version=2, author="ada", time_seconds=0.0) as transaction:
        inside = repo.since(transaction.started_seconds)
        small_draft(inside, {"web": [[8]]}, seed=5)
        garbage = Collector(repo, grace_seconds=0).find()
        assert garbage.transactions == 1
        assert {i.path for i in garbage.objects} == leftovers - {"_work/scan/ab/record.json"}
    assert len(Collector(repo, grace_seconds=0).find().objects) == len(leftovers) + 2


def test_a_dead_writer_protects_nothing_and_is_removed(repo: Repository) -> None:
    transaction = begin_transaction(repo, base_version=0, author="ada", time_seconds=0.0, id="t")
    transaction._ended.set()
    small_draft(repo, {"web": [[8]]})
    then = time.time() - 2 * 86_400
    os.utime(Path(repo.url) / transaction.path, (then, then))
    assert free(repo) == 2
    assert paths(repo) == {"format.json"}


def test_foreign_objects_are_left_alone(repo: Repository) -> None:
    for path in ("notes.txt", "urls/x.parquet", "_runs/r/x.json", "_refs/other.json"):
        repo.store.put(path, b"")
    assert Collector(repo, grace_seconds=0).find().objects == ()


def test_marks_cannot_name_what_is_never_collected(appended: Dataset) -> None:
    repo = appended.repository
    text = '{"format":1,"id":"x","num_bytes":1,"paths":["_log/00000000000000000001.json"]}'
    repo.store.put("_gc/x.marked.json", text.encode())
    assert Collector(repo, grace_seconds=0).sweep().objects == 0
    assert len(log_entries(repo)) == 2


@pytest.mark.parametrize("path", ["_manifests/{}.json", "_refs/tags/prod.json"])
def test_damage_stops_it(appended: Dataset, leftovers: set[str], path: str) -> None:
    repo = appended.repository
    file = Path(repo.url) / path.format(repo.open(1).manifest_sha256)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"{}")
    with pytest.raises(DamagedError, match=file.name):
        Collector(repo, grace_seconds=0).find()
    assert leftovers <= paths(repo)


# -- retirement


@pytest.fixture
def three(appended: Dataset) -> Repository:
    """Versions 1 and 2, and 3 that holds something else altogether."""
    repo = appended.repository
    commit_small(repo, small_draft(repo, {"web": [[6]]}, seed=42, parent=appended), transaction="3")
    return repo


def retire(repo: Repository) -> list[int]:
    """Retires what is older than an hour, at an hour and a half behind the commits."""
    entries = Collector(repo, grace_seconds=0).retirable(
        older_than_seconds=HOUR, time_seconds=1000.0 + 1.5 * HOUR
    )
    retire_versions(repo.store, entries, author="ada", reason="old", time_seconds=1.0)
    return [entry.version for entry in entries]


def read_by_run(repo: Repository, version: int, place: RunStore) -> None:
    use = DatasetUse(
        name=None, url="moved", version=version, manifest=repo.open(version).manifest_sha256
    )
    part = Part(dataset=0, source="web", num_shards=1)
    segment = RunSegment(
        spec=place.put_spec(b"{}"),
        sources=(SourceParts(name="web", parts=(part,)),),
        datasets=(use,),
        split="train",
        first_batch=0,
        first_step=0,
        first_sample=0,
        global_batch_size=1,
        dp_world_size=1,
        batches_per_step=1,
        end_sample=None,
        last="drop",
        started_seconds=0.0,
    )
    place.append("trial", segment, number=0)


def test_retired_versions_are_freed_and_named(three: Repository) -> None:
    assert retire(three) == [1, 2]
    assert free(three) > 10
    with pytest.raises(UnknownReferenceError, match=r"version 2 .* was retired by ada \(old\)"):
        three.open(2)
    assert [entry["retired"] for entry in version_history(three)] == [True, True, False]
    assert verify_dataset(three.open()).problems == []
    assert retire(three) == []


def test_young_versions_are_not_retired(three: Repository) -> None:
    collector = Collector(three, grace_seconds=0)
    assert collector.retirable(older_than_seconds=HOUR, time_seconds=1000.0 + HOUR / 2) == []


KEEPERS: dict[str, Callable[[Repository, Path], None]] = {
    "tag": lambda repo, _: void(
        set_tag(repo.open(1), "prod", author="", reason="", time_seconds=0.0)
    ),
    "hold": lambda repo, _: void(
        hold_version(repo.open(1), author="", reason="model M", time_seconds=0.0)
    ),
    "run": lambda repo, _: read_by_run(repo, 1, RunStore.of(repo)),
}


def void(_: object) -> None:
    """Takes a result that nobody needs."""


@pytest.mark.parametrize("keeper", list(KEEPERS))
def test_a_tag_a_hold_and_a_run_keep_a_version(
    three: Repository, tmp_path: Path, keeper: str
) -> None:
    KEEPERS[keeper](three, tmp_path)
    assert retire(three) == [2]
    free(three)
    assert verify_dataset(three.open(1)).problems == []
    assert keeper in Collector(three, grace_seconds=0).find().kept[1][0]


def test_runs_recorded_elsewhere_keep_a_version(three: Repository, tmp_path: Path) -> None:
    place = RunStore.at(str(tmp_path / "runs"))
    read_by_run(three, 2, place)
    collector = Collector(three, grace_seconds=0, runs=[place])
    entries = collector.retirable(older_than_seconds=0.0, time_seconds=1e9)
    assert [entry.version for entry in entries] == [1]


def test_a_run_that_began_before_the_retirement_keeps_the_objects(three: Repository) -> None:
    retiring = Collector(three, grace_seconds=0)
    dataset = three.open(1)
    retire(three)
    mark = retiring.find()
    retiring.mark(mark)
    use = RunStore.of(three)
    three.store.delete("_refs/retired.json")
    read_by_run(three, 1, use)
    retire_versions(
        three.store, log_entries(three)[:2], author="ada", reason="old", time_seconds=1.0
    )
    retiring.sweep()
    assert len(dataset.docmap("web", 0)) == 2
    assert verify_dataset(dataset).problems == []


def test_a_dry_run_counts_what_retirement_would_free(three: Repository) -> None:
    before = paths(three)
    garbage = Collector(three, grace_seconds=0).find(without=[1, 2])
    assert len(garbage.objects) > 10
    assert list(garbage.kept) == [3]
    assert paths(three) == before


def test_holds_are_listed_and_dropped(appended: Dataset) -> None:
    store = appended.repository.store
    hold_version(appended, author="ada", reason="model M", time_seconds=5.0)
    assert [(h.version, h.reason) for h in list_holds(store)] == [(2, "model M")]
    with pytest.raises(UnknownReferenceError, match=r"version 1 .* isn't held; .* held are: 2"):
        drop_hold(store, 1)
    drop_hold(store, 2, dry_run=True)
    assert drop_hold(store, 2).author == "ada"
    assert list_holds(store) == []


def test_a_hold_needs_a_reason(dataset: Dataset) -> None:
    with pytest.raises(UsageError, match="needs a reason"):
        hold_version(dataset, author="ada", reason=" ", time_seconds=5.0)


# -- beside writers


def test_a_commit_waits_for_a_deletion_that_names_its_objects(repo: Repository) -> None:
    write_deletion(repo.store, Deletion(id="d", paths=("tokens/aa/x.bin",)))
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            repo.store.delete("_gc/d.deleting.json")

    def clock() -> float:
        return store_seconds(repo.store)

    await_deletions(repo.store, ["tokens/bb/y.bin"], clock=clock, sleep=sleep)
    assert slept == []
    await_deletions(repo.store, ["tokens/aa/x.bin"], clock=clock, sleep=sleep)
    assert len(slept) == 3


def test_the_deletion_of_a_killed_collector_is_over_in_time(repo: Repository) -> None:
    write_deletion(repo.store, Deletion(id="d", paths=("tokens/aa/x.bin",)))
    then = time.time() - 700
    os.utime(Path(repo.url) / "_gc/d.deleting.json", (then, then))
    await_deletions(repo.store, ["tokens/aa/x.bin"], clock=time.time)
    os.utime(Path(repo.url) / "_gc/d.deleting.json", (then - 700, then - 700))
    Collector(repo, grace_seconds=0).sweep()
    assert paths(repo) == {"format.json"}


def test_a_collector_that_slept_too_long_looks_again(
    appended: Dataset, leftovers: set[str]
) -> None:
    ticks = iter(range(0, 1_000_000, 100))
    collector = Collector(appended.repository, grace_seconds=0, now=lambda: float(next(ticks)))
    collector.mark(collector.find())
    assert collector.sweep().objects == len(leftovers)


def test_a_refresh_between_look_and_deletion_is_noticed(appended: Dataset) -> None:
    """The writer commits old garbage while a collector that saw it as garbage is deleting it."""
    repo = appended.repository
    draft = small_draft(repo, {"web": [[6]]}, seed=99, parent=appended)
    target = f"tokens/{draft.shards[0].stored_sha256[:2]}/{draft.shards[0].stored_sha256}.bin"
    collector = Collector(repo, grace_seconds=0)
    collector.mark(collector.find())
    committed: list[subprocess.Popen[bytes]] = []

    def fault(verb: str, path: str) -> Exception | None:
        if (verb, path) == ("delete", target) and not committed:
            command = [sys.executable, "-c", COMMIT, repo.url]
            old = repo.store.head(target)
            committed.append(subprocess.Popen(command))
            while repo.store.head(target) == old and committed[0].poll() is None:
                time.sleep(0.02)
            time.sleep(0.5)  # it refreshed the shard, sees the deletion and waits
        return None

    Collector(Repository.over(FaultyStore(repo.store, fault=fault)), grace_seconds=0).sweep()
    assert committed[0].wait() == 0
    assert verify_dataset(repo.open()).problems == []
    assert repo.open().version == 3


COMMIT = """
import sys
from datapipe.dataset import Repository, begin_transaction, commit_version
from datapipe.errors import CommitConflictError
from datapipe.testing import small_draft
repo = Repository(sys.argv[1])
for attempt in range(2):
    with begin_transaction(repo, base_version=2, author="", time_seconds=0.0) as transaction:
        inside = repo.since(transaction.started_seconds)
        draft = small_draft(inside, {"web": [[6]]}, seed=99, parent=repo.open())
        try:
            commit_version(
                repo, draft, author="", reason="", input_roots=[], time_seconds=0.0,
                transaction=transaction,
            )
            break
        except CommitConflictError:  # the shard was taken away: it is written anew
            if attempt:
                raise
"""

WRITER = """
import sys
from datapipe.dataset import Repository, begin_transaction, commit_version
from datapipe.errors import CommitConflictError
from datapipe.testing import small_draft
url, name, count = sys.argv[1:]
repo = Repository(url)
for number in range(int(count)):
    file = f"{name}-{number}.jsonl"
    options = {"operation": "append", "file": file, "seed": 100 * int(name[1:]) + number}
    sources = {"web": [[2, 3]], name: [[4]]}
    small_draft(repo, sources, parent=repo.open(), **options)  # an interrupted run's
    for attempt in range(20):
        with begin_transaction(repo, base_version=0, author=name, time_seconds=0.0) as transaction:
            inside = repo.since(transaction.started_seconds)
            draft = small_draft(inside, sources, parent=repo.open(), **options)
            try:
                commit_version(
                    repo, draft, author=name, reason="", input_roots=[], time_seconds=0.0,
                    transaction=transaction,
                )
                break
            except CommitConflictError as error:
                print(name, number, error, file=sys.stderr)
    else:
        sys.exit(1)
"""


@pytest.mark.parametrize("appends", [4, pytest.param(40, marks=pytest.mark.slow)], ids=["4", "40"])
def test_collected_without_grace_beside_writers_no_version_misses_an_object(
    dataset: Dataset, appends: int
) -> None:
    repo = dataset.repository
    command = [sys.executable, "-c", WRITER, repo.url]
    writers = [subprocess.Popen([*command, name, str(appends)]) for name in ("p1", "p2")]
    freed = 0
    while any(writer.poll() is None for writer in writers):
        freed += free(repo)
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(log_entries(repo)) == 1 + 2 * appends
    for version in range(1, 2 + 2 * appends):
        latest = repo.open(version)
        assert verify_dataset(latest, sample=1.0 if version % 10 == 0 else 0.0).problems == []
        for source in latest.sources:
            for number in range(source.num_shards):
                latest.open_shard(source.name, number).close()
                latest.docmap(source.name, number)
    freed += free(repo)
    assert freed > 0


NAMERS: dict[str, Callable[[Repository, Path], None]] = {
    "HINT": lambda _repo, _: None,
    "tag prod": lambda repo, _: void(
        set_tag(repo.open(2), "prod", author="", reason="", time_seconds=0.0)
    ),
    "tag moved": lambda repo, _: _move_tag(repo),
    "hold: model M": lambda repo, _: void(
        hold_version(repo.open(2), author="", reason="model M", time_seconds=0.0)
    ),
    "_refs/retired.json": lambda repo, _: retire_versions(
        repo.store, log_entries(repo)[1:], author="", reason="", time_seconds=0.0
    ),
    "run trial": lambda repo, _: read_by_run(repo, 2, RunStore.of(repo)),
}
"""By what the message calls them, all that shows that there was a version 2."""


def _move_tag(repo: Repository) -> None:
    for version in (2, 1):
        set_tag(repo.open(version), "moved", author="", reason="", time_seconds=0.0)


def lose_end(repo: Repository, *, hint: bool) -> Path:
    """Takes the last entry away, and HINT; returns where the entry was."""
    entry = Path(repo.url) / "_log/00000000000000000002.json"
    entry.rename(Path(repo.url).parent / "entry.json")
    if hint:
        (Path(repo.url) / "_log/HINT").unlink()
    return entry


@pytest.mark.parametrize("namer", list(NAMERS))
@pytest.mark.parametrize("marked", [False, True], ids=["find", "sweep"])
def test_nothing_is_freed_where_the_log_lost_its_end(
    appended: Dataset, tmp_path: Path, marked: bool, namer: str
) -> None:
    repo = appended.repository
    NAMERS[namer](repo, tmp_path)
    collector = Collector(repo, grace_seconds=0)
    small_draft(repo, {"web": [[6], [7]]}, seed=99)
    if marked:
        collector.mark(collector.find())
    entry = lose_end(repo, hint=namer != "HINT")
    before = paths(repo)
    with pytest.raises(DamagedError, match=rf"_log/0+2.json in .*{namer} names.*from a copy"):
        collector.sweep() if marked else collector.find()
    assert paths(repo) == before
    (tmp_path / "entry.json").rename(entry)
    if namer != "_refs/retired.json":
        assert verify_dataset(repo.open(2)).problems == []


@pytest.mark.parametrize("namer", list(NAMERS))
def test_nothing_is_written_where_the_log_lost_its_end(
    appended: Dataset, tmp_path: Path, namer: str
) -> None:
    NAMERS[namer](appended.repository, tmp_path)
    lose_end(appended.repository, hint=namer != "HINT")
    with pytest.raises(DamagedError, match=f"{namer} names version 2 and the log ends at 1"):
        begin_transaction(appended.repository, base_version=1, author="", time_seconds=0.0)
    assert not list(appended.repository.store.list("_transactions/"))


def test_another_version_under_a_named_number_is_a_lost_one(appended: Dataset) -> None:
    repo = appended.repository
    lose_end(repo, hint=True)
    commit_small(
        repo, small_draft(repo, {"web": [[6]]}, seed=4, parent=repo.open()), transaction="x"
    )
    set_tag(appended, "prod", author="", reason="", time_seconds=0.0)
    with pytest.raises(DamagedError, match=r"0+2.json in .* is another version's, though tag prod"):
        Collector(repo, grace_seconds=0).find()


def test_a_run_recorded_elsewhere_shows_what_was_lost_by_its_manifest(
    appended: Dataset, tmp_path: Path
) -> None:
    repo, place = appended.repository, RunStore.at(str(tmp_path / "runs"))
    read_by_run(repo, 2, place)
    lose_end(repo, hint=True)
    with pytest.raises(DamagedError, match="run trial names version 2"):
        Collector(repo, grace_seconds=0, runs=[place]).find()
    (Path(repo.url) / f"_manifests/{appended.manifest_sha256}.json").unlink()
    Collector(repo, grace_seconds=0, runs=[place]).find()  # it may as well be another dataset's


def test_a_run_record_that_cannot_be_read_keeps_no_writer_out(appended: Dataset) -> None:
    appended.repository.store.put("_runs/r/segments/00000000.json", b"{")
    begin_transaction(appended.repository, base_version=2, author="", time_seconds=0.0).end()
    with pytest.raises(DamagedError, match="isn't what a run record has there"):
        Collector(appended.repository, grace_seconds=0).find()


def test_nothing_is_freed_where_the_format_file_is_damaged(appended: Dataset) -> None:
    path = Path(appended.url) / "format.json"
    path.write_bytes(path.read_bytes().replace(b"true", b"tru3"))
    with pytest.raises(DamagedError, match=r"format.json"):
        Collector(appended.repository, grace_seconds=0).find()


def test_a_list_of_garbage_under_another_name_is_damage(appended: Dataset) -> None:
    repo = appended.repository
    small_draft(repo, {"web": [[6], [7]]}, seed=99)
    collector = Collector(repo, grace_seconds=0)
    mark = collector.mark(collector.find())
    assert mark is not None
    repo.store.put("_gc/other.marked.json", repo.store.get(mark.path))
    with pytest.raises(DamagedError, match=r"_gc/other.marked.json in .* isn't a list of garbage"):
        collector.sweep()
    assert repo.store.head(mark.path).size
