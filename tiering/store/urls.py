"""From a URL to its store."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

from tiering.errors import StoreURLError
from tiering.printable import printable_url
from tiering.store.client import Client
from tiering.store.fsspec_client import is_known, open_fsspec
from tiering.store.local_store import LocalStore
from tiering.store.obstore_open import open_cloud, open_memory
from tiering.store.options import Transfer
from tiering.store.protocol import Store
from tiering.store.remote import Opener, RemoteStore

__all__ = ["is_url", "looks_like_url", "meant_url", "open_store"]

_SCHEME = re.compile(r"([^/]*?)://")
_LIKE_URL = re.compile(r"([A-Za-z][\w+.-]+):(?!//)(/?)(.*)", re.DOTALL)
_CHAINED = re.compile(r"([A-Za-z][\w+.-]*)::(.*)", re.DOTALL)
_CACHES = frozenset({"blockcache", "cached", "filecache", "simplecache"})
_SUPPORTED = (
    "a local path, file:///path, s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, "
    "memory://name, or a URL that fsspec knows"
)
_BACKENDS: dict[str, Callable[..., Client]] = {
    "s3": open_cloud,
    "s3a": open_cloud,
    "gs": open_cloud,
    "az": open_cloud,
    "memory": open_memory,
}


_MISTAKABLE = frozenset({*_BACKENDS, "file", "http", "https"})
"""A path that begins with such a word and a colon is a URL with a slip, not a folder."""


def is_url(place: str) -> bool:
    """Tells whether a place is a URL, of whatever scheme, chained (`a::b://c`) or not.

    Anything else is a path on this machine; so is what begins with `./` or `/`.
    """
    return _SCHEME.match(place) is not None or _is_chained(place)


def _is_chained(place: str) -> bool:
    """Tells whether a place is one of fsspec's URLs of several links; `web::2.jsonl` isn't."""
    if place.partition(":")[0] in _CACHES and ":/" in place:
        return True
    found = _CHAINED.match(place)
    return found is not None and (":/" in found[2] or found[1] in _CACHES)


def meant_url(path: str) -> str | None:
    """Returns the URL that was probably meant by a path such as `s3:/x`, fit to be printed.

    None: it is a path; `C:x`, `web:v2` and colons further on are fine.
    """
    found = _LIKE_URL.match(path)
    if found is None or not (found[2] or found[1].lower() in _MISTAKABLE):
        return None
    scheme, rest = found[1].lower(), found[3].lstrip("/")
    if scheme == "file":
        return f"file:///{rest}" if found[2] else rest or "a path"
    return printable_url(f"{scheme}://{rest}")


def looks_like_url(place: str) -> bool:
    """Tells whether a place is a URL, or what a slip or `pathlib` leaves of one."""
    return is_url(place) or meant_url(place) is not None


def open_store(
    url: str, *, backend: str | None = None, transfer: Transfer | None = None, **options: Any
) -> Store:
    """Returns the store below `url`; nothing is read, written or connected yet.

    Args:
        url: a local path, relative or absolute; `file:///absolute/path`; `s3://bucket/prefix`,
            `gs://bucket/prefix`, `az://container/prefix`, `memory://name` (by obstore); any other
            URL that fsspec knows.
        backend: "fsspec": use it whatever the scheme is. None: by scheme.
        transfer: patience, retries and sizes for remote stores.
        **options: for the backend. S3: `endpoint_url`, `region`, `profile`, `anonymous`,
            `access_key_id` and so on, each of which otherwise comes from the environment
            (`AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_PROFILE` ...) or the profile. fsspec: what
            the file system's class takes, and `single_writer`.

    Raises:
        StoreURLError: a scheme that this installation doesn't know, no path, a path that can only
            be meant as a URL (`s3:/x`), a chained URL, or credentials in the URL of an object
            store.
    """
    if _is_chained(url):
        raise StoreURLError(
            f"a chained URL ({url.partition(':')[0]}::...) is the URL of no store; nothing was "
            f"opened; give the last link alone: {_SUPPORTED}"
        )
    scheme = _SCHEME.match(url)
    name = scheme[1].lower() if scheme else ""
    if backend not in (None, "fsspec"):
        raise StoreURLError(f"there is no backend {backend!r}; give 'fsspec', or none")
    if (scheme is None or name == "file") and backend is None:
        return _local(url, name, options)
    if backend is None and name in _BACKENDS:
        _check_cloud(url, name)
        return _remote(_BACKENDS[name], url, options, transfer)
    if not is_known(name):
        # The URL isn't repeated in these messages: it may hold credentials.
        raise StoreURLError(
            f"no store is known for URLs that start with {name}://; nothing was opened; "
            f"give {_SUPPORTED}"
        )
    return _remote(open_fsspec, url, options, transfer)


def _remote(
    make: Callable[..., Client], url: str, options: dict[str, Any], transfer: Transfer | None
) -> RemoteStore:
    opener = Opener(
        url=printable_url(url),
        make=make,
        address=url,
        options=options,
        transfer=transfer or Transfer(),
    )
    return RemoteStore(opener)


def _check_cloud(url: str, scheme: str) -> None:
    parts = urlsplit(url)
    has_colon = ":" in parts.netloc and scheme != "memory"
    if "@" in parts.netloc or has_colon or parts.query or parts.fragment:
        raise StoreURLError(
            f"a {scheme}:// URL has user info, a port, a query or a fragment; nothing was opened; "
            f"give {scheme}://BUCKET/PREFIX, and options and credentials by environment, profile "
            "or argument"
        )
    if not parts.netloc and scheme != "memory":
        raise StoreURLError(
            f"{printable_url(url)!r} names no bucket; give {scheme}://BUCKET/PREFIX"
        )
    if importlib.util.find_spec("obstore") is None:
        raise StoreURLError(
            f"{scheme}:// needs the package obstore, which isn't installed; nothing was opened; "
            "pip install 'datapipe-train[s3]'"
        )


def _local(url: str, scheme: str, options: dict[str, Any]) -> LocalStore:
    path = _path_of(url) if scheme else url
    if not scheme:
        _check_slip(url)
    if not path or "\0" in path:
        raise StoreURLError(f"{printable_url(url)!r} names no folder; give {_SUPPORTED}")
    if options:
        raise StoreURLError(f"a local folder takes no options, but {', '.join(options)} was given")
    return LocalStore(path)


def _check_slip(path: str) -> None:
    """Raises: StoreURLError: the path is a URL with a slip."""
    meant = meant_url(path)
    if meant is not None:
        raise StoreURLError(
            f"what begins with {path.partition(':')[0]}: and isn't followed by // is neither a URL "
            f"nor likely to be a path; nothing was opened; did you mean {meant}? A folder of such "
            "a name is written with ./ before it"
        )


def _path_of(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise StoreURLError(
            "a file URL has a host, query or fragment; nothing was opened; give file:///path, "
            "with '?' as %3F and '#' as %23"
        )
    return unquote(parts.path)
