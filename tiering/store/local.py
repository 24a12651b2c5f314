"""A folder as a store: durable writes, exclusive creates and compare-and-swap on a local disk.

A write goes to a temporary file, is fsynced, gets its name by `link` (create) or `rename`
(overwrite), and the folder is fsynced; killed anywhere it leaves the old object or the new one.
Overwrites, swaps and deletes are serialised by a flock, so they exclude each other over processes
and threads; creates need none, because `link` is exclusive by itself. One `LocalFiles` may be
shared by threads, pickled, and used after a fork.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import fcntl
import io
import os
import stat
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tiering.checksums import Buffer
from tiering.errors import (
    AccessDeniedError,
    NoSpaceError,
    NotAFileError,
    ObjectExistsError,
    ObjectNotFoundError,
    PreconditionError,
    StoreError,
    remedy_of,
)
from tiering.store.paths import RESERVED, check_path, check_prefix
from tiering.store.protocol import Mode, ObjectInfo
from tiering.store.view import LocalView

__all__ = ["LocalFiles"]

ABANDONED_SECONDS = 3600.0
"""An unfinished write that nobody holds any more is removed when it is older than this."""

_LINK_ATTEMPTS = 100  # each one loses only to a delete of the folder's last object

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
_CHANGES = frozenset({"writing", "deleting"})


class LocalFiles:
    """The verbs of a store on a folder; the folder need not exist before the first write."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(os.path.abspath(root))  # noqa: PTH100 (resolve() would follow links)
        self._swept = False

    @property
    def url(self) -> str:
        """The folder's absolute path."""
        return str(self._root)

    def head(self, path: str) -> ObjectInfo:
        """Returns size and etag. Raises: ObjectNotFoundError."""
        with _meaning(path, "looking up"):
            status = self._file(path).stat()
            _require_regular(path, status)
            return _info(path, status)

    def get(self, path: str) -> bytes:
        """Returns the whole object. Raises: ObjectNotFoundError."""
        with _meaning(path, "reading"), io.FileIO(self._descriptor(path), "rb") as file:
            return file.readall()

    def get_range(self, path: str, offset: int, length: int) -> bytes:
        """Returns `length` bytes from `offset` on, fewer only at the object's end."""
        return self.get_ranges(path, [(offset, length)])[0]

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> builtins.list[bytes]:
        """Returns each (offset, length) in the order asked."""
        for offset, length in ranges:
            if offset < 0 or length < 0:
                raise ValueError(f"range ({offset}, {length}) of {path} is negative")
        with self.open(path) as view:
            return [_read_range(view, offset, length) for offset, length in ranges]

    def open(self, path: str) -> LocalView:
        """Opens an object for many ranged reads. Raises: ObjectNotFoundError."""
        with _meaning(path, "opening"):
            descriptor = self._descriptor(path)
            return LocalView(descriptor, size=os.fstat(descriptor).st_size, path=path)

    def put(
        self, path: str, data: Buffer, *, mode: Mode = Mode.CREATE, match: str | None = None
    ) -> ObjectInfo:
        """Writes an object whole and durably, or not at all; see `BlockingStore.put`."""
        target = self._file(path)
        with _meaning(path, "writing"):
            if match is None and mode is Mode.CREATE and _lexists(target):
                _sync_folder(target.parent)  # a writer that was killed may not have got so far
                raise _exists(path)
            self._sweep_once()
            with self._unfinished(data) as unfinished:
                if match is None and mode is Mode.CREATE:
                    return self._create(path, unfinished)
                return self._replace(path, unfinished, match=match)

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[ObjectInfo]:
        """Yields objects whose path starts with `prefix`, ascending by path, behind `after`."""
        folder = check_prefix(prefix).rpartition("/")[0]
        return self._walk(folder, prefix=prefix, after=after)

    def delete(self, path: str) -> None:
        """Removes an object; one that isn't there is no error."""
        target = self._file(path)
        with _meaning(path, "deleting"):
            if not _lexists(target) or target.is_dir():
                return
            self._unlink([target])

    def delete_many(self, paths: Iterable[str]) -> None:
        """Removes objects with one fsync a folder; see `BlockingStore.delete_many`."""
        targets = [self._file(path) for path in paths]
        with _meaning("", "deleting"):
            there = [target for target in targets if _lexists(target) and not target.is_dir()]
            if there:
                self._unlink(there)

    # -- paths and descriptors

    def _file(self, path: str) -> Path:
        return self._root / check_path(path)

    def _descriptor(self, path: str) -> int:
        # Without O_NONBLOCK a pipe would wait for its writer, before it is seen to be one.
        descriptor = os.open(self._file(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            _require_regular(path, os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    # -- writing

    def _create(self, path: str, unfinished: Path) -> ObjectInfo:
        target = self._file(path)
        try:
            self._link(unfinished, target)
        except FileExistsError as error:
            _sync_folder(target.parent)
            raise _exists(path) from error
        _sync_folder(target.parent)
        return _info(path, unfinished.stat())

    def _link(self, unfinished: Path, target: Path) -> None:
        """Gives a file its name; its folder may be removed as empty by a deleter in between."""
        for attempt in range(_LINK_ATTEMPTS):
            try:
                self._make_folder(target.parent)
                os.link(unfinished, target)
                return
            except FileNotFoundError:
                if attempt == _LINK_ATTEMPTS - 1 or not unfinished.exists():
                    raise

    def _replace(self, path: str, unfinished: Path, *, match: str | None) -> ObjectInfo:
        target = self._file(path)
        with self._lock():
            self._make_folder(target.parent)
            current = _info(path, target.stat()) if _lexists(target) else None
            if match is not None and (current is None or current.etag != match):
                raise _changed(path, match=match, current=current)
            if current is not None:
                _make_newer(unfinished, than=current)
            info = _info(path, unfinished.stat())
            unfinished.rename(target)
            _sync_folder(target.parent)
        return info

    def _unlink(self, targets: Sequence[Path]) -> None:
        """Removes files and the folders that hold nothing any more; what is left is synced."""
        with self._lock():
            for target in targets:
                target.unlink(missing_ok=True)
            folders = {target.parent for target in targets}
            left = {self._remove_empty(folder) for folder in folders}
            for folder in sorted(left):
                if folder.is_dir():  # else it went after another of its folders
                    _sync_folder(folder)

    @contextlib.contextmanager
    def _unfinished(self, data: Buffer) -> Iterator[Path]:
        """Yields a durable temporary file with the data, locked as long as its writer lives."""
        unfinished = self._private("unfinished") / uuid.uuid4().hex
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(unfinished, flags, 0o666)
        try:
            with contextlib.suppress(OSError):  # no locks on this file system: age decides alone
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            _write_all(descriptor, data)
            # Kernels stamp files in steps of milliseconds, too coarse for an etag.
            os.utime(descriptor, ns=(time.time_ns(), time.time_ns()))
            os.fsync(descriptor)
            yield unfinished
        finally:
            os.close(descriptor)
            unfinished.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        descriptor = os.open(
            self._private("") / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666
        )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _private(self, name: str) -> Path:
        folder = self._root / RESERVED / name
        self._make_folder(folder)
        return folder

    def _make_folder(self, folder: Path) -> None:
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for new in reversed(missing):
            new.mkdir(exist_ok=True)
            _sync_folder(new.parent)

    def _remove_empty(self, folder: Path) -> Path:
        """Removes folders that hold nothing any more, up to the root; returns what stays."""
        while folder != self._root:
            try:
                folder.rmdir()
            except FileNotFoundError:
                pass  # it went with another of its folders
            except OSError:
                return folder
            folder = folder.parent
        return folder

    def _sweep_once(self) -> None:
        """Removes what killed writers left; what a living one writes is locked and stays."""
        if self._swept:
            return
        self._swept = True
        oldest = time.time() - ABANDONED_SECONDS
        for unfinished in self._private("unfinished").iterdir():
            with contextlib.suppress(OSError):
                if unfinished.stat().st_mtime < oldest and _is_abandoned(unfinished):
                    unfinished.unlink()

    # -- listing

    def _walk(self, folder: str, *, prefix: str, after: str) -> Iterator[ObjectInfo]:
        with _meaning(folder, "listing"):
            names = _entries(self._root / folder)
        for name, is_folder in names:
            path = f"{folder}/{name}" if folder else name
            if is_folder:
                if _may_hold(path, prefix=prefix, after=after):
                    yield from self._walk(path.rstrip("/"), prefix=prefix, after=after)
            elif path.startswith(prefix) and path > after:
                with contextlib.suppress(ObjectNotFoundError):  # deleted meanwhile
                    yield self.head(path)


def _entries(folder: Path) -> builtins.list[tuple[str, bool]]:
    """Returns (name, is a folder), ascending as full paths are: a folder's name ends in `/`."""
    try:
        with os.scandir(folder) as found:
            entries = [_entry(entry) for entry in found if _is_listed(entry)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(entries)


def _entry(entry: os.DirEntry[str]) -> tuple[str, bool]:
    is_folder = entry.is_dir(follow_symlinks=False)
    return (entry.name + "/" if is_folder else entry.name), is_folder


def _is_listed(entry: os.DirEntry[str]) -> bool:
    if entry.name == RESERVED or any("\ud800" <= c <= "\udfff" for c in entry.name):
        return False
    return entry.is_dir(follow_symlinks=False) or entry.is_file()


def _may_hold(folder: str, *, prefix: str, after: str) -> bool:
    matches = folder.startswith(prefix) or prefix.startswith(folder)
    return matches and (folder > after or after.startswith(folder))


def _write_all(descriptor: int, data: Buffer) -> None:
    rest = memoryview(data)
    rest = rest.cast("B") if rest.nbytes else memoryview(b"")
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _read_range(view: LocalView, offset: int, length: int) -> bytes:
    buffer = bytearray(max(0, min(length, view.size - offset)))
    count = view.read_into(memoryview(buffer), offset)
    return bytes(memoryview(buffer)[:count])


def _is_abandoned(unfinished: Path) -> bool:
    descriptor = os.open(unfinished, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _make_newer(unfinished: Path, *, than: ObjectInfo) -> None:
    """Makes sure of another etag even where the clock was set back and an inode is used again."""
    previous = int(than.etag.split("_")[1], 16)
    status = unfinished.stat()
    if status.st_mtime_ns <= previous:
        os.utime(unfinished, ns=(status.st_atime_ns, previous + 1))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lexists(path: Path) -> bool:
    return os.path.lexists(path)


def _require_regular(path: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "a folder is no object")
    if not stat.S_ISREG(status.st_mode):
        raise _not_a_file(path)


def _not_a_file(path: str) -> NotAFileError:
    return NotAFileError(
        f"{path} is a pipe, a socket or a device, not a file; nothing was read from it; remove it, "
        "and restore the object from a copy",
        path=path,
    )


def _info(path: str, status: os.stat_result) -> ObjectInfo:
    etag = f"{status.st_ino:x}_{status.st_mtime_ns:x}_{status.st_size:x}"  # times may be negative
    return ObjectInfo(
        path=path, size=status.st_size, etag=etag, modified_seconds=status.st_mtime_ns / 1e9
    )


def _exists(path: str) -> ObjectExistsError:
    return ObjectExistsError(f"{path} is there already; it was left as it is", path=path)


def _changed(path: str, *, match: str, current: ObjectInfo | None) -> PreconditionError:
    now = f"has etag {current.etag}" if current else "isn't there"
    return PreconditionError(
        f"{path} {now}, expected etag {match}: another writer changed it; nothing was written; "
        "read it again and decide anew",
        path=path,
    )


@contextlib.contextmanager
def _meaning(path: str, doing: str) -> Iterator[None]:
    """Turns an errno into the error of that meaning, naming the object and the file."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise _translated(error, path=path, doing=doing) from error


def _translated(error: OSError, *, path: str, doing: str) -> StoreError:
    what = f"{doing} {path or 'the store'} failed: {error.strerror or error}"
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in _NO_SPACE:
        return NoSpaceError(
            f"{what}{where}; nothing of it is visible; {remedy_of(error)}", path=path
        )
    if error.errno in _DENIED:
        return AccessDeniedError(
            f"{what}{where}; nothing was changed; {remedy_of(error)}", path=path
        )
    if error.errno == errno.ENXIO:  # a socket, or a device without its driver
        return _not_a_file(path)
    if error.errno in _ABSENT and doing not in _CHANGES:
        return ObjectNotFoundError(f"there is no object {path}{where}", path=path)
    changes = doing in _CHANGES
    follows = "nothing half-written is visible" if changes else "nothing was changed"
    return StoreError(f"{what}{where}; {follows}; {remedy_of(error, making=changes)}", path=path)
