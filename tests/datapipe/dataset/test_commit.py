from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datapipe.dataset import (
    Dataset,
    Repository,
    SourceCounts,
    VersionDraft,
    layout,
    log_entries,
    verify_dataset,
)
from datapipe.dataset.plan import MOST_FILES
from datapipe.errors import (
    CommitConflictError,
    ConservationError,
    DamagedError,
    SpaceError,
    TokenizerMismatchError,
    UsageError,
)
from datapipe.testing import commit_small, small_draft, small_quarantine, small_tokenizer
from tiering.errors import NoSpaceError, ObjectExistsError
from tiering.store import BlockingStore
from tiering.testing import FaultyStore

SOURCES = {"web": [[3, 4], [5]], "books": [[9]]}


def changed(draft: VersionDraft, **changes: Any) -> VersionDraft:
    return dataclasses.replace(draft, **changes)


def counts(draft: VersionDraft, **changes: Any) -> list[SourceCounts]:
    """The draft's counts with the first source's changed."""
    return [dataclasses.replace(draft.counts[0], **changes), *draft.counts[1:]]


def test_a_build_is_version_one(repo: Repository) -> None:
    committed = commit_small(repo, small_draft(repo, SOURCES))
    dataset = repo.open()
    assert (committed.version, committed.created) == (1, True)
    assert (dataset.version, dataset.manifest_sha256) == (1, committed.manifest)
    assert dataset.manifest.digests.logical == committed.logical
    assert dataset.manifest.digests.content == committed.content


def test_the_entry_says_who_why_and_when(repo: Repository) -> None:
    commit_small(repo, small_draft(repo, SOURCES), author="ada", transaction="t-9")
    (entry,) = log_entries(repo)
    assert (entry.author, entry.reason, entry.time_seconds) == ("ada", "a test", 1000.0)
    assert (entry.transaction, entry.operation, entry.version) == ("t-9", "build", 1)


def test_a_repeated_build_commits_nothing(repo: Repository, dataset: Dataset) -> None:
    again = small_draft(repo, SOURCES, parent=dataset, dropped=2, quarantined=1)
    committed = commit_small(repo, again, transaction="second")
    assert (committed.version, committed.created) == (1, False)
    assert committed.manifest == dataset.manifest_sha256
    assert len(log_entries(repo)) == 1


@pytest.mark.parametrize(
    "options",
    [{"seed": 1}, {"dropped": 1}, {"recipe": {"name": "other"}}],
    ids=["tokens", "dropped", "recipe"],
)
def test_another_result_or_recipe_is_a_new_version(
    repo: Repository, dataset: Dataset, options: dict[str, Any]
) -> None:
    draft = small_draft(
        repo, SOURCES, parent=dataset, **{"dropped": 2, "quarantined": 1, **options}
    )
    committed = commit_small(repo, draft, transaction="second")
    assert (committed.version, committed.created) == (2, True)
    assert repo.open().manifest.parents == (dataset.manifest_sha256,)


def test_another_tokenizer_is_a_new_version_of_a_build(repo: Repository, dataset: Dataset) -> None:
    draft = small_draft(repo, SOURCES, parent=dataset, dropped=2, quarantined=1)
    draft = changed(draft, tokenizer=small_tokenizer(vocabulary="other"))
    assert commit_small(repo, draft, transaction="second").version == 2


# -- append


def test_an_append_keeps_what_was_there(appended: Dataset, dataset: Dataset) -> None:
    old, new = dataset.shards("web"), appended.shards("web")
    assert list(new.raw_sha256[:2]) == list(old.raw_sha256)
    assert new.num_documents.tolist() == [2, 1, 3]
    assert [source.name for source in appended.sources] == ["web", "books", "code"]
    assert appended.manifest.operation == "append"
    assert appended.manifest.licences == {"web": "CC0-1.0", "books": "CC0-1.0", "code": "CC0-1.0"}


def test_an_append_adds_one_file_to_each_table(appended: Dataset, dataset: Dataset) -> None:
    for name, files in dataset.manifest.tables.items():
        assert appended.manifest.files(name)[:1] == files
        assert len(appended.manifest.files(name)) == 2


def test_an_append_adds_the_counts(appended: Dataset) -> None:
    web, books, code = appended.manifest.conservation
    assert (web.kept, web.dropped, web.quarantined) == (
        6, {"dedup_exact.duplicate": 3}, {"invalid_json": 3}
    )  # fmt: skip
    assert (books.documents_in, code.documents_in) == (1, 2)
    assert appended.manifest.totals.documents_in == 15


def test_an_append_of_nothing_commits_nothing(repo: Repository, dataset: Dataset) -> None:
    draft = small_draft(repo, {"web": []}, parent=dataset, operation="append", recipe={"n": 1})
    draft = changed(draft, inputs=None)
    draft = changed(draft, counts=[SourceCounts(source="web", kept=0, text_bytes=0)])
    committed = commit_small(repo, draft, transaction="second")
    assert (committed.version, committed.created) == (1, False)


def test_an_append_without_signatures_keeps_the_old(repo: Repository, dataset: Dataset) -> None:
    draft = small_draft(repo, {"web": [[3]]}, parent=dataset, operation="append")
    commit_small(repo, changed(draft, signatures=None), transaction="second")
    signatures = repo.open().signatures()
    assert signatures is not None
    assert signatures.num_rows == 4


@pytest.mark.parametrize("what", ["vocabulary", "canary"])
def test_an_append_with_another_tokenizer_is_refused(
    repo: Repository, dataset: Dataset, what: str
) -> None:
    draft = small_draft(repo, {"web": [[3]]}, parent=dataset, operation="append")
    change: dict[str, Any] = {what: "f" * 64}
    other = dataclasses.replace(draft.tokenizer, **change)
    with pytest.raises(TokenizerMismatchError, match=f"the {what} of this tokenizer is ffff"):
        commit_small(repo, changed(draft, tokenizer=other), transaction="second")
    assert repo.open().version == 1


def test_an_append_with_another_token_type_is_refused(repo: Repository, dataset: Dataset) -> None:
    draft = small_draft(repo, {"web": [[3]]}, parent=dataset, operation="append", max_id=70_000)
    with pytest.raises(TokenizerMismatchError, match="the token type of this tokenizer is uint32"):
        commit_small(repo, draft, transaction="second")


def test_an_append_whose_documents_end_otherwise_is_refused(
    repo: Repository, dataset: Dataset
) -> None:
    recipe = {"tokenize": {"append_eos": False}}
    draft = small_draft(repo, {"web": [[3]]}, parent=dataset, operation="append", recipe=recipe)
    with pytest.raises(UsageError, match=r"end with an end-of-document.*append_eos: true"):
        commit_small(repo, draft, transaction="second")


def test_an_append_with_other_columns_is_refused(repo: Repository, dataset: Dataset) -> None:
    draft = small_draft(repo, {"web": [[3]]}, parent=dataset, operation="append")
    path = Path(repo.url) / layout.docmap_path(dataset.shards("web").docmap_sha256[0])
    table = pq.read_table(path)
    pq.write_table(table.append_column("mood", table["licence"]), path)
    with pytest.raises(UsageError, match=r"described by other columns than this program .*: mood"):
        commit_small(repo, draft, transaction="second")


def test_an_append_shares_the_objects_that_were_there(appended: Dataset, dataset: Dataset) -> None:
    for source in dataset.sources:
        old, new = dataset.shards(source.name), appended.shards(source.name)
        count = len(old)
        assert list(new.stored_sha256[:count]) == list(old.stored_sha256)
        assert list(new.docmap_sha256[:count]) == list(old.docmap_sha256)
    store = appended.repository.store
    assert len(list(store.list("tokens/"))) == len(list(store.list("docmap/"))) == 5


def test_too_many_files_of_shards_are_merged(repo: Repository, dataset: Dataset) -> None:
    latest: Dataset | None = dataset
    for number in range(MOST_FILES):
        draft = small_draft(repo, {"web": [[2]]}, parent=latest, operation="append", seed=number)
        commit_small(repo, changed(draft, inputs=None, signatures=None), transaction=f"t{number}")
        latest = repo.latest()
    assert latest is not None
    assert [len(latest.manifest.files(name)) for name in ("shards", "details")] == [1, 1]
    assert latest.manifest.files("shards")[0].rows == 3 + MOST_FILES
    assert list(latest.shards("web").raw_sha256[:2]) == list(dataset.shards("web").raw_sha256)
    assert verify_dataset(latest).problems == []


def test_an_append_needs_a_parent(repo: Repository) -> None:
    with pytest.raises(ValueError, match="give parent="):
        small_draft(repo, SOURCES, operation="append")


def test_numbers_go_on_from_the_parents(repo: Repository, dataset: Dataset) -> None:
    draft = small_draft(repo, {"web": [[3, 4]]})
    draft = changed(draft, operation="append", parent=dataset)
    with pytest.raises(ValueError, match=r"shards of web have numbers 0, expected 2 to 2"):
        commit_small(repo, draft, transaction="second")


def test_shards_of_another_dtype_are_refused(repo: Repository) -> None:
    draft = small_draft(repo, SOURCES)
    with pytest.raises(ValueError, match=r"14 bytes for 7 tokens, but ids up to 70000 take 4"):
        commit_small(repo, changed(draft, tokenizer=small_tokenizer(max_id=70_000)))


# -- conservation


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"kept": 4}, "kept documents of web: 4 counted, 3 written"),
        ({"text_bytes": 1}, "text bytes of web: 1 counted, 30 written"),
        ({"dropped": {}}, "dropped of web: dedup_exact.duplicate: 0 counted, 2 written"),
        ({"dropped": {"a.b": 2}}, "dropped of web: a.b: 2 counted, 0 written"),
        ({"quarantined": {"invalid_json": 2}}, "web: invalid_json: 2 counted, 1 written"),
        ({"source": "other"}, "kept documents of other: 3 counted, 0 written"),
        ({"source": "books"}, "books was counted twice"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_numbers_that_do_not_add_up_do_not_commit(
    repo: Repository, change: dict[str, Any], match: str
) -> None:
    draft = small_draft(repo, SOURCES, dropped=2, quarantined=1)
    with pytest.raises(ConservationError, match=match):
        commit_small(repo, changed(draft, counts=counts(draft, **change)))
    assert repo.latest() is None


def test_inputs_of_a_source_without_counts_are_refused(repo: Repository) -> None:
    draft = small_draft(repo, SOURCES)
    with pytest.raises(ConservationError, match="books has inputs and no counts"):
        commit_small(repo, changed(small_draft(repo, {"web": [[3]]}), inputs=draft.inputs))


def test_reasons_counted_as_zero_do_not_show(repo: Repository) -> None:
    draft = small_draft(repo, SOURCES)
    committed = commit_small(repo, changed(draft, counts=counts(draft, dropped={"a.b": 0})))
    again = commit_small(repo, small_draft(repo, SOURCES, parent=repo.latest()), transaction="2")
    assert (again.created, again.manifest) == (False, committed.manifest)


def turned(table: pa.Table, step: int) -> pa.Table:
    return table.take(pa.array(range(table.num_rows)[::step]))


def test_rows_come_in_their_own_order_whatever_order_they_had(tmp_path: Path) -> None:
    committed = []
    for name, step in (("a", 1), ("b", -1)):
        repo = Repository(str(tmp_path / name))
        repo.create()
        draft = small_draft(repo, SOURCES, dropped=3)
        tables = {
            table: turned(getattr(draft, table), step)
            for table in ("dropped", "inputs", "signatures")
        }
        committed.append(commit_small(repo, changed(draft, shards=draft.shards[::step], **tables)))
    assert committed[0] == committed[1]


def test_a_source_without_documents_is_listed(repo: Repository) -> None:
    commit_small(repo, small_draft(repo, {"web": [[3]], "empty": []}))
    dataset = repo.open()
    assert [(s.name, s.num_shards) for s in dataset.sources] == [("web", 1), ("empty", 0)]
    assert len(dataset.shards("empty")) == 0
    assert verify_dataset(dataset).problems == []


def test_a_version_without_documents_can_be_committed(repo: Repository) -> None:
    draft = small_draft(repo, {"web": []}, quarantined=2)
    commit_small(repo, draft)
    dataset = repo.open()
    assert dataset.quarantine().num_rows == 2
    assert verify_dataset(dataset).problems == []


# -- others, and failures


def test_whoever_comes_second_conflicts(repo: Repository) -> None:
    first, second = small_draft(repo, SOURCES), small_draft(repo, SOURCES, seed=1)
    commit_small(repo, first, author="ada", transaction="first")
    with pytest.raises(CommitConflictError, match=r"version 1 .* committed meanwhile by ada"):
        commit_small(repo, second, transaction="second")
    assert len(log_entries(repo)) == 1


def test_the_same_transaction_finds_its_own_entry(repo: Repository) -> None:
    draft = small_draft(repo, SOURCES)
    first = commit_small(repo, draft, transaction="t")
    assert commit_small(repo, draft, transaction="t") == first
    assert len(log_entries(repo)) == 1


def test_a_parent_that_was_exchanged_is_a_conflict(dataset: Dataset, tmp_path: Path) -> None:
    other = Repository(str(tmp_path / "other"))
    other.create()
    commit_small(other, small_draft(other, SOURCES, seed=5))
    draft = small_draft(dataset.repository, {"web": [[3]]}, parent=other.open(), operation="append")
    with pytest.raises(CommitConflictError, match="open the dataset again"):
        commit_small(dataset.repository, draft, transaction="second")


RACE = """
import sys, time
from datapipe.dataset import Repository
from datapipe.errors import CommitConflictError
from datapipe.testing import commit_small, small_draft
url, name, start = sys.argv[1:]
repo = Repository(url)
draft = small_draft(repo, {"web": [[3, 4]]}, seed=int(name))
while time.time() < float(start):
    pass
try:
    commit_small(repo, draft, author=name, transaction=name)
except CommitConflictError as error:
    sys.exit(str(error))
"""


def test_of_two_processes_exactly_one_wins(repo: Repository) -> None:
    start = str(time.time() + 2.0)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, repo.url, name, start], stderr=subprocess.PIPE, text=True
        )
        for name in "12"
    ]
    outcomes = {name: racer.communicate()[1] for name, racer in zip("12", racers, strict=True)}
    winners = [name for name, said in outcomes.items() if not said]
    assert len(winners) == 1
    assert f"committed meanwhile by {winners[0]}" in "".join(outcomes.values())
    (entry,) = log_entries(repo)
    assert entry.author == winners[0]
    assert verify_dataset(repo.open()).problems == []


class Killed(BaseException):
    """Stops everything, as kill -9 does."""


class MortalStore(FaultyStore):
    """Dies at a change of the store, which is applied or not, and stays dead."""

    def __init__(self, inner: BlockingStore, *, at: int, applied: bool) -> None:
        super().__init__(inner, fault=self._count)
        self.left, self._applies = at, applied

    def _count(self, verb: str, _: str) -> None:
        if self.left < 0:
            raise Killed
        if verb in ("put", "delete"):
            self.left -= 1
            if self.left < 0 and not self._applies:
                raise Killed

    def put(self, path: str, data: Any, **options: Any) -> Any:
        with contextlib.suppress(ObjectExistsError) if self.left == 0 else contextlib.nullcontext():
            info = super().put(path, data, **options)
        if self.left < 0:
            raise Killed
        return info


@pytest.mark.parametrize("applied", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("transaction", ["t", "u"], ids=["same", "another"])
def test_killed_at_any_write_a_second_run_completes(
    tmp_path: Path, applied: bool, transaction: str
) -> None:
    at, done = 0, False
    ready = Repository(str(tmp_path / "ready"))
    ready.create()
    draft = small_draft(ready, {"web": [[3]]}, dropped=1, quarantined=1)
    while not done:
        repo = Repository(str(tmp_path / str(at)))
        shutil.copytree(ready.url, repo.url)
        mortal = MortalStore(repo.store, at=at, applied=applied)
        with contextlib.suppress(Killed):
            commit_small(Repository.over(mortal), draft, transaction="t")
        done = mortal.left >= 0
        _assert_second_run_completes(repo, draft, transaction)
        at += 1
    assert at > 12


def _assert_second_run_completes(repo: Repository, draft: VersionDraft, transaction: str) -> None:
    latest = repo.latest()
    assert latest is None or verify_dataset(latest).problems == []
    if latest is not None and transaction != "t":  # the program run again sees what is there
        draft = changed(draft, parent=latest)
    again = commit_small(repo, draft, transaction=transaction)
    assert (again.version, len(log_entries(repo))) == (1, 1)
    assert again.created == (latest is None or transaction == "t")
    assert verify_dataset(repo.open()).problems == []


KILLED = """
import os, signal, sys
from datapipe.dataset import Repository
from datapipe.testing import commit_small, small_draft
repo = Repository(sys.argv[1])
repo.create()
draft = small_draft(repo, {"web": [[3, 4]]})
link = os.link
def watched(source, target):
    if sys.argv[2] in str(target):
        os.kill(os.getpid(), signal.SIGKILL)
    link(source, target)
os.link = watched
commit_small(repo, draft)
"""


@pytest.mark.parametrize("step", ["/_transactions/", "/_manifests/", "/_log/"])
def test_a_killed_process_leaves_nothing_visible(tmp_path: Path, step: str) -> None:
    url = str(tmp_path / "dataset")
    run = subprocess.run([sys.executable, "-c", KILLED, url, step], check=False)
    assert run.returncode == -signal.SIGKILL
    repo = Repository(url)
    assert repo.latest() is None
    commit_small(repo, small_draft(repo, {"web": [[3, 4]]}))
    assert verify_dataset(repo.open()).problems == []


@pytest.mark.parametrize("prefix", ["_manifests/", "_log/", "tokenizer/", "dropped/", "private/"])
def test_a_full_disk_leaves_nothing_visible(repo: Repository, prefix: str) -> None:
    draft = small_draft(repo, SOURCES, dropped=1, quarantined=1)

    def fault(verb: str, path: str) -> Exception | None:
        return NoSpaceError("full") if verb == "put" and path.startswith(prefix) else None

    with pytest.raises(SpaceError, match="run the same command again"):
        commit_small(Repository.over(FaultyStore(repo.store, fault=fault)), draft)
    assert repo.latest() is None
    commit_small(repo, draft)
    assert verify_dataset(repo.open()).problems == []


@pytest.mark.parametrize(
    ("kind", "damage"), [("tokens", "missing"), ("docmap", "missing"), ("tokens", "truncated")]
)
def test_shards_are_looked_at_before_the_commit(repo: Repository, kind: str, damage: str) -> None:
    draft = small_draft(repo, SOURCES)
    path = next(iter(repo.store.list(f"{kind}/"))).path
    file = Path(repo.url) / path
    file.unlink() if damage == "missing" else file.write_bytes(b"")
    error = CommitConflictError if damage == "missing" else DamagedError
    with pytest.raises(error, match=f"{path}.* run the same command again"):
        commit_small(repo, draft)
    assert repo.latest() is None


def test_a_table_without_its_columns_is_refused(repo: Repository) -> None:
    draft = small_draft(repo, SOURCES)
    with pytest.raises(ValueError, match="lacks the columns"):
        commit_small(repo, changed(draft, inputs=small_quarantine([("web", "x", b"")])))
    assert repo.latest() is None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs root and the right to mount a tmpfs")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_really_full_disk_is_resumable(small_disk: Path) -> None:
    repo = Repository(str(small_disk / "dataset"))
    repo.create()
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    with pytest.raises(SpaceError, match=r"no space left in .* run the same command again"):
        small_draft(repo, SOURCES)
    assert repo.latest() is None
    filler.unlink()
    commit_small(repo, small_draft(repo, SOURCES))
    assert verify_dataset(repo.open()).problems == []
