"""The folder that an export writes: whole files or none, one writer at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from datapipe.errors import FailedError, SpaceError
from tiering.errors import remedy_of

__all__ = ["holds_bytes", "link_file", "locked_folder", "write_file"]


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Makes a folder and keeps other exports out of it; an OSError becomes the error it means.

    Raises:
        FailedError: another export writes there, or it can't be written.
        SpaceError: the disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _lock(descriptor, folder)
            yield
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        where = f"{error.filename or folder} can't be written: {error.strerror or error}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise SpaceError(
                f"{where}; what is finished stays; free some space and run the same command again"
            ) from error
        raise FailedError(
            f"{where}; nothing half-written is visible; {remedy_of(error, making=True)}"
        ) from error


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise FailedError(
            f"another export is writing to {folder}; nothing was written; wait for it, or name "
            "another folder"
        ) from error
    except OSError:  # a file system without locks
        return


def write_file(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Writes a file durably, under its name only when it is whole. Needs `locked_folder`."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def link_file(path: Path, target: Path) -> None:
    """Makes `path` another name of `target`: a hard link, where that can't be a symbolic one."""
    try:
        os.link(target, path)
    except FileExistsError:
        raise
    except OSError:  # another file system, or somebody else's file
        path.symlink_to(target)


def holds_bytes(path: Path, pieces: Iterable[bytes]) -> bool:
    """Returns whether a file holds these bytes and no others."""
    with path.open("rb") as file:
        return all(file.read(len(piece)) == piece for piece in pieces) and not file.read(1)
