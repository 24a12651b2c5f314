"""Remote stores in other processes: forked, spawned, pickled; and what never leaves this one."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import traceback
import uuid
from pathlib import Path
from typing import Any

import pytest

from tiering.errors import AccessDeniedError, StoreError
from tiering.store import BlockingStore, open_store
from tiering.testing import S3Server

CANARY = "canary0secret0canary0secret0canary0secret"


@pytest.fixture
def store(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> BlockingStore:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return open_store(f"s3://bucket/{uuid.uuid4().hex}").blocking()


def in_a_fork(work: Any, depth: int = 1) -> None:
    """Runs `work` in a child, or a child's child; fails when it does or takes 20 s."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            work()
            if depth > 1:
                in_a_fork(work, depth - 1)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert status == 0


@pytest.mark.s3
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forking with threads
def test_a_forked_child_reads_on(store: BlockingStore) -> None:
    store.put("object", b"0123456789")
    view = store.open("object")

    def work() -> None:
        target = bytearray(4)
        assert view.read_into(memoryview(target), 3) == 4
        assert target == b"3456"
        assert store.get("object") == b"0123456789"
        with pytest.raises(FileNotFoundError):
            store.get("none")
        store.put(f"by/{os.getpid()}", b"1")

    in_a_fork(work, depth=3)
    work()
    assert len(list(store.list("by/"))) == 4


@pytest.mark.s3
def test_a_spawned_process_gets_the_store_pickled(store: BlockingStore) -> None:
    store.put("object", b"0123456789")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(store.get, ("object",)) == b"0123456789"


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forking with threads
def test_memory_stays_with_its_process() -> None:
    pytest.importorskip("obstore", reason="obstore isn't installed")
    store = open_store(f"memory://{uuid.uuid4().hex}").blocking()
    store.put("object", b"1")

    def work() -> None:
        with pytest.raises(StoreError, match="in the memory of process"):
            store.get("object")

    in_a_fork(work)


FORKED_AFTER_FOREIGN_USE = """
import os, signal, sys
import obstore, obstore.store
from tiering.store import open_store
obstore.put(obstore.store.MemoryStore(), "a", b"1")  # its threads run now
pid = os.fork()
if pid == 0:
    signal.alarm(20)
    open_store("memory://x").blocking().put("a", b"1")
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_forked_child_is_safe_from_what_others_did_with_the_library() -> None:
    pytest.importorskip("obstore", reason="obstore isn't installed")
    code = [sys.executable, "-W", "ignore", "-c", FORKED_AFTER_FOREIGN_USE]
    assert subprocess.run(code, check=False, cwd=Path(__file__).parents[3]).returncode == 0


# -- secrets


@pytest.mark.s3
def test_a_secret_is_in_no_error_no_repr_and_no_pickle(s3_server: S3Server) -> None:
    store = open_store(
        "s3://bucket/x",
        endpoint_url=s3_server.url,
        access_key_id="test",
        secret_access_key=CANARY,
        session_token=CANARY,
    )
    with pytest.raises(AccessDeniedError, match="403") as caught:
        store.blocking().get("object")
    shown = "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is caught.value.__cause__ or caught.value.__context__ is None
    with pytest.raises(TypeError, match="secret_access_key, session_token and isn't pickled"):
        pickle.dumps(store.blocking())
    opener = store.blocking()._opener  # type: ignore[attr-defined]
    for text in (shown, repr(store), repr(store.blocking()), repr(opener), store.url):
        assert CANARY not in text


@pytest.mark.parametrize(
    "url",
    [
        f"s3://key:{CANARY}@bucket/x",
        f"s3://bucket/x?X-Amz-Signature={CANARY}",
        f"az://container/x?sig={CANARY}",
        f"nothing://{CANARY}@host/x",
        f"file:///x?{CANARY}",
    ],
)
def test_a_secret_in_a_refused_url_is_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="nothing was opened") as caught:
        open_store(url)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_a_url_with_a_password_prints_without_it() -> None:
    pytest.importorskip("fsspec", reason="fsspec isn't installed")
    store = open_store(f"ftp://user:{CANARY}@127.0.0.1:9/data")
    assert store.url == "ftp://127.0.0.1:9/data"
    with pytest.raises(StoreError, match=r"ftp://127.0.0.1:9/data") as caught:
        store.blocking().get("object")
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(TypeError, match="user info"):
        pickle.dumps(store)


# -- weight

LIGHT = """
import sys, tiering.store
tiering.store.open_store("s3://bucket/prefix")
heavy = ("obstore", "fsspec", "s3fs", "botocore", "aiohttp", "numpy")
print([name for name in heavy if name in sys.modules])
"""


def test_importing_and_opening_load_no_library() -> None:
    pytest.importorskip("obstore", reason="obstore isn't installed")
    run = subprocess.run(
        [sys.executable, "-c", LIGHT],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert run.stdout.strip() in ("[]", "['numpy']")
