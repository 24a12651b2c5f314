"""Any file system that fsspec knows, as the client of a store.

Only S3 by s3fs has conditions that hold between processes. For the others creates and swaps are
serialised inside this process and nowhere else, so they need `single_writer=True`, or the place in
DATAPIPE_SINGLE_WRITER: the promise that no other process writes there. Overwrites are as atomic as
the file system makes them.
"""

from __future__ import annotations

import asyncio
import builtins
import importlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime
from typing import Any

from tiering.checksums import Buffer
from tiering.errors import StoreError, StoreURLError
from tiering.printable import printable_reason, printable_url
from tiering.store.client import Body
from tiering.store.failures import Failure, FailureKind, kind_of_answer
from tiering.store.options import Transfer
from tiering.store.protocol import Mode, ObjectInfo

__all__ = ["FsspecClient", "is_known", "open_fsspec"]

SINGLE_WRITER = "DATAPIPE_SINGLE_WRITER"
"""Environment: URLs, separated by spaces, below which only one process writes at a time."""

_PIECE_BYTES = 4 << 20
_LISTED_AT_ONCE = 1000
_DIGESTS = ("ETag", "etag", "md5")
_CHANGES = ("created", "mtime", "LastModified", "modified")
_TIMES = ("LastModified", "mtime", "modified", "created")
_S3 = ("s3", "s3a")
_UNOPENED = (ImportError, ValueError, TypeError, OSError, AttributeError, LookupError)
"""What file systems were seen to raise about an address that they can't take apart."""


class _ChangedError(Exception):
    """The object has another etag than the one asked for."""


def is_known(scheme: str) -> bool:
    """Returns whether fsspec is installed and has a file system for a scheme."""
    try:
        return scheme in importlib.import_module("fsspec").available_protocols()
    except ImportError:
        return False


def open_fsspec(address: str, options: Mapping[str, Any], *, transfer: Transfer) -> FsspecClient:
    """Returns a client for any URL that fsspec knows.

    Raises:
        StoreURLError: the file system can't be made.
    """
    keywords = dict(options)
    single_writer = bool(keywords.pop("single_writer", _is_promised(address, os.environ)))
    try:
        core = importlib.import_module("fsspec.core")
        files, root = core.url_to_fs(address, **keywords)
    except _UNOPENED as error:
        problem = printable_reason(str(error), url=address)
    else:
        return FsspecClient(
            files, root.rstrip("/"), transfer=transfer, single_writer=single_writer,
            address=address,
        )  # fmt: skip
    raise StoreURLError(
        f"the store {printable_url(address)} can't be opened: {problem}; nothing was read or "
        "written; check the URL and the options, and which package it needs"
    )


def _is_promised(address: str, environment: Mapping[str, str]) -> bool:
    """Returns whether an address is one of those in DATAPIPE_SINGLE_WRITER, or below one."""
    named = environment.get(SINGLE_WRITER, "").split()
    places = [printable_url(place).rstrip("/") for place in named]
    return any(f"{printable_url(address)}/".startswith(f"{place}/") for place in places)


class FsspecClient:
    """Requests to one file system of fsspec, each in a thread; belongs to one process."""

    def __init__(
        self, files: Any, root: str, *, transfer: Transfer, single_writer: bool, address: str
    ) -> None:
        self._files = files
        self._root = root
        self._transfer = transfer
        self._single_writer = single_writer
        self._address = address
        self._url = printable_url(address)
        self._lock = threading.Lock()
        protocols = {files.protocol} if isinstance(files.protocol, str) else {*files.protocol}
        self._is_s3 = not protocols.isdisjoint(_S3)
        if self._is_s3:
            files.retries = 1  # a retry below us would hide that the first one was carried out

    @property
    def lists_in_order(self) -> bool:
        """Whether listings come ascending by whole path: a listing is sorted whole."""
        return True

    async def head(self, path: str) -> ObjectInfo:
        """See `Client.head`."""
        return await asyncio.to_thread(self._info, path)

    async def read(
        self, path: str, *, start: int, stop: int | None, etag: str | None, resumed: bool
    ) -> Body:
        """See `Client.read`."""
        del resumed  # pieces are requests of their own
        info = await self.head(path)
        if etag is not None and info.etag != etag:
            raise _ChangedError(f"it has etag {info.etag}, expected {etag}")
        return Body(info, self._pieces(path, start, info.size if stop is None else stop, info))

    async def put(self, path: str, data: memoryview, *, mode: Mode, match: str | None) -> str:
        """See `Client.put`."""
        if mode is Mode.OVERWRITE and match is None:
            return await asyncio.to_thread(self._overwrite, path, data)
        if self._is_s3:
            condition = {"IfMatch": match} if match is not None else {"mode": "create"}
            return await asyncio.to_thread(self._conditional, path, data, condition)
        if not self._single_writer:
            raise StoreError(
                f"{self._url} can't create or swap an object without a race between processes; "
                f"{path} wasn't written; if no other process writes there, promise it by "
                f"{SINGLE_WRITER}={self._url} in the environment or single_writer=True, else use "
                "another store",
                path=path,
            )
        return await asyncio.to_thread(self._alone, path, data, match)

    async def list(self, prefix: str, *, after: str) -> AsyncIterator[builtins.list[ObjectInfo]]:
        """See `Client.list`."""
        found = await asyncio.to_thread(self._find, prefix.rpartition("/")[0])
        wanted = [info for info in found if info.path.startswith(prefix) and info.path > after]
        for start in range(0, len(wanted), _LISTED_AT_ONCE):
            yield wanted[start : start + _LISTED_AT_ONCE]

    async def delete(self, path: str) -> None:
        """See `Client.delete`."""
        await asyncio.to_thread(self._delete, path)

    def renew(self) -> None:
        """See `Client.renew`; file systems renew their credentials themselves."""

    def explain(self, error: Exception) -> Failure:
        """See `Client.explain`."""
        detail = printable_reason(f"{type(error).__name__}: {error}", url=self._address)
        reason = detail.split("\n", 1)[0][:300]
        status, code = _answer(error)
        if status and not isinstance(error, _ChangedError | FileExistsError):
            return Failure(kind_of_answer(status, code), f"{status} {code}", detail)
        for types, kind in _KINDS:
            if isinstance(error, types):
                return Failure(kind, reason, detail)
        for word, kind in _WORDS.items():
            if word in str(error):
                return Failure(kind, reason, detail)
        return Failure(FailureKind.OTHER, reason, detail)

    # -- in threads

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _info(self, path: str) -> ObjectInfo:
        self._files.invalidate_cache()
        found = self._files.info(self._full(path))
        if found["type"] != "file":
            raise FileNotFoundError(path)
        return _object_info(found, path)

    async def _pieces(
        self, path: str, start: int, stop: int, info: ObjectInfo
    ) -> AsyncIterator[Buffer]:
        stop = min(stop, info.size)
        for at in range(start, stop, _PIECE_BYTES):
            end = min(at + _PIECE_BYTES, stop)
            read = asyncio.to_thread(self._files.cat_file, self._full(path), start=at, end=end)
            yield await asyncio.wait_for(read, self._transfer.stall_seconds)
        if stop - start > _PIECE_BYTES and (await self.head(path)).etag != info.etag:
            raise _ChangedError("it was overwritten while it was read")

    def _overwrite(self, path: str, data: memoryview) -> str:
        full, value = self._full(path), bytes(data)
        try:
            self._files.pipe_file(full, value)
        except FileNotFoundError:
            self._files.makedirs(full.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(full, value)
        return self._info(path).etag

    def _conditional(self, path: str, data: memoryview, condition: Mapping[str, str]) -> str:
        try:
            answer = self._files.pipe_file(self._full(path), bytes(data), **condition)
        except OSError as error:
            status, _ = _answer(error)
            if status not in (404, 412):
                raise
            if "IfMatch" in condition:
                raise _ChangedError(f"its etag isn't {condition['IfMatch']}") from error
            raise FileExistsError(path) from error
        return str(answer["ETag"]) if isinstance(answer, Mapping) and "ETag" in answer else ""

    def _alone(self, path: str, data: memoryview, match: str | None) -> str:
        """Checks and writes; the lock stands between this process's threads only."""
        with self._lock:
            try:
                current = self._info(path).etag
            except FileNotFoundError:
                current = None
            if match is None and current is not None:
                raise FileExistsError(path)
            if match is not None and current != match:
                raise _ChangedError(f"{path} has etag {current}, expected {match}")
            return self._overwrite(path, data)

    def _find(self, folder: str) -> builtins.list[ObjectInfo]:
        self._files.invalidate_cache()
        top = f"{self._root}/{folder}".rstrip("/")
        try:
            found = self._files.find(top, detail=True)
        except FileNotFoundError:
            return []
        start = self._root + "/"
        infos = [
            _object_info(info, name.removeprefix(start))
            for name, info in found.items()
            if name.startswith(top + "/") and info["type"] == "file"
        ]
        return sorted(infos, key=lambda info: info.path)

    def _delete(self, path: str) -> None:
        try:
            self._info(path)
            self._files.rm_file(self._full(path))
        except FileNotFoundError:
            return


_KINDS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], FailureKind], ...] = (
    (_ChangedError, FailureKind.CHANGED),
    (FileNotFoundError, FailureKind.NOT_FOUND),
    (FileExistsError, FailureKind.EXISTS),
    (PermissionError, FailureKind.DENIED),
    (TimeoutError, FailureKind.TIMED_OUT),
    (ConnectionRefusedError, FailureKind.UNREACHABLE),
    (ConnectionError, FailureKind.INTERRUPTED),
)
_WORDS = {
    "Could not connect": FailureKind.UNREACHABLE,
    "Connect timeout": FailureKind.UNREACHABLE,
    "Connection": FailureKind.INTERRUPTED,
    "timeout": FailureKind.TIMED_OUT,
}


def _answer(error: BaseException) -> tuple[int, str]:
    """Returns the HTTP status and code of the AWS answer behind an error, (0, "") without one."""
    for found in (error, error.__cause__):
        response = getattr(found, "response", None)
        if isinstance(response, dict):
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            return int(status), str(response.get("Error", {}).get("Code", ""))
    return 0, ""


def _object_info(found: Mapping[str, Any], path: str) -> ObjectInfo:
    digest = next((str(found[name]) for name in _DIGESTS if found.get(name)), "")
    changed = next((_seconds(found[name]) for name in _CHANGES if found.get(name)), 0.0)
    size = int(found["size"] or 0)
    return ObjectInfo(
        path=path,
        size=size,
        etag=digest or f"{changed!r}-{size}",
        modified_seconds=next((_seconds(found[name]) for name in _TIMES if found.get(name)), 0.0),
    )


def _seconds(value: object) -> float:
    convert: dict[type, Callable[[Any], float]] = {
        float: float,
        int: float,
        datetime: datetime.timestamp,
        str: lambda text: datetime.fromisoformat(text).timestamp(),
    }
    known = next((convert[kind] for kind in convert if isinstance(value, kind)), None)
    return known(value) if known else 0.0
