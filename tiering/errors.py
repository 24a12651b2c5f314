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
]


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
