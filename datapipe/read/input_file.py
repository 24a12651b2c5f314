"""One file to read, as it was when it was listed."""

from __future__ import annotations

import os
from dataclasses import dataclass

from datapipe.read.walk import Identity, identity
from tiering.store import is_url

__all__ = ["UNKNOWN", "InputFile"]

UNKNOWN: Identity = (0, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class InputFile:
    """One file to read."""

    path: str
    """Where it is: absolute, on this machine; or its URL."""
    relative: str
    """What it is called in the dataset: below the entry's root, `/`-separated."""
    size_bytes: int
    """Its size when it was listed."""
    modified_ns: int = 0
    """When it was last written, nanoseconds since the epoch, as of the listing; 0: not known."""
    changed_ns: int = 0
    """When it or what is known of it last changed; unlike `modified_ns` nobody can set it."""
    identity: Identity = UNKNOWN
    """Which file it is, whatever it is called; 0, 0: not known."""
    etag: str = ""
    """Of an object in a store: what the store says of the bytes."""
    given: str = ""
    """The path that meant it."""
    named: bool = False
    """Given by its own path, rather than found in a folder or by a wildcard."""

    @property
    def is_remote(self) -> bool:
        """Whether it is an object in a store rather than a file on this machine."""
        return is_url(self.path)

    def is_as_listed(self, status: os.stat_result) -> bool:
        """Tells whether a file of this status is the one that was listed, unchanged."""
        now = (identity(status), status.st_mtime_ns, status.st_ctime_ns)
        return not self.modified_ns or now == (self.identity, self.modified_ns, self.changed_ns)
