"""From a URL, options and the environment to a client of obstore."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from tiering.errors import StoreError, StoreURLError
from tiering.printable import printable_text, printable_url
from tiering.store.obstore_client import ObstoreClient, client_options, retry_config
from tiering.store.obstore_library import exceptions, stores
from tiering.store.options import Transfer
from tiering.store.s3_settings import s3_settings

__all__ = ["open_cloud", "open_memory"]

_ENDPOINTS = {
    "az": (("endpoint",), ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")),
    "gs": (("base_url",), ("GOOGLE_BASE_URL",)),
}
"""Scheme -> the options and the variables that name other servers than the cloud's own."""

_MEMORY: dict[str, tuple[int, Any]] = {}


def open_cloud(address: str, options: Mapping[str, Any], *, transfer: Transfer) -> ObstoreClient:
    """Returns a client for an s3://, gs:// or az:// URL.

    Raises:
        StoreURLError: an option or the URL isn't understood.
    """
    settings, extra = dict(options), dict[str, Any]()
    if urlsplit(address).scheme in ("s3", "s3a"):
        settings, extra = s3_settings(options, os.environ)
    endpoint = _endpoint(urlsplit(address).scheme, settings, os.environ)
    allow_http = endpoint.startswith("http://")

    def make(reads: bool) -> Any:
        client = client_options(transfer, allow_http=allow_http, reads=reads)
        return _store(address, settings, extra, client)

    # Servers of other makers needn't list by whole path; those of the three clouds do.
    host = urlsplit(endpoint).hostname or ""
    ordered = not host or host.endswith(".amazonaws.com")
    return ObstoreClient(
        make,
        transfer=transfer,
        lists_in_order=ordered,
        swaps_by_number=urlsplit(address).scheme == "gs",
    )


def _endpoint(scheme: str, settings: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Returns where the servers are, empty: where the cloud's own are."""
    options, variables = _ENDPOINTS.get(scheme, (("endpoint",), ()))
    given = [settings.get(name) for name in options]
    return str(next(filter(None, [*given, *map(environment.get, variables)]), ""))


def open_memory(address: str, options: Mapping[str, Any], *, transfer: Transfer) -> ObstoreClient:
    """Returns a client for memory://NAME: objects of this process, gone when it ends.

    Raises:
        StoreError: they belong to the parent of this process.
    """
    if options:
        raise StoreURLError(f"a memory store takes no options, but {', '.join(options)} was given")
    name = printable_url(address)
    pid, store = _MEMORY.get(name, (os.getpid(), None))
    if pid != os.getpid():
        raise StoreError(
            f"the objects of {name} are in the memory of process {pid}, not in this one's; "
            "nothing was opened; use a folder for what several processes share"
        )
    if store is None:
        store = stores().MemoryStore()
        _MEMORY[name] = (os.getpid(), store)
    return ObstoreClient(lambda _: store, transfer=transfer, lists_in_order=True)


def _store(
    address: str, settings: Mapping[str, Any], extra: Mapping[str, Any], client: Mapping[str, Any]
) -> Any:
    keywords = {**extra, "client_options": client, "retry_config": retry_config()}
    parts = urlsplit(address)
    try:
        if parts.scheme in ("s3", "s3a"):
            prefix = unquote(parts.path).strip("/") or None
            return stores().S3Store(parts.netloc, prefix=prefix, config=settings, **keywords)
        return stores().from_url(address, config=settings, **keywords)
    except (exceptions().BaseError, ValueError, TypeError) as error:
        problem = printable_text(str(error).split("\n", 1)[0])
    raise StoreURLError(
        f"the store {printable_url(address)} can't be opened: {problem}; nothing was read or "
        "written; check the URL and the options"
    )
