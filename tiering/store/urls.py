"""From a URL to its store."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from tiering.errors import StoreURLError
from tiering.store.local_store import LocalStore
from tiering.store.protocol import Store

__all__ = ["open_store"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SUPPORTED = "a local path or file:///path"


def open_store(url: str) -> Store:
    """Returns the store below `url`; nothing is read or created yet.

    Args:
        url: a local path, relative or absolute, or `file:///absolute/path`.

    Raises:
        StoreURLError: a scheme that this installation doesn't know, or no path.
    """
    scheme = _SCHEME.match(url)
    path = url if scheme is None else _path_of(url, scheme[1].lower())
    if not path or "\0" in path:
        raise StoreURLError(f"{url!r} names no folder; give {_SUPPORTED}")
    return LocalStore(path)


def _path_of(url: str, scheme: str) -> str:
    # The URL isn't repeated in these messages: it may hold credentials.
    if scheme != "file":
        raise StoreURLError(
            f"no store is known for URLs that start with {scheme}://; nothing was opened; "
            f"give {_SUPPORTED}"
        )
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise StoreURLError(
            "a file URL has a host, query or fragment; nothing was opened; give file:///path, "
            "with '?' as %3F and '#' as %23"
        )
    return unquote(parts.path)
