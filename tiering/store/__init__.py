"""Stores: objects under paths, on a local folder now, on object stores later.

Owns durable writes, compare-and-swap and ranged reads; knows nothing of what the bytes mean.
"""

from tiering.store.protocol import BlockingStore, Mode, ObjectInfo, Store, View

__all__ = ["BlockingStore", "Mode", "ObjectInfo", "Store", "View"]
