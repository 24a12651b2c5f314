from __future__ import annotations

import dataclasses
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from datapipe.dataset import Dataset, Repository, VersionDraft, log_entries, verify_dataset
from datapipe.errors import CommitConflictError
from datapipe.testing import commit_small, small_draft

SOURCES = {"web": [[3, 4], [5]], "code": [[2]]}


def append(dataset: Dataset, *, file: str, seed: int = 0, **changes: Any) -> VersionDraft:
    """Returns an append of documents from a file of its own."""
    draft = small_draft(
        dataset.repository, SOURCES, parent=dataset, operation="append", seed=seed, file=file
    )
    return dataclasses.replace(draft, **changes)


@pytest.fixture
def after(dataset: Dataset, tmp_path: Path) -> Dataset:
    """The same dataset with version 2 by somebody else: appended from theirs.jsonl."""
    shutil.copytree(dataset.url, tmp_path / "after")
    repo = Repository(str(tmp_path / "after"))
    theirs = append(repo.open(), file="theirs.jsonl", seed=5)
    commit_small(repo, theirs, author="ada", transaction="theirs")
    return repo.open()


def test_an_append_over_an_append_is_as_if_it_came_after(after: Dataset, tmp_path: Path) -> None:
    shutil.copytree(after.url, tmp_path / "again")
    in_turn = Repository(str(tmp_path / "again"))
    expected = commit_small(in_turn, append(in_turn.open(), file="ours.jsonl"), transaction="ours")
    late = append(after.repository.open(1), file="ours.jsonl")
    found = commit_small(after.repository, late, transaction="ours")
    assert found == expected
    assert (found.version, found.created) == (3, True)
    latest = after.repository.open()
    assert latest.manifest.parents == (after.manifest_sha256,)
    assert latest.shards("web").num_documents.tolist() == [2, 1, 2, 1, 2, 1]
    assert verify_dataset(latest).problems == []


def test_it_follows_several_versions_at_once(after: Dataset) -> None:
    repo = after.repository
    for name in ("third", "fourth"):
        commit_small(repo, append(repo.open(), file=f"{name}.jsonl"), transaction=name)
    late = append(repo.open(1), file="ours.jsonl")
    assert commit_small(repo, late, transaction="ours").version == 5
    assert repo.open().manifest.totals.num_shards == 3 + 4 * 3


def test_the_same_text_in_both_is_a_conflict(after: Dataset) -> None:
    late = append(after.repository.open(1), file="ours.jsonl")
    theirs = after.rows_since("signatures", after.repository.open(1))
    late = dataclasses.replace(late, signatures=theirs.slice(1, 1))
    with pytest.raises(CommitConflictError, match=r"by ada .*; 1 texts were kept by both.* again"):
        commit_small(after.repository, late, transaction="ours")
    assert len(log_entries(after.repository)) == 2


def test_without_a_search_for_duplicates_the_same_text_is_none(after: Dataset) -> None:
    late = append(after.repository.open(1), file="ours.jsonl", signatures=None)
    assert commit_small(after.repository, late, transaction="ours").version == 3


def test_the_same_bytes_under_another_name_are_a_conflict(after: Dataset) -> None:
    late = append(after.repository.open(1), file="ours.jsonl")
    assert late.inputs is not None
    theirs = after.rows_since("inputs", after.repository.open(1))
    place = late.inputs.schema.get_field_index("sha256")
    late = dataclasses.replace(
        late, inputs=late.inputs.set_column(place, late.inputs.schema[place], theirs["sha256"])
    )
    with pytest.raises(CommitConflictError, match=r"input files are in both.* is ours.jsonl of"):
        commit_small(after.repository, late, transaction="ours")


def test_the_same_input_file_in_both_is_a_conflict(after: Dataset) -> None:
    late = append(after.repository.open(1), file="theirs.jsonl")
    with pytest.raises(CommitConflictError, match=r"2 input files .* is theirs.jsonl of code"):
        commit_small(after.repository, late, transaction="ours")


def test_a_build_follows_nobody(after: Dataset) -> None:
    draft = small_draft(after.repository, SOURCES, parent=after.repository.open(1))
    with pytest.raises(CommitConflictError, match=r"version 2 .* by ada \(append: a test\)"):
        commit_small(after.repository, draft, transaction="ours")


def test_an_append_over_a_build_is_a_conflict(dataset: Dataset) -> None:
    repo = dataset.repository
    commit_small(repo, small_draft(repo, SOURCES, parent=dataset), transaction="b", author="bob")
    with pytest.raises(CommitConflictError, match=r"version 2 .* by bob \(build: a test\)"):
        commit_small(repo, append(dataset, file="ours.jsonl"), transaction="ours")


def test_an_append_of_nothing_over_an_append_commits_nothing(after: Dataset) -> None:
    late = append(after.repository.open(1), file="ours.jsonl")
    none = dataclasses.replace(
        late,
        shards=[],
        counts=[dataclasses.replace(c, kept=0, text_bytes=0, bytes_in=0) for c in late.counts],
        inputs=None,
        signatures=None,
    )
    committed = commit_small(after.repository, none, transaction="ours")
    assert (committed.version, committed.created) == (2, False)


def test_a_transaction_finds_its_entry_behind_others(after: Dataset) -> None:
    again = append(after.repository.open(1), file="theirs.jsonl", seed=5)
    committed = commit_small(after.repository, again, transaction="theirs")
    assert (committed.version, committed.manifest) == (2, after.manifest_sha256)


class AppendMachine(RuleBasedStateMachine):
    """Writers that started from any version append; files and texts decide who is in the way."""

    files = st.sampled_from(["a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl", "e.jsonl", "f.jsonl"])

    @initialize()
    def make(self) -> None:
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.repo = Repository(str(self.folder / "dataset"))
        self.repo.create()
        commit_small(self.repo, small_draft(self.repo, {"web": [[2]]}, file="first.jsonl"))
        self.added: list[tuple[str, bool]] = [("first.jsonl", True)]
        """File of each version, and whether it looked for duplicates."""
        self.drafts: list[tuple[VersionDraft, str]] = []

    @precondition(lambda self: len(self.drafts) < 4)
    @rule(file=files, compares=st.booleans(), back=st.integers(0, 3))
    def begin(self, file: str, compares: bool, back: int) -> None:
        parent = self.repo.open(max(1, len(self.added) - back))
        if file in [name for name, _ in self.added[: parent.version]]:
            return  # a file that is in already is skipped
        draft = append(parent, file=file)
        draft = draft if compares else dataclasses.replace(draft, signatures=None)
        self.drafts.append((draft, file))

    @precondition(lambda self: self.drafts)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(self.drafts) - 1))
        draft, file = self.drafts.pop(place)
        assert draft.parent is not None
        meanwhile = [name for name, _ in self.added[draft.parent.version :]]
        name = f"t{len(self.added)}-{place}"
        if file in meanwhile:
            with pytest.raises(CommitConflictError, match=f"2 input files .* is {file}"):
                commit_small(self.repo, draft, transaction=name)
            return
        assert commit_small(self.repo, draft, transaction=name).version == len(self.added) + 1
        self.added.append((file, draft.signatures is not None))

    @invariant()
    def every_append_is_there_once(self) -> None:
        latest = self.repo.open()
        assert latest.version == len(self.added)
        assert latest.manifest.totals.kept == 1 + 4 * (len(self.added) - 1)
        assert sorted(set(latest.inputs()["file"].to_pylist())) == sorted(f for f, _ in self.added)
        keys = latest.signatures()
        assert keys is not None
        assert keys.num_rows == 1 + 4 * sum(compared for _, compared in self.added[1:])

    def teardown(self) -> None:
        assert verify_dataset(self.repo.open()).problems == []
        shutil.rmtree(self.folder)


AppendMachine.TestCase.settings = settings(max_examples=5, stateful_step_count=12, deadline=None)
test_appends_from_any_version = AppendMachine.TestCase
