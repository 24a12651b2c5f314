from __future__ import annotations

import traceback

import pytest

from tiering.errors import ObjectNotFoundError, StoreError
from tiering.store import open_store

memory = pytest.importorskip("fsspec.implementations.memory", reason="fsspec isn't installed")

URL = "memory://org:Sesame7@main/x?token=Sesame8"


@pytest.mark.parametrize(
    ("raised", "meant"),
    [(FileNotFoundError, ObjectNotFoundError), (RuntimeError, StoreError)],
)
def test_what_a_file_system_says_holds_no_secret_of_its_url(
    raised: type[Exception], meant: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def info(_: object, path: str) -> None:
        raise raised(f"GET https://host/repos/org/Sesame7/{path}?t=Sesame8 for Sesame8")

    monkeypatch.setattr(memory.MemoryFileSystem, "info", info)
    store = open_store(URL, backend="fsspec", single_writer=True).blocking()
    with pytest.raises(meant) as caught:
        store.get("object")
    assert "Sesame" not in "".join(traceback.format_exception(caught.value))
    assert "memory://main/x" in str(caught.value)


def test_an_address_that_a_file_system_can_not_take_apart_is_no_fault() -> None:
    store = open_store("dir://org:Sesame7@x").blocking()
    with pytest.raises(StoreError, match="dir://x can't be opened") as caught:
        store.get("object")
    assert "Sesame" not in "".join(traceback.format_exception(caught.value))
