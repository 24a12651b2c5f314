"""A store as a pyarrow filesystem, for readers of Parquet: the only place here with pyarrow.

Read only. Local files are opened here and read by pyarrow itself; other objects are read by ranges
through the store's views, with its retries and credentials.

pyarrow reads ahead on threads of its own. Those that call Python when the interpreter ends would
crash it or wait for ever; so at exit all calls are refused, and those under way are waited for.
Whoever holds Python's lock while waiting for these threads waits for ever: engines that do so on
ending a scan early must not be given this filesystem.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NoReturn

import pyarrow as pa
from pyarrow import fs

from tiering.errors import AccessDeniedError, ObjectNotFoundError, StoreError
from tiering.store.local import LocalFiles
from tiering.store.protocol import BlockingStore, View
from tiering.store.view import ViewFile

__all__ = ["arrow_filesystem"]

_QUIET_SECONDS = 0.1
_PATIENCE_SECONDS = 30.0


def arrow_filesystem(store: BlockingStore) -> fs.PyFileSystem:
    """Returns the objects of a store as files under the same paths.

    Safe to share between threads. Writing, moving and deleting raise AccessDeniedError, errors of
    the store come through as they are.
    """
    _READS.guard_exit()
    return fs.PyFileSystem(_Handler(store))


class _Reads:
    """Calls of pyarrow's threads into Python."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way = 0
        self._last = 0.0
        self._ending = False
        self._guarded = False

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Lets a call through, unless the interpreter ends."""
        with self._lock:
            self._last = time.monotonic()
            if self._ending:
                raise StoreError("the program ends; nothing more is read")
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1
                self._last = time.monotonic()

    def guard_exit(self) -> None:
        """Makes the end of the interpreter wait; exits are handled in the reverse order of this."""
        with self._lock:
            if not self._guarded:
                self._guarded = True
                atexit.register(self._end)

    def _end(self) -> None:
        with self._lock:
            self._ending, self._last = True, time.monotonic()
        limit = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < limit:
            with self._lock:
                if not self._under_way and time.monotonic() - self._last > _QUIET_SECONDS:
                    return
            time.sleep(_QUIET_SECONDS / 10)


_READS = _Reads()


class _CountedView:
    """A view whose reads are counted; only what ViewFile asks of it."""

    def __init__(self, view: View) -> None:
        self._view = view

    @property
    def size(self) -> int:
        return self._view.size

    def read_into(self, buffer: memoryview, offset: int) -> int:
        with _READS.counted():
            return self._view.read_into(buffer, offset)

    def fileno(self) -> int | None:
        return self._view.fileno()

    def close(self) -> None:
        self._view.close()

    def __enter__(self) -> _CountedView:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Handler(fs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """What pyarrow asks of a filesystem, answered by a store."""

    def __init__(self, store: BlockingStore) -> None:
        self._store = store

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Handler) and other._store is self._store

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        """Returns what pyarrow calls it."""
        return "tiering"

    def normalize_path(self, path: str) -> str:
        """Returns the path: an object has one only."""
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        """Returns what the store says of each path."""
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """Returns what lies below a folder. Raises: FileNotFoundError: nothing does."""
        base = selector.base_dir.strip("/")
        prefix = f"{base}/" if base else ""
        found: dict[str, fs.FileInfo] = {}
        for info in self._store.list(prefix):
            names = info.path[len(prefix) :].split("/")
            for depth in range(1, len(names)):
                if depth == 1 or selector.recursive:
                    folder = prefix + "/".join(names[:depth])
                    found.setdefault(folder, fs.FileInfo(folder, fs.FileType.Directory))
            if len(names) == 1 or selector.recursive:
                found[info.path] = _file_info(info.path, info.size)
        if not found and base and not selector.allow_not_found:
            raise ObjectNotFoundError(f"nothing lies below {base}", path=base)
        return list(found.values())

    def open_input_file(self, path: str) -> pa.NativeFile:
        """Opens a file for reading at any place."""
        with _READS.counted():
            if isinstance(self._store, LocalFiles):
                self._store.head(path)  # its errors, and only its own files
                return pa.OSFile(f"{self._store.url}/{path}")
            view = self._store.open(path)
        return pa.PythonFile(ViewFile(_CountedView(view)), mode="r")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """Opens a file for reading from its start."""
        return self.open_input_file(path)

    def _info(self, path: str) -> fs.FileInfo:
        try:
            info = self._store.head(path)
        except ObjectNotFoundError:
            below = next(iter(self._store.list(path.rstrip("/") + "/" if path else "")), None)
            there = fs.FileType.Directory if below is not None else fs.FileType.NotFound
            return fs.FileInfo(path, there)
        return _file_info(path, info.size)

    # -- what writes

    def open_output_stream(self, path: str, metadata: object) -> NoReturn:  # noqa: ARG002
        """Refuses."""
        raise _read_only(path)

    def open_append_stream(self, path: str, metadata: object) -> NoReturn:  # noqa: ARG002
        """Refuses."""
        raise _read_only(path)

    def create_dir(self, path: str, recursive: bool) -> NoReturn:  # noqa: ARG002
        """Refuses."""
        raise _read_only(path)

    def delete_dir(self, path: str) -> NoReturn:
        """Refuses."""
        raise _read_only(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> NoReturn:  # noqa: ARG002
        """Refuses."""
        raise _read_only(path)

    def delete_root_dir_contents(self) -> NoReturn:
        """Refuses."""
        raise _read_only("")

    def delete_file(self, path: str) -> NoReturn:
        """Refuses."""
        raise _read_only(path)

    def move(self, src: str, dest: str) -> NoReturn:  # noqa: ARG002
        """Refuses."""
        raise _read_only(src)

    def copy_file(self, src: str, dest: str) -> NoReturn:  # noqa: ARG002
        """Refuses."""
        raise _read_only(dest)


def _file_info(path: str, size: int) -> fs.FileInfo:
    return fs.FileInfo(path, fs.FileType.File, size=size)


def _read_only(path: str) -> AccessDeniedError:
    return AccessDeniedError(
        f"{path or 'the store'} can't be changed through pyarrow: the filesystem over a store is "
        "read only; nothing was changed; write with the store itself",
        path=path,
    )
