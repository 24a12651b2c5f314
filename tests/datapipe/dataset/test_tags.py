from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from datapipe.dataset import Dataset, Repository, Tag, delete_tag, list_tags, read_tag, set_tag
from datapipe.errors import (
    CommitConflictError,
    DamagedError,
    UnknownReferenceError,
    UsageError,
)
from datapipe.testing import commit_small, small_draft
from tiering.errors import UndecidedError
from tiering.testing import FaultyStore


def put(dataset: Dataset, name: str, *, author: str = "ada", **options: Any) -> Tag:
    return set_tag(dataset, name, author=author, reason="why", time_seconds=1000.0, **options)


def remove(dataset: Dataset, name: str, **options: Any) -> Tag:
    store = dataset.repository.store
    return delete_tag(store, name, author="bob", reason="old", time_seconds=2000.0, **options)


def test_the_bytes_of_the_format(dataset: Dataset) -> None:
    move = put(dataset, "prod").moves[0]
    manifest = dataset.manifest_sha256
    assert dataset.repository.store.get("_refs/tags/prod.json") == (
        '{"format":1,"moves":[{"author":"ada","id":"' + move.id + '","manifest":"' + manifest
        + '","reason":"why","time_seconds":1000,"version":1}],"name":"prod","release":false}'
    ).encode()  # fmt: skip


def test_a_tag_opens_its_version(appended: Dataset, dataset: Dataset) -> None:
    put(dataset, "prod")
    assert appended.repository.open("prod").version == 1
    put(appended, "prod")
    assert appended.repository.open("prod").version == 2


def test_every_move_is_recorded(appended: Dataset, dataset: Dataset) -> None:
    store = dataset.repository.store
    put(dataset, "prod")
    put(appended, "prod", author="eve")
    remove(dataset, "prod")
    assert list_tags(store) == []
    tag = read_tag(store, "prod")
    assert tag is not None
    moves = [(move.version, move.author) for move in tag.moves]
    assert moves == [(1, "ada"), (2, "eve"), (None, "bob")]
    put(dataset, "prod")
    assert [tag.name for tag in list_tags(store)] == ["prod"]


def test_setting_what_is_set_moves_nothing(dataset: Dataset) -> None:
    assert put(dataset, "prod") == put(dataset, "prod", author="eve")


@pytest.mark.parametrize(
    ("name", "release"), [("v1-final", True), ("release", False), ("release-2026", False)]
)
def test_a_release_stays_where_it_is(
    appended: Dataset, dataset: Dataset, name: str, release: bool
) -> None:
    put(dataset, name, release=release)
    put(dataset, name)
    with pytest.raises(UsageError, match=f"tag {name} of .* is a release: it names version 1"):
        put(appended, name)
    with pytest.raises(UsageError, match="is a release"):
        remove(dataset, name)
    assert appended.repository.open(name).version == 1


def test_a_tag_can_become_a_release(appended: Dataset, dataset: Dataset) -> None:
    put(dataset, "prod")
    put(dataset, "prod", release=True)
    with pytest.raises(UsageError, match="is a release"):
        put(appended, "prod")


@pytest.mark.parametrize("name", ["latest", "v3", "12", "beef", "a/b", "../x", "", "-x", "x" * 65])
def test_names_that_mean_something_else_are_refused(dataset: Dataset, name: str) -> None:
    with pytest.raises(UsageError, match="can't name a tag"):
        put(dataset, name)


def test_deleting_what_is_not_there_names_what_is(dataset: Dataset) -> None:
    put(dataset, "prod")
    for name in ("other", "../prod"):
        with pytest.raises(UnknownReferenceError, match=r"no tag .*; its tags: prod"):
            remove(dataset, name)


def test_a_dry_run_changes_nothing(appended: Dataset, dataset: Dataset) -> None:
    put(dataset, "prod")
    assert put(appended, "prod", dry_run=True).version == 2
    assert remove(dataset, "prod", dry_run=True).version is None
    assert put(dataset, "new", dry_run=True).version == 1
    assert [(t.name, t.version) for t in list_tags(dataset.repository.store)] == [("prod", 1)]


@pytest.mark.parametrize("exists", [True, False], ids=["moved", "made"])
def test_who_moves_it_second_is_told(appended: Dataset, dataset: Dataset, exists: bool) -> None:
    if exists:
        put(dataset, "prod")
    pending = [dataset.repository.open(2)]

    def fault(verb: str, path: str) -> Exception | None:
        if verb == "put" and path.startswith("_refs/") and pending:
            put(pending.pop(), "prod", author="eve")
        return None

    late = Repository.over(FaultyStore(dataset.repository.store, fault=fault)).open(1)
    with pytest.raises(CommitConflictError, match="was moved to version 2 by eve meanwhile"):
        set_tag(late, "prod", author="ada", reason="", time_seconds=1.0, release=True)
    assert appended.repository.open("prod").version == 2


@pytest.mark.parametrize("applied", ["before", "after"])
def test_a_lost_answer_is_asked_for_again(dataset: Dataset, applied: str) -> None:
    losses = iter([UndecidedError("lost"), UndecidedError("lost")])

    def fault(verb: str, path: str) -> Exception | None:
        return next(losses, None) if verb == "put" and path.startswith("_refs/") else None

    store = FaultyStore(dataset.repository.store, fault=fault, applied=applied)  # type: ignore[arg-type]
    put(Repository.over(store).open(), "prod")
    tag = read_tag(dataset.repository.store, "prod")
    assert tag is not None
    assert len(tag.moves) == 1


@pytest.mark.parametrize("damage", [b"{", b'{"format":1}', b'{"format":1,"moves":[],"name":"x"}'])
def test_a_damaged_tag_is_named(dataset: Dataset, damage: bytes) -> None:
    dataset.repository.store.put("_refs/tags/prod.json", damage)
    with pytest.raises(DamagedError, match=r"_refs/tags/prod\.json"):
        dataset.repository.open("prod")


def test_a_tag_of_a_version_that_was_lost_is_damage(appended: Dataset) -> None:
    put(appended, "prod")
    repo = appended.repository
    repo.store.delete("_log/00000000000000000002.json")
    repo.store.delete("_log/HINT")
    with pytest.raises(DamagedError, match="versions were lost or replaced"):
        repo.open("prod")


class TagMachine(RuleBasedStateMachine):
    """Tags do what a dict does, and remember every change of it."""

    names = st.sampled_from(["prod", "next", "release-1"])

    @initialize()
    def make(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        repo = Repository(str(self.folder / "dataset"))
        repo.create()
        commit_small(repo, small_draft(repo, {"web": [[2]]}))
        draft = small_draft(repo, {"web": [[3]]}, parent=repo.open(), operation="append")
        commit_small(repo, draft, transaction="u")
        self.versions = {number: repo.open(number) for number in (1, 2)}
        self.model: dict[str, int | None] = {}
        self.moves: dict[str, list[int | None]] = {}

    def _changed(self, name: str, version: int | None) -> None:
        if self.model.get(name) != version:
            self.moves.setdefault(name, []).append(version)
        self.model[name] = version

    @rule(name=names, version=st.sampled_from([1, 2]))
    def set(self, name: str, version: int) -> None:
        before = self.model.get(name)
        if name.startswith("release") and before not in (None, version):
            with pytest.raises(UsageError, match="is a release"):
                put(self.versions[version], name)
            return
        put(self.versions[version], name)
        self._changed(name, version)

    @rule(name=names)
    def delete(self, name: str) -> None:
        if self.model.get(name) is None:
            with pytest.raises(UnknownReferenceError, match="no tag"):
                remove(self.versions[1], name)
        elif name.startswith("release"):
            with pytest.raises(UsageError, match="is a release"):
                remove(self.versions[1], name)
        else:
            remove(self.versions[1], name)
            self._changed(name, None)

    @invariant()
    def the_model_holds(self) -> None:
        store = self.versions[1].repository.store
        expected = {name: version for name, version in self.model.items() if version}
        assert {tag.name: tag.version for tag in list_tags(store)} == expected
        for name, moves in self.moves.items():
            tag = read_tag(store, name)
            assert tag is not None
            assert [move.version for move in tag.moves] == moves

    def teardown(self) -> None:
        shutil.rmtree(self.folder)


TagMachine.TestCase.settings = settings(max_examples=10, stateful_step_count=12, deadline=None)
test_tags_are_a_dict_with_a_memory = TagMachine.TestCase
