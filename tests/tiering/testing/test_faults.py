from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tiering.errors import ObjectExistsError, ObjectNotFoundError, UndecidedError
from tiering.store import LocalFiles, Store, open_store
from tiering.testing import FaultyStore, StoreConformance


class _FaultlessStore:
    """A store whose blocking face goes through a FaultyStore that never fails."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def blocking(self) -> FaultyStore:
        return FaultyStore(self._inner.blocking(), fault=lambda *_: None)


class TestFaultlessStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return _FaultlessStore(open_store(str(tmp_path / "store")))  # type: ignore[return-value]


def faulty(files: LocalFiles, applied: Literal["before", "after"]) -> FaultyStore:
    def fault(verb: str, path: str) -> Exception | None:
        return UndecidedError(f"{verb} of {path}") if path == "bad" else None

    return FaultyStore(files, fault=fault, applied=applied)


@pytest.mark.parametrize("applied", ["before", "after"])
def test_a_refused_put_was_applied_or_not(
    tmp_path: Path, applied: Literal["before", "after"]
) -> None:
    files = LocalFiles(tmp_path)
    store = faulty(files, applied)
    store.put("good", b"1")
    for _ in range(2):
        with pytest.raises(UndecidedError, match="put of bad"):
            store.put("bad", b"1")
    assert [i.path for i in files.list()] == (["bad", "good"] if applied == "after" else ["good"])
    with pytest.raises(ObjectExistsError, match="good"):
        store.put("good", b"2")


def test_every_verb_can_be_refused(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    store = faulty(files, "before")
    for read in (store.head, store.get, store.open, store.delete, store.list):
        with pytest.raises(UndecidedError, match="of bad"):
            read("bad")
    with pytest.raises(UndecidedError, match="get of bad"):
        store.get_range("bad", 0, 1)
    with pytest.raises(ObjectNotFoundError, match="other"):
        store.get("other")


def test_dropped_conditions_overwrite(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    store = FaultyStore(files, drops_conditions=True)
    store.put("a", b"1")
    store.put("a", b"2")
    store.put("a", b"3", match="no such etag")
    assert files.get("a") == b"3"
