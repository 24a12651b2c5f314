"""Stores: objects under paths, on a local folder now, on object stores later.

Owns durable writes, compare-and-swap and ranged reads; knows nothing of what the bytes mean.
"""

from tiering.store.local import LocalFiles
from tiering.store.local_store import LocalStore
from tiering.store.paths import check_path
from tiering.store.protocol import BlockingStore, Mode, ObjectInfo, Store, View
from tiering.store.urls import open_store
from tiering.store.view import LocalView, ViewFile

__all__ = [
    "BlockingStore",
    "LocalFiles",
    "LocalStore",
    "LocalView",
    "Mode",
    "ObjectInfo",
    "Store",
    "View",
    "ViewFile",
    "check_path",
    "open_store",
]
