"""Files and folders that can only lie on this machine."""

from __future__ import annotations

from pathlib import Path

from datapipe.errors import UsageError
from tiering.store import looks_like_url, printable_url

__all__ = ["local_path"]


def local_path(given: str | Path, what: str) -> Path:
    """Returns the path of a local file or folder.

    Raises:
        UsageError: it is a URL, which would become the name of a folder.
    """
    if looks_like_url(str(given)):
        raise UsageError(
            f"{what} {printable_url(str(given))} is a URL, and it is a file or folder of this "
            "machine; nothing was done; give a path (./ before it makes one of such a name)"
        )
    return Path(given)
