"""Opening an input and streaming what it holds, decompressed, in bounded memory.

The one place that opens input files. Damage isn't an exception of the read: every byte before it is
delivered, then `StreamDamage` says what is wrong with the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from datapipe.errors import FailedError
from datapipe.read.compressions import Compression, unpacked
from datapipe.read.gzip_members import MemberGunzip
from datapipe.read.input_file import InputFile
from datapipe.read.objects import store_and_name
from tiering.errors import StoreError
from tiering.store import View, open_store, printable_url

__all__ = [
    "CHUNK_BYTES",
    "input_sha256",
    "open_input",
    "raw_chunks",
    "stream",
]

CHUNK_BYTES = 1 << 18
"""Bytes read at once: below this, calls cost more; above it, nothing is gained."""

REMOTE_CHUNK_BYTES = 8 << 20
"""The same from a store, where a read is a request."""


@contextmanager
def open_input(file: InputFile) -> Iterator[View]:
    """Opens an input for ranged reads.

    Raises:
        FailedError: it can't be opened or read, or isn't the file that was listed any more.
    """
    if file.is_remote:
        with _open_object(file) as view:
            yield view
        return
    path = Path(file.path)
    try:
        with open_store(str(path.parent)).blocking().open(path.name) as view:
            if view.size != file.size_bytes:
                raise FailedError(
                    f"{file.path} had {file.size_bytes:,} bytes when it was listed and has "
                    f"{view.size:,} now; run again once nothing writes to it."
                )
            yield view
            if not file.is_as_listed(path.stat()):
                raise FailedError(
                    f"{file.path} was changed or replaced after it was listed; nothing that was "
                    "read of it is used. Run again once nothing writes to it."
                )
    except (StoreError, OSError) as error:
        raise FailedError(
            f"{file.path} can't be read: {_reason(error)}; nothing was taken from it. Make it "
            "readable or leave it out."
        ) from error


@contextmanager
def _open_object(file: InputFile) -> Iterator[View]:
    """Opens an object of a store; its view reads the version that was listed, or raises."""
    shown = printable_url(file.path)
    try:
        store, name = store_and_name(file.path)
        info = store.head(name)
        if info.size != file.size_bytes or (file.etag and info.etag != file.etag):
            raise FailedError(
                f"{shown} was changed or replaced after it was listed; nothing that was read of it "
                "is used. Run again once nothing writes to it."
            )
        with store.open(name) as view:
            yield view
    except (StoreError, OSError) as error:
        raise FailedError(
            f"{shown} can't be read: {error}; nothing was taken from it. Make it readable or leave "
            "it out."
        ) from error


def raw_chunks(view: View, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yields the bytes as stored, from `start` to `end`, by default the end of the file."""
    offset = start
    end = view.size if end is None else end
    size = CHUNK_BYTES if view.fileno() is not None else REMOTE_CHUNK_BYTES
    while offset < end:
        buffer = bytearray(min(size, end - offset))
        got = view.read_into(memoryview(buffer), offset)
        if got == 0:
            raise OSError(f"the file ends at byte {offset}, {view.size} were expected")
        yield bytes(buffer[:got]) if got < len(buffer) else bytes(buffer)
        offset += got


def stream(
    view: View,
    *,
    compression: Compression,
    trusted: int | None = None,
    begins: bytes | None = None,
) -> Iterator[bytes]:
    """Yields the uncompressed bytes.

    Args:
        view: the file.
        compression: its own.
        trusted: yield so many and none behind, where a damaged stream says so; None: all.
        begins: what each member of a gzip file begins with, if each is a record: then the stream
            goes on behind a damaged one, if `next` is called again; None: it ends there.

    Raises:
        StreamDamage: after the last byte that could be had.
    """
    stored = raw_chunks(view)
    chunks = (
        MemberGunzip(stored, begins=begins)
        if begins is not None and compression == "gzip"
        else unpacked(stored, compression)
    )
    return chunks if trusted is None else _Beginning(chunks, trusted)


class _Beginning:
    """The first `count` bytes of some chunks; reads on behind them, for the damage that comes."""

    def __init__(self, chunks: Iterator[bytes], count: int) -> None:
        self._chunks = chunks
        self._count = count

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        chunk = next(self._chunks)
        while not self._count:
            chunk = next(self._chunks)
        chunk = chunk[: self._count]
        self._count -= len(chunk)
        return chunk


def input_sha256(file: InputFile) -> bytes:
    """Returns the SHA-256 of the file's bytes as stored."""
    digest = hashlib.sha256()
    with open_input(file) as view:
        for chunk in raw_chunks(view):
            digest.update(chunk)
    return digest.digest()


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "it is gone"
    if isinstance(error, PermissionError):
        return "permission denied"
    return error.strerror or str(error)
