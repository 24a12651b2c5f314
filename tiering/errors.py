"""Every error that tiering raises on purpose, as one tree.

TieringError
|- StoreError (OSError)                    a store could not do it
|  |- ObjectNotFoundError (FileNotFoundError)
|  |- ObjectExistsError (FileExistsError)  "create only", and the object is there
|  |- PreconditionError                    compare-and-swap: the object has another etag
|  |- NotAFileError                        a pipe or device lies where an object must be
|  |- AccessDeniedError (PermissionError)
|  |- NoSpaceError                         the disk or quota is full
|  |- ThrottledError                       asked to slow down
|  `- UndecidedError (TimeoutError)        no answer: the request may or may not have been applied
|- StoreURLError (ValueError)              not a URL of a store that this installation knows
`- ChecksumError                           bytes aren't what their checksum says
"""

from __future__ import annotations

import errno
from pathlib import Path

__all__ = [
    "AccessDeniedError",
    "ChecksumError",
    "NoSpaceError",
    "NotAFileError",
    "ObjectExistsError",
    "ObjectNotFoundError",
    "PreconditionError",
    "StoreError",
    "StoreURLError",
    "ThrottledError",
    "TieringError",
    "UndecidedError",
    "remedy_of",
]

_DENIED = "check owner, permissions and mount options"
_FULL = "free space or raise the quota"
_NO_FOLDER = "a file lies where a folder must be: move it away"
_REMEDIES = {
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: _DENIED,
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EIO: "the disk can't be read or written there: look at the system's log, and use a copy",
    errno.ELOOP: "links point at each other there: remove them",
    errno.EMFILE: "too many files are open: raise the limit (`ulimit -n`)",
    errno.ENFILE: "too many files are open on this machine: end other programs",
    errno.ENAMETOOLONG: "the file system takes no such long names: use a shorter path",
    errno.EEXIST: _NO_FOLDER,
    errno.ENOTDIR: _NO_FOLDER,
    errno.ENOLCK: "the file system gives no locks: mount it with them, or use another folder",
    errno.ESTALE: "the network file system lost the file: mount it again",
}
_REMOVED = "the folder was removed meanwhile: run the same command again"
_NOTHING_NEW = "nothing can be made in that folder, as in /proc: use another"
_ANY_REMEDY = "look at the folder and its disk, then run the same command again"


class TieringError(Exception):
    """Root of all errors that tiering raises on purpose."""


class StoreError(TieringError, OSError):
    """A store could not do what was asked; `path` is the object's path."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path

    def __str__(self) -> str:
        return str(self.args[0])


class ObjectNotFoundError(StoreError, FileNotFoundError):
    """No object has this path."""


class ObjectExistsError(StoreError, FileExistsError):
    """The object was to be created, and is there already."""


class PreconditionError(StoreError):
    """The object has another etag than the one to be replaced."""


class NotAFileError(StoreError):
    """What lies there is no object: a pipe, a socket or a device."""


class AccessDeniedError(StoreError, PermissionError):
    """The store refuses this user."""


class NoSpaceError(StoreError):
    """The disk or quota is full."""


class ThrottledError(StoreError):
    """The store asks to slow down."""


class UndecidedError(StoreError, TimeoutError):
    """No answer came: the request may or may not have been applied."""


class StoreURLError(TieringError, ValueError):
    """Not a URL of a store that this installation knows."""


class ChecksumError(TieringError):
    """Bytes aren't what their checksum says."""


def remedy_of(error: OSError, *, making: bool = False) -> str:
    """Returns what to do about an error of the operating system, the end of a message.

    Args:
        error: with its errno.
        making: whether something was to be made; then it is no surprise that it isn't there.
    """
    if error.errno == errno.ENOENT and making:
        is_alone = error.filename is not None and error.filename2 is None
        has_folder = is_alone and Path(error.filename).parent.is_dir()
        return _NOTHING_NEW if has_folder else _REMOVED
    return _REMEDIES.get(error.errno or 0, _ANY_REMEDY)
