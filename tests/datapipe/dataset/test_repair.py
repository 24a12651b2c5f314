from __future__ import annotations

import random
import shutil
import uuid
from pathlib import Path

import pytest

from datapipe.dataset import (
    Dataset,
    Repository,
    layout,
    open_dataset,
    verify_dataset,
    verify_reference,
)
from datapipe.dataset.verify import Origin
from datapipe.errors import DamagedError, SpaceError, UnknownReferenceError, UsageError
from datapipe.testing import make_dataset
from tiering.errors import NoSpaceError, StoreError
from tiering.store import Mode, open_store
from tiering.testing import FaultyStore, S3Server

UNNAMED = ("format.json", "_log/00000000000000000002.json")
"""What no digest names: the newest entry, and what is there before all entries."""


@pytest.fixture
def copy(appended: Dataset, tmp_path: Path) -> Path:
    """A sound copy of `appended`."""
    return shutil.copytree(appended.url, tmp_path / "copy")


def files(root: Path) -> dict[str, bytes]:
    found = (p for p in root.rglob("*") if p.is_file() and ".tiering" not in p.parts)
    return {str(p.relative_to(root)): p.read_bytes() for p in found}


def damage(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    match rng.randrange(4):
        case 0:
            path.unlink()
            return
        case 1:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        case 2:
            data = data[: rng.randrange(len(data))]
        case 3:
            data += b"more"
    path.write_bytes(data)


def test_every_object_that_a_digest_names_is_restored(appended: Dataset, copy: Path) -> None:
    root, rng = Path(appended.url), random.Random(1)
    sound = files(root)
    named = [path for path in sound if path not in UNNAMED and path != "_log/HINT"]
    assert len(named) > 25
    for path in named:
        damage(root / path, rng)
    dataset, report = verify_reference(appended.url, repair_from=str(copy))
    assert report.problems == []
    assert dataset.version == 2
    assert sorted(item.path for item in report.repaired) == sorted(named)
    assert sum(item.num_bytes for item in report.repaired) == sum(len(sound[p]) for p in named)
    assert files(root) == sound
    assert verify_dataset(appended).problems == []


def test_a_sound_version_is_left_as_it_is(appended: Dataset, copy: Path) -> None:
    shutil.rmtree(copy / "tokens")
    before = {p: p.stat().st_mtime_ns for p in Path(appended.url).rglob("*.bin")}
    _, report = verify_reference(appended.url, repair_from=str(copy))
    assert (report.problems, report.repaired) == ([], [])
    assert {p: p.stat().st_mtime_ns for p in Path(appended.url).rglob("*.bin")} == before


def test_an_older_version_is_repaired_by_number(appended: Dataset, copy: Path) -> None:
    for name in ("_manifests", "_log/00000000000000000001.json"):
        path = Path(appended.url) / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    dataset, report = verify_reference(f"{appended.url}@1", repair_from=str(copy))
    assert (dataset.version, report.problems) == (1, [])
    assert open_dataset(f"{appended.url}@1").manifest_sha256 == dataset.manifest_sha256


def damage_two_shards(dataset: Dataset) -> tuple[str, str]:
    table = dataset.shards("web")
    first, second = (layout.tokens_path(table.stored_sha256[n]) for n in (0, 1))
    for path in (first, second):
        (Path(dataset.url) / path).write_bytes(bytes(14))
    return first, second


@pytest.mark.parametrize(
    ("there", "expected"),
    [(None, "; not repaired: "), (bytes(14), "has it damaged too: SHA-256 "), (b"", "damaged too")],
    ids=["missing", "damaged", "empty"],
)
def test_what_the_copy_lacks_too_is_listed_and_the_rest_repaired(
    appended: Dataset, copy: Path, there: bytes | None, expected: str
) -> None:
    first, second = damage_two_shards(appended)
    (copy / first).unlink() if there is None else (copy / first).write_bytes(there)
    _, report = verify_reference(appended.url, repair_from=str(copy))
    assert [item.path for item in report.repaired] == [second]
    (problem,) = report.problems
    assert problem.startswith(first)
    assert expected in problem
    assert (Path(appended.url) / first).read_bytes() == bytes(14)


@pytest.mark.parametrize("path", UNNAMED)
def test_what_no_digest_names_is_not_taken_from_a_copy(
    appended: Dataset, copy: Path, path: str
) -> None:
    (Path(appended.url) / path).unlink()
    try:
        said = " ".join(verify_reference(appended.url, repair_from=str(copy))[1].problems)
    except DamagedError as error:
        said = str(error)
    assert path in said or "_log/HINT: it names version 2, the log ends at 1" in said
    assert not (Path(appended.url) / path).exists()


def test_the_copy_may_be_nothing_but_objects(appended: Dataset, copy: Path) -> None:
    for name in ("format.json", "_log", "_manifests", "tokenizer"):
        path = copy / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    damage_two_shards(appended)
    _, report = verify_reference(appended.url, repair_from=str(copy))
    assert (len(report.repaired), report.problems) == (2, [])


def test_another_dataset_is_no_copy(appended: Dataset, tmp_path: Path) -> None:
    first, _ = damage_two_shards(appended)
    other = make_dataset(tmp_path / "other", {"web": [[[1, 0]]]})
    _, report = verify_reference(appended.url, repair_from=other.url)
    assert len(report.problems) == 2
    assert report.problems[0].startswith(first)


@pytest.mark.parametrize(
    ("origin", "error", "expected"),
    [
        ("{dataset}", UsageError, "is the dataset itself"),
        ("nonsense://x", UnknownReferenceError, "nonsense"),
    ],
)
def test_origins_that_can_not_be(
    appended: Dataset, origin: str, error: type[Exception], expected: str
) -> None:
    with pytest.raises(error, match=expected):
        verify_reference(appended.url, repair_from=origin.format(dataset=appended.url))


def test_a_full_disk_ends_the_repair_and_leaves_the_object(appended: Dataset, copy: Path) -> None:
    def fault(verb: str, path: str) -> Exception | None:
        return NoSpaceError(f"no space for {path}") if verb == "put" else None

    first, _ = damage_two_shards(appended)
    store = FaultyStore(appended.repository.store, fault=fault)
    origin = Origin.at(str(copy), dataset=appended.url)
    with pytest.raises(SpaceError, match="no space left"):
        verify_dataset(Repository.over(store).open(), origin=origin)
    assert (Path(appended.url) / first).read_bytes() == bytes(14)


def test_an_object_that_breaks_again_is_not_called_repaired(appended: Dataset, copy: Path) -> None:
    def fault(verb: str, path: str) -> Exception | None:
        return StoreError("broken disk") if verb == "open" and path == first else None

    first, _ = damage_two_shards(appended)
    store = FaultyStore(appended.repository.store, fault=fault)
    origin = Origin.at(str(copy), dataset=appended.url)
    (problem,) = verify_dataset(Repository.over(store).open(), origin=origin).problems
    assert "broken disk" in problem
    assert problem.endswith("although it was just fetched from the copy")


@pytest.mark.s3
def test_a_bucket_repairs_a_folder_and_a_folder_a_bucket(
    appended: Dataset, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    url = f"s3://bucket/{uuid.uuid4().hex}"
    bucket = open_store(url).blocking()
    for path, data in files(Path(appended.url)).items():
        bucket.put(path, data)
    first, second = damage_two_shards(appended)
    _, report = verify_reference(appended.url, repair_from=url)
    assert [item.path for item in report.repaired] == [first, second]
    bucket.delete(first)
    bucket.put(second, bytes(14), mode=Mode.OVERWRITE)
    _, report = verify_reference(url, repair_from=appended.url)
    assert [item.path for item in report.repaired] == [first, second]
    assert verify_dataset(open_dataset(url)).problems == []


# -- without another copy


def test_all_damage_that_hinders_opening_is_named(appended: Dataset) -> None:
    manifest = layout.manifest_path(appended.manifest_sha256)
    (Path(appended.url) / manifest).write_bytes(b"{}")
    (Path(appended.url) / layout.entry_path(1)).unlink()
    with pytest.raises(DamagedError, match="can't be opened: ") as raised:
        verify_reference(appended.url)
    assert f"{manifest}: SHA-256 " in str(raised.value)
    assert f"{layout.entry_path(1)}: it is missing" in str(raised.value)
    assert "--repair-from COPY` to fetch" in str(raised.value)


def test_a_lost_log_is_damage_and_no_empty_dataset(appended: Dataset) -> None:
    for version in (1, 2):
        (Path(appended.url) / layout.entry_path(version)).unlink()
    with pytest.raises(DamagedError, match="_log/HINT names version 2"):
        verify_reference(appended.url)
