from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from datapipe.dataset import Dataset, Repository, log_entries, sha256_hex
from datapipe.dataset.log import (
    LogEntry,
    decode_entry,
    encode_entry,
    find_latest,
    publish_entry,
    seal_entry,
)
from datapipe.errors import CommitUndecidedError, DamagedError, DatasetError
from tiering.errors import StoreError, UndecidedError
from tiering.store import Mode
from tiering.testing import FaultyStore

ENTRY = LogEntry(
    format=1,
    dataset="d" * 32,
    version=1,
    previous_sha256=None,
    manifest="a" * 64,
    transaction="t-1",
    operation="build",
    author="somebody",
    reason="first build",
    time_seconds=1700000000.5,
    input_roots=({"source": "web", "root": "/data"},),
    entry_sha256="",
)
PATH = "_log/00000000000000000001.json"


def entry(version: int, **changes: object) -> LogEntry:
    return seal_entry(msgspec.structs.replace(ENTRY, version=version, **changes))


def publish(repo: Repository, *versions: int) -> None:
    for version in versions:
        publish_entry(repo.store, entry(version))


def test_the_bytes_of_the_format() -> None:
    assert encode_entry(seal_entry(ENTRY)) == (
        b'{"author":"somebody","dataset":"' + b"d" * 32 + b'",'
        b'"entry_sha256":"41ce4dd2ebe447a9d0af8fa0f7fbfcc16dbce90303597b2011d2ef538a9536a2",'
        b'"format":1,"input_roots":[{"root":"/data","source":"web"}],"manifest":"' + b"a" * 64
        + b'","operation":"build","previous_sha256":null,"reason":"first build",'
        b'"time_seconds":1700000000.5,"transaction":"t-1","version":1}'
    )  # fmt: skip


def test_entry_sha256_is_over_all_other_fields() -> None:
    fields = json.loads(encode_entry(seal_entry(ENTRY)))
    stated = fields.pop("entry_sha256")
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    assert stated == sha256_hex(text.encode())


def test_an_entry_comes_back() -> None:
    sealed = seal_entry(ENTRY)
    assert decode_entry(encode_entry(sealed), path=PATH) == sealed


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (b"somebody", b"somebodx", "entry_sha256 is"),
        (b'"version":1', b'"version":2', "entry_sha256 is"),
        (b'"version":1', b'"version":"1"', "is damaged"),
        (b"}", b"", "isn't what a dataset has there"),
    ],
)
def test_a_changed_entry_is_damage(old: bytes, new: bytes, match: str) -> None:
    data = encode_entry(seal_entry(ENTRY)).replace(old, new)
    with pytest.raises(DamagedError, match=match):
        decode_entry(data, path=PATH)


def test_an_entry_under_another_number_is_damage() -> None:
    with pytest.raises(DamagedError, match="it is the entry of version 1"):
        decode_entry(encode_entry(seal_entry(ENTRY)), path=PATH.replace("1", "2"))


def test_a_newer_format_is_refused() -> None:
    data = encode_entry(entry(1, format=2))
    with pytest.raises(DatasetError, match=r"format 2: it was made by a newer datapipe.*upgrade"):
        decode_entry(data, path=PATH)


def test_a_log_without_entries_has_no_latest(repo: Repository) -> None:
    assert find_latest(repo.store) == 0


@pytest.mark.parametrize("hint", [b"1", b"2", b"3", b"7", b"0", b"", b"x", b"1 2", None])
def test_latest_is_found_whatever_the_hint_says(repo: Repository, hint: bytes | None) -> None:
    publish(repo, 1, 2, 3)
    assert repo.store.get("_log/HINT") == b"3"
    repo.store.delete("_log/HINT")
    if hint is not None:
        repo.store.put("_log/HINT", hint)
    assert find_latest(repo.store) == 3


def test_latest_with_a_hint_does_not_list(repo: Repository) -> None:
    publish(repo, 1, 2, 3)

    def fault(verb: str, _: str) -> Exception | None:
        return StoreError("no listing") if verb == "list" else None

    assert find_latest(FaultyStore(repo.store, fault=fault)) == 3


def test_a_gap_is_damage(repo: Repository) -> None:
    publish(repo, 1, 2, 3)
    repo.store.delete("_log/00000000000000000002.json")
    with pytest.raises(DamagedError, match=r"0002.json is damaged: it is missing, but version 3"):
        log_entries(repo)
    repo.store.delete("_log/HINT")
    with pytest.raises(DamagedError, match="missing"):
        find_latest(repo.store)


def test_entries_are_linked_by_their_hashes(appended: Dataset) -> None:
    first, second = log_entries(appended.repository)
    data = (Path(appended.url) / PATH).read_bytes()
    assert (first.previous_sha256, second.previous_sha256) == (None, sha256_hex(data))
    assert [e.version for e in (first, second)] == [1, 2]
    assert first.dataset == json.loads((Path(appended.url) / "format.json").read_bytes())["id"]


def test_another_writers_entry_stays(repo: Repository) -> None:
    assert publish_entry(repo.store, entry(1, author="ada"))
    assert not publish_entry(repo.store, entry(1, transaction="t-2"))
    assert [e.author for e in log_entries(repo)] == ["ada"]


def test_an_entry_of_the_same_transaction_is_ours(repo: Repository) -> None:
    publish_entry(repo.store, entry(1))
    publish_entry(repo.store, entry(1, time_seconds=1700000009.0))
    assert log_entries(repo) == [entry(1)]


@pytest.mark.parametrize("applied", ["before", "after"])
def test_a_lost_answer_is_asked_for_again(repo: Repository, applied: str) -> None:
    waited: list[float] = []
    losses = iter([UndecidedError("lost"), UndecidedError("lost")])

    def fault(verb: str, path: str) -> Exception | None:
        return next(losses, None) if (verb, path) == ("put", PATH) else None

    store = FaultyStore(repo.store, fault=fault, applied=applied)  # type: ignore[arg-type]
    assert publish_entry(store, entry(1), sleep=waited.append)
    assert log_entries(repo) == [entry(1)]
    assert waited == [0.1, 0.3]


def test_without_any_answer_it_is_undecided(repo: Repository) -> None:
    def fault(verb: str, path: str) -> Exception | None:
        return UndecidedError("lost") if (verb, path) == ("put", PATH) else None

    waited: list[float] = []
    with pytest.raises(CommitUndecidedError, match="the commit is undecided; run `datapipe log`"):
        publish_entry(FaultyStore(repo.store, fault=fault), entry(1), sleep=waited.append)
    assert sum(waited) > 30


def test_an_answer_lost_to_another_writer_is_theirs(repo: Repository) -> None:
    publish_entry(repo.store, entry(1, author="ada"))
    losses = iter([UndecidedError("lost")])

    def fault(verb: str, path: str) -> Exception | None:
        return next(losses, None) if (verb, path) == ("put", PATH) else None

    store = FaultyStore(repo.store, fault=fault)
    assert not publish_entry(store, entry(1, transaction="t-2"), sleep=lambda _: None)


def test_a_hint_that_cannot_be_written_does_not_matter(repo: Repository) -> None:
    def fault(verb: str, path: str) -> Exception | None:
        return StoreError("no") if (verb, path) == ("put", "_log/HINT") else None

    publish_entry(FaultyStore(repo.store, fault=fault), entry(1))
    assert find_latest(repo.store) == 1


def test_foreign_files_beside_the_log_are_not_entries(repo: Repository) -> None:
    publish(repo, 1)
    repo.store.put("_log/00000000000000000009.json.bak", b"", mode=Mode.OVERWRITE)
    repo.store.delete("_log/HINT")
    assert find_latest(repo.store) == 1
