from __future__ import annotations

import errno
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tiering.errors import (
    AccessDeniedError,
    NoSpaceError,
    NotAFileError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
    StoreURLError,
)
from tiering.store import LocalFiles, LocalStore, Mode, Store, is_url, open_store
from tiering.testing import StoreConformance


class TestLocalStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return open_store(str(tmp_path / "store"))


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(tmp_path / "store")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs root and the right to mount a tmpfs")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def all_files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.mark.parametrize("form", ["{0}", "file://{0}", "file://localhost{0}", "FILE://{0}"])
def test_urls_of_a_folder_open_it(tmp_path: Path, form: str) -> None:
    assert open_store(form.format(tmp_path)).url == str(tmp_path)


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("s3:/x", "s3://x"),
        ("S3:x/y", "s3://x/y"),
        ("s3:/key:secret@x", "s3://x"),
        ("http:/x", "http://x"),
        ("nosuch:/x", "nosuch://x"),
        ("file:/x/y", "file:///x/y"),
        ("FILE:rel", "rel"),
    ],
)
def test_a_url_with_a_slip_is_no_folder(url: str, meant: str) -> None:
    with pytest.raises(
        StoreURLError, match=rf"did you mean {re.escape(meant)}\?.*with \./"
    ) as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "path", ["./s3:/x", "web:v2", "a/b:/c", "run-12:30", "C:/x", "C:", "x:y/z"]
)
def test_a_colon_may_be_part_of_a_path(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_store(path).url == str(tmp_path / path)


def test_a_file_system_that_makes_nothing_is_said_so() -> None:
    with pytest.raises(StoreError, match=r"/proc/x.*nothing can be made in that folder.*another"):
        LocalFiles("/proc/x").put("a", b"")


def test_file_urls_are_decoded(tmp_path: Path) -> None:
    assert open_store(f"file://{tmp_path}/a%20b%3F").url == f"{tmp_path}/a b?"


def test_relative_paths_are_resolved_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("data/../store")
    monkeypatch.chdir("/")
    assert store.url == str(tmp_path / "store")


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("s3://secret@bucket/x", "s3:// URL has user info"),
        ("s3://bucket/x?secret", "s3:// URL has user info, a port, a query"),
        ("s3://key:secret@bucket/x", "s3:// URL has user info"),
        ("s3://key:a/secret@bucket/x", "s3:// URL has user info, a port"),
        ("s3://", "names no bucket"),
        ("s3:///secret?secret", "s3:// URL has"),
        ("simplecache::s3://key:secret@bucket/x", r"chained URL \(simplecache::...\) is.*alone: a"),
        ("filecache::/data", "chained URL"),
        ("simplecache://key:secret@x", "chained URL"),
        ("my.own::file:///secret/x", "chained URL"),
        ("foo://key:secret@x/y", "start with foo://"),
        ("my_scheme://secret", "start with my_scheme://"),
        ("a b://secret", "start with a b://"),
        ("://secret", "start with ://"),
        ("nothing://bucket", "start with nothing://.*give a local path, file:///path, s3://"),
        ("file://host/x", "host, query or fragment"),
        ("file:///x?y", "host, query or fragment"),
        ("file://", "names no folder"),
        ("", "names no folder"),
        ("a\0b", "names no folder"),
    ],
)
def test_other_urls_are_refused(url: str, match: str) -> None:
    with pytest.raises(StoreURLError, match=match) as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["web::2", "a:b", "./foo:", "web:v2", "x/a:", "./simplecache::x"])
def test_paths_with_colons_are_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not is_url(name)
    assert open_store(name).url == str(tmp_path / name)


def test_opening_creates_nothing(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store")).blocking()
    assert list(store.list()) == []
    store.delete("object")
    with pytest.raises(ObjectNotFoundError, match="object"):
        store.get("object")
    assert list(tmp_path.iterdir()) == []


def test_finished_writes_leave_only_the_object(files: LocalFiles) -> None:
    info = files.put("a/object", b"1")
    files.put("a/object", b"22", mode=Mode.OVERWRITE)
    with pytest.raises(ObjectExistsError, match="a/object"):
        files.put("a/object", b"333")
    with pytest.raises(StoreError, match="etag"):
        files.put("a/object", b"333", match=info.etag)
    assert all_files(Path(files.url)) == [".tiering/lock", "a/object"]


def test_objects_have_the_users_usual_permissions(files: LocalFiles) -> None:
    before = os.umask(0o027)
    try:
        files.put("object", b"1")
    finally:
        os.umask(before)
    assert (Path(files.url) / "object").stat().st_mode & 0o777 == 0o640


def test_reserved_names_are_refused_and_hidden(files: LocalFiles) -> None:
    files.put("below/object", b"1")
    inner = LocalFiles(Path(files.url) / "below")
    inner.put("other", b"1", mode=Mode.OVERWRITE)
    (Path(files.url) / "below/.tiering/unfinished/left").write_bytes(b"half")
    assert [info.path for info in files.list()] == ["below/object", "below/other"]
    with pytest.raises(ValueError, match="reserved"):
        files.get(".tiering/lock")


def test_an_object_below_an_object_is_an_error(files: LocalFiles) -> None:
    files.put("object", b"1")
    with pytest.raises(StoreError, match="writing object/below failed"):
        files.put("object/below", b"1")
    assert all_files(Path(files.url)) == ["object"]


def test_links_to_files_are_listed_and_loops_of_folders_not_followed(files: LocalFiles) -> None:
    files.put("a/object", b"1")
    root = Path(files.url)
    (root / "a/loop").symlink_to(root)
    (root / "a/link").symlink_to(root / "a/object")
    (root / "a/dangling").symlink_to(root / "none")
    os.mkfifo(root / "a/pipe")
    assert [info.path for info in files.list()] == ["a/link", "a/object"]


def test_etags_differ_after_the_clock_was_set_back(files: LocalFiles) -> None:
    first = files.put("object", b"1")
    path = Path(files.url) / "object"
    ahead = time.time_ns() + 3600 * 10**9
    os.utime(path, ns=(ahead, ahead))
    ahead_info = files.head("object")
    second = files.put("object", b"2", mode=Mode.OVERWRITE)
    assert len({first.etag, ahead_info.etag, second.etag}) == 3
    assert second.modified_seconds >= ahead_info.modified_seconds


def test_stores_survive_pickling(files: LocalFiles) -> None:
    files.put("object", b"1")
    copy = pickle.loads(pickle.dumps(files))
    assert (copy.url, copy.get("object")) == (files.url, b"1")


# -- failures


def test_a_full_disk_is_no_space_and_leaves_nothing(small_disk: Path) -> None:
    files = LocalFiles(small_disk / "store")
    with pytest.raises(NoSpaceError, match=r"writing a/big failed: No space.*nothing of it"):
        files.put("a/big", bytes(2 << 20))
    assert all_files(small_disk) == []
    assert files.put("a/small", b"fits").size == 4


def test_a_full_disk_keeps_the_old_object(small_disk: Path) -> None:
    files = LocalFiles(small_disk / "store")
    etag = files.put("object", b"old").etag
    for condition in ({"mode": Mode.OVERWRITE}, {"match": etag}):
        with pytest.raises(NoSpaceError, match="object"):
            files.put("object", bytes(2 << 20), **condition)
    assert files.get("object") == b"old"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.ENOSPC, NoSpaceError),
        (errno.EDQUOT, NoSpaceError),
        (errno.EACCES, AccessDeniedError),
        (errno.EROFS, AccessDeniedError),
        (errno.EIO, StoreError),
    ],
    ids=errno.errorcode.get,
)
def test_errno_becomes_its_meaning(
    files: LocalFiles, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[StoreError]
) -> None:
    def fail(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(kind, match=f"writing object failed: {os.strerror(code)}") as caught:
        files.put("object", b"bytes")
    assert type(caught.value) is kind
    assert caught.value.path == "object"
    assert all_files(Path(files.url)) == []


AS_NOBODY = """
import os, sys
from tiering.errors import AccessDeniedError
from tiering.store import LocalFiles
os.setgid(65534)
os.setuid(65534)
try:
    LocalFiles(sys.argv[1]).put("new", b"1")
except AccessDeniedError as error:
    sys.exit(str(error))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_a_read_only_folder_is_denied() -> None:
    with tempfile.TemporaryDirectory() as folder:  # not tmp_path: only its owner may enter that
        Path(folder).chmod(0o755)
        run = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, folder], capture_output=True, text=True, check=False
        )
    assert "writing new failed: Permission denied" in run.stderr
    assert folder in run.stderr


KILLED = """
import os, signal, sys
from tiering.store import LocalFiles, Mode
point = sys.argv[2]
real = getattr(os, point)
def killed(*args, **kwargs):
    if point != "fsync" and sys.argv[3] == "after":
        real(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)
files = LocalFiles(sys.argv[1])
files.put("folder/first", b"1")
setattr(os, point, killed)
files.put("folder/object", b"bytes", mode=Mode[sys.argv[4]])
"""


@pytest.mark.parametrize("mode", ["CREATE", "OVERWRITE"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", ["write", "fsync", "link", "rename", "utime"])
def test_killed_anywhere_the_object_is_whole_or_absent(
    tmp_path: Path, point: str, when: str, mode: str
) -> None:
    root = tmp_path / "store"
    run = subprocess.run([sys.executable, "-c", KILLED, str(root), point, when, mode], check=False)
    assert run.returncode in (0, -signal.SIGKILL)
    files = LocalFiles(root)
    visible = {info.path: files.get(info.path) for info in files.list()}
    assert visible in ({"folder/first": b"1"}, {"folder/first": b"1", "folder/object": b"bytes"})
    files.put("folder/object", b"bytes", mode=Mode.OVERWRITE)


def test_abandoned_writes_are_swept_and_living_ones_stay(tmp_path: Path) -> None:
    root = tmp_path / "store"
    subprocess.run(
        [sys.executable, "-c", KILLED, str(root), "link", "before", "CREATE"], check=False
    )
    files = LocalFiles(root)
    unfinished = root / ".tiering/unfinished"
    assert len(list(unfinished.iterdir())) == 1
    with files._unfinished(b"living") as living:
        for path in unfinished.iterdir():
            os.utime(path, (0, 0))
        LocalFiles(root).put("object", b"1")
        assert list(unfinished.iterdir()) == [living]
    assert list(unfinished.iterdir()) == []


RACER = """
import sys
from tiering.errors import ObjectExistsError, StoreError
from tiering.store import LocalFiles
root, number = sys.argv[1:]
files = LocalFiles(root)
try:
    files.put("race/object", number.encode())
    files.put("won/" + number, b"")
except ObjectExistsError:
    pass
done = 0
while done < 20:
    etag = files.head("counter").etag
    value = int(files.get("counter"))
    try:
        files.put("counter", b"%d" % (value + 1), match=etag)
        done += 1
    except StoreError:
        pass
"""


def test_processes_exclude_each_other(files: LocalFiles) -> None:
    files.put("counter", b"0")
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, files.url, str(number)])
        for number in range(4)
    ]
    assert [racer.wait() for racer in racers] == [0] * 4
    assert files.get("counter") == b"80"
    winners = [info.path for info in files.list("won/")]
    assert winners == ["won/" + files.get("race/object").decode()]


def test_the_store_is_a_store() -> None:
    store: Store = LocalStore("/nonexistent")
    assert store.url == "/nonexistent"


# -- what is no file


@pytest.mark.parametrize("verb", ["head", "get", "open"])
def test_a_pipe_in_an_objects_place_is_refused_at_once(files: LocalFiles, verb: str) -> None:
    files.put("a/there", b"1")
    os.mkfifo(Path(files.url) / "a/pipe")
    with pytest.raises(NotAFileError, match=r"a/pipe is a pipe.*remove it.*from a copy"):
        getattr(files, verb)("a/pipe")
    assert [info.path for info in files.list()] == ["a/there"]


def test_a_socket_in_an_objects_place_is_refused(files: LocalFiles) -> None:
    files.put("there", b"1")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{files.url}/socket")
        with pytest.raises(NotAFileError, match="socket or a device"):
            files.get("socket")


def test_a_pipe_is_overwritten_and_deleted_as_anything_else(files: LocalFiles) -> None:
    files.put("a", b"1")
    os.mkfifo(Path(files.url) / "pipe")
    files.put("pipe", b"data", mode=Mode.OVERWRITE)
    assert files.get("pipe") == b"data"
    os.mkfifo(Path(files.url) / "other")
    files.delete("other")
    assert not (Path(files.url) / "other").exists()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda folder: (folder / "a").symlink_to("a"), r"reading a failed: .*remove them"),
        (lambda folder: (folder / "a").mkdir(), "there is no object a"),
    ],
    ids=["links in a circle", "folder"],
)
def test_errors_say_what_to_do(files: LocalFiles, make: Callable[[Path], None], match: str) -> None:
    Path(files.url).mkdir()
    make(Path(files.url))
    with pytest.raises(StoreError, match=match):
        files.get("a")


def test_a_file_where_a_folder_must_be_says_what_to_do(files: LocalFiles) -> None:
    files.put("a", b"1")
    with pytest.raises(StoreError, match=r"writing a/b failed.*half-written.*move it away"):
        files.put("a/b", b"1")


# -- deleting many


def test_delete_many_syncs_each_folder_once(
    files: LocalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        files.put(f"stays/{number}", b"1")
        files.put(f"goes/{number % 3}/{number}", b"1")
    synced: list[int] = []
    fsync = os.fsync

    def count(descriptor: int) -> None:
        synced.append(descriptor)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", count)
    files.delete_many([f"goes/{n % 3}/{n}" for n in range(10)] + [f"stays/{n}" for n in range(5)])
    assert len(synced) == 2  # the root, which lost `goes`, and `stays`
    assert len(list(files.list())) == 5
    assert not (Path(files.url) / "goes").exists()


def test_objects_from_before_1970_can_be_replaced(tmp_path: Path) -> None:
    store = open_store(str(tmp_path)).blocking()
    store.put("a", b"one", mode=Mode.OVERWRITE)
    os.utime(tmp_path / "a", ns=(-(10**18), -(10**18)))
    before = store.head("a")
    store.put("a", b"two", mode=Mode.OVERWRITE, match=before.etag)
    assert store.get("a") == b"two"
    assert store.head("a").etag != before.etag
