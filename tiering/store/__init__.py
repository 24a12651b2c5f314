"""Stores: objects under paths, on a local folder, on object stores, on what fsspec knows.

Owns durable writes, compare-and-swap, ranged reads, retries and credentials; knows nothing of what
the bytes mean.
"""

from tiering.printable import has_secret, printable_text, printable_url, printable_urls
from tiering.store.local import LocalFiles
from tiering.store.local_store import LocalStore
from tiering.store.options import Transfer
from tiering.store.paths import check_path
from tiering.store.protocol import BlockingStore, Mode, ObjectInfo, Store, View
from tiering.store.remote import RemoteFiles, RemoteStore
from tiering.store.remote_view import RemoteView
from tiering.store.urls import is_url, looks_like_url, meant_url, open_store
from tiering.store.view import LocalView, ViewFile

__all__ = [
    "BlockingStore",
    "LocalFiles",
    "LocalStore",
    "LocalView",
    "Mode",
    "ObjectInfo",
    "RemoteFiles",
    "RemoteStore",
    "RemoteView",
    "Store",
    "Transfer",
    "View",
    "ViewFile",
    "check_path",
    "has_secret",
    "is_url",
    "looks_like_url",
    "meant_url",
    "open_store",
    "printable_text",
    "printable_url",
    "printable_urls",
]
