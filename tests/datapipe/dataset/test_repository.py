from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from datapipe.dataset import (
    Collector,
    Dataset,
    Repository,
    begin_transaction,
    hold_version,
    list_holds,
    log_entries,
    open_dataset,
)
from datapipe.dataset.repository import read_format
from datapipe.dataset.retired import read_retired
from datapipe.dataset.runs import RunStore
from datapipe.dataset.tags import read_tag
from datapipe.errors import (
    DamagedError,
    DatasetError,
    SpaceError,
    UnknownReferenceError,
    UsageError,
)
from datapipe.testing import commit_small, small_draft
from tiering.errors import AccessDeniedError, NoSpaceError
from tiering.testing import FaultyStore


def test_create_writes_what_the_format_says(tmp_path: Path) -> None:
    repo = Repository(str(tmp_path / "new"))
    assert not repo.exists()
    repo.create()
    assert repo.exists()
    content = json.loads((tmp_path / "new/format.json").read_bytes())
    assert sorted(content) == [
        "exclusive_create",
        "format",
        "format_sha256",
        "id",
        "probed_at_seconds",
    ]
    assert (content["format"], content["exclusive_create"], len(content["id"])) == (1, True, 32)
    assert [info.path for info in repo.store.list()] == ["format.json"]


def test_create_again_changes_nothing(repo: Repository) -> None:
    before = read_format(repo.store)
    repo.create()
    assert read_format(repo.store) == before


def test_two_datasets_have_different_ids(tmp_path: Path) -> None:
    repos = [Repository(str(tmp_path / name)) for name in "ab"]
    for repo in repos:
        repo.create()
    assert read_format(repos[0].store).id != read_format(repos[1].store).id


@pytest.mark.parametrize(("old", "new"), [(b"true", b"false"), (b"1,", b"1, "), (b"{", b"[")])
def test_a_changed_format_file_is_damage(repo: Repository, old: bytes, new: bytes) -> None:
    path = Path(repo.url) / "format.json"
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(DamagedError, match=r"format.json"):
        repo.create()


def test_a_newer_dataset_is_refused(repo: Repository) -> None:
    (Path(repo.url) / "format.json").write_bytes(b'{"format":2}')
    with pytest.raises(DatasetError, match=r"format 2: it was made by a newer datapipe.*upgrade"):
        repo.create()


@pytest.mark.parametrize(
    ("error", "kind"), [(NoSpaceError("full"), SpaceError), (AccessDeniedError("no"), DatasetError)]
)
def test_what_cannot_be_written_is_said(
    tmp_path: Path, error: Exception, kind: type[Exception]
) -> None:
    def fault(verb: str, _: str) -> Exception | None:
        return error if verb == "put" else None

    store = FaultyStore(Repository(str(tmp_path)).store, fault=fault)
    with pytest.raises(kind, match=str(tmp_path)):
        Repository.over(store).create()


def test_repositories_can_be_pickled(dataset: Dataset) -> None:
    repo = pickle.loads(pickle.dumps(dataset.repository))
    assert repo.url == dataset.url
    assert repo.open().manifest_sha256 == dataset.manifest_sha256


def test_a_repository_without_versions_has_no_latest(repo: Repository) -> None:
    assert repo.latest() is None
    with pytest.raises(UnknownReferenceError, match="has no version yet"):
        repo.open()


def test_no_dataset_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnknownReferenceError, match=r"there is no dataset at .*/none"):
        open_dataset(str(tmp_path / "none"))


def test_an_unknown_scheme_is_said() -> None:
    with pytest.raises(UnknownReferenceError, match=r"no store is known .* nothing://"):
        open_dataset("nothing://bucket/dataset@3")


@pytest.mark.parametrize(
    ("suffix", "version"), [("", 2), ("@1", 1), ("@v1", 1), ("@2", 2), ("@v2", 2)]
)
def test_references_by_number(appended: Dataset, suffix: str, version: int) -> None:
    assert open_dataset(appended.url + suffix).version == version


@pytest.mark.parametrize("digits", [8, 12, 64])
def test_references_by_manifest_digest(appended: Dataset, dataset: Dataset, digits: int) -> None:
    for expected in (appended, dataset):
        found = open_dataset(f"{expected.url}@{expected.manifest_sha256[:digits]}")
        assert found.version == expected.version


def test_numbers_are_accepted_as_numbers(appended: Dataset) -> None:
    assert [appended.repository.open(ref).version for ref in (1, 2, None)] == [1, 2, 2]


@pytest.mark.parametrize("ref", ["3", "v0", "0", "latest", "ffff", "-1", "1.0", "", "V1"])
def test_unknown_references_say_what_exists(appended: Dataset, ref: str) -> None:
    with pytest.raises(UnknownReferenceError, match=rf"no version '{ref}'; it has versions 1 to 2"):
        open_dataset(f"{appended.url}@{ref}")


def test_an_at_sign_in_a_path_is_part_of_it(tmp_path: Path) -> None:
    repo = Repository(str(tmp_path / "data@3"))
    repo.create()
    with pytest.raises(UnknownReferenceError, match=r"data@3 has no version yet"):
        open_dataset(repo.url)
    with pytest.raises(UnknownReferenceError, match=r"no dataset at .*user@host/x"):
        open_dataset(str(tmp_path / "user@host/x"))


def test_opening_takes_five_requests(appended: Dataset) -> None:
    asked: list[tuple[str, str]] = []

    def fault(verb: str, path: str) -> Exception | None:
        asked.append((verb, path))
        return None

    Repository.over(FaultyStore(appended.repository.store, fault=fault)).open()
    assert len(asked) == 5


@pytest.mark.parametrize("what", ["missing", "changed"])
def test_a_damaged_manifest_is_said(dataset: Dataset, what: str) -> None:
    path = Path(dataset.url) / f"_manifests/{dataset.manifest_sha256}.json"
    if what == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(DamagedError, match=f"_manifests/{dataset.manifest_sha256}.json"):
        open_dataset(dataset.url)


@pytest.mark.parametrize(
    "use",
    [
        lambda repo: repo.exists(),
        lambda repo: repo.create(),
        lambda repo: repo.latest(),
        lambda repo: repo.open(1),
        lambda repo: open_dataset(repo.url),
        lambda repo: open_dataset(f"{repo.url}@1"),
        lambda repo: log_entries(repo),
        lambda repo: Collector(repo, grace_seconds=0),
        lambda repo: begin_transaction(repo, base_version=1, author="", time_seconds=0),
        lambda repo: RunStore.of(repo),
        lambda repo: pickle.loads(pickle.dumps(repo)).latest(),
    ],
    ids=[
        "exists",
        "create",
        "latest",
        "open",
        "by path",
        "by version",
        "log",
        "gc",
        "write",
        "runs",
        "in another process",
    ],
)
def test_a_newer_format_is_refused_whatever_is_done(
    dataset: Dataset, use: Callable[[Repository], object]
) -> None:
    path = Path(dataset.url) / "format.json"
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":2'))
    before = sorted(Path(dataset.url).rglob("*"))
    with pytest.raises(DatasetError, match=r"format.json in .* has format 2.*newer.*upgrade"):
        use(Repository(dataset.url))
    assert sorted(Path(dataset.url).rglob("*")) == before


@pytest.mark.parametrize("data", [None, b"{", b'{"format":"2"}'], ids=["none", "cut", "text"])
def test_a_damaged_format_file_does_not_keep_readers_out(
    dataset: Dataset, data: bytes | None
) -> None:
    path = Path(dataset.url) / "format.json"
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    assert Repository(dataset.url).open().version == 1


# -- hostile sizes


def test_json_that_is_too_large_is_not_read(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = f"_manifests/{dataset.manifest_sha256}.json"
    named = ["_log/00000000000000000001.json", manifest, "_refs/tags/t.json", "_refs/retired.json"]
    hold_version(dataset, author="", reason="r", time_seconds=0)
    monkeypatch.setattr("datapipe.dataset.objects._JSON_AT_FIRST_BYTES", 100)
    monkeypatch.setattr("datapipe.dataset.objects.MOST_JSON_BYTES", 5_000)
    assert Repository(dataset.url).open().version == 1
    for path in [*named, "_refs/holds/00000000000000000001.json"]:
        file = Path(dataset.url) / path
        before = file.read_bytes() if file.exists() else None
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b" " * 5_001)
        with pytest.raises(DamagedError, match=f"{path} in .* has 5,001 bytes.*5,000.*wasn't read"):
            _read_all_json(Repository(dataset.url))
        file.unlink()
        if before is not None:
            file.write_bytes(before)


def _read_all_json(repo: Repository) -> None:
    repo.open()
    read_tag(repo.store, "t")
    list_holds(repo.store)
    read_retired(repo.store)


def test_a_manifest_that_no_reader_would_take_is_not_committed(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datapipe.dataset.commit.MOST_JSON_BYTES", 1_000)
    with pytest.raises(UsageError, match=r"manifest would have .* bytes, 1,000 are allowed"):
        commit_small(repo, small_draft(repo, {"web": [[3]]}))
    assert repo.latest() is None


def test_a_pipe_in_an_objects_place_is_damage(dataset: Dataset) -> None:
    path = Path(dataset.url) / f"_manifests/{dataset.manifest_sha256}.json"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DamagedError, match=r"damaged: _manifests/.* is a pipe.*from a copy"):
        Repository(dataset.url).open()
