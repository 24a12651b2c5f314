"""Open shards: a bounded number of descriptors, least recently used closed first."""

from __future__ import annotations

import resource

import numpy as np

from datapipe.dataset.parts import Int64s
from datapipe.errors import DamagedError, DatasetError, LoadError
from datapipe.load.shard_index import ShardIndex
from tiering.errors import ObjectNotFoundError, StoreError
from tiering.store import View

__all__ = ["DEFAULT_MAX_OPEN", "ShardFiles"]

DEFAULT_MAX_OPEN = 512
"""Most descriptors of a stream: 64 lanes x 4 shards twice over."""

_CLOSED = -1
_NO_DESCRIPTOR = -2  # open, but not a local file


class ShardFiles:
    """The shards that one pass of a stream has open, by flat number.

    Descriptors belong to the process that opened them. Not for use by several threads at once.
    """

    def __init__(self, index: ShardIndex, *, max_open: int | None = None) -> None:
        """Opens nothing yet.

        Args:
            index: the shards.
            max_open: most descriptors; None: 512, or half of what the process may open. Exceeded
                where one batch alone needs more.
        """
        self._index = index
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._max_open = max_open or max(min(DEFAULT_MAX_OPEN, limit // 2), 1)
        self._views: dict[int, View] = {}
        self._descriptors = np.full(index.num_shards, _CLOSED, dtype=np.int32)
        self._used = np.zeros(index.num_shards, dtype=np.int64)
        self._clock = 0

    def descriptors(self, shards: Int64s) -> list[int]:
        """Returns a descriptor for each flat shard number, opening what isn't open.

        They stay open until the next call. A negative one stands for a shard that isn't a local
        file: read it through `view`.

        Raises:
            DamagedError: a shard is missing or has another size than the dataset says.
            LoadError: it can't be opened.
        """
        self._clock += 1
        self._used[shards] = self._clock
        found: list[int] = self._descriptors[shards].tolist()
        if _CLOSED in found:
            self._open(np.unique(shards[self._descriptors[shards] == _CLOSED]))
            found = self._descriptors[shards].tolist()
        return found

    def view(self, shard: int) -> View:
        """Returns an open shard; `descriptors` opened it."""
        return self._views[shard]

    def close(self) -> None:
        """Closes all; what is asked for later is opened again."""
        for shard in list(self._views):
            self._close(shard)

    def _open(self, shards: Int64s) -> None:
        self._make_room(shards.size)
        for shard in shards.tolist():
            view = self._opened(shard)
            self._views[shard] = view
            descriptor = view.fileno()
            self._descriptors[shard] = _NO_DESCRIPTOR if descriptor is None else descriptor

    def _make_room(self, num: int) -> None:
        surplus = len(self._views) + num - self._max_open
        if surplus <= 0:
            return
        held = np.fromiter(self._views, dtype=np.int64, count=len(self._views))
        idle = held[self._used[held] < self._clock]
        for shard in idle[np.argsort(self._used[idle], kind="stable")][:surplus].tolist():
            self._close(shard)

    def _opened(self, shard: int) -> View:
        dataset, source, number = self._index.place(shard)
        try:
            view = dataset.open_shard(source, number)
        except DamagedError as error:
            raise DamagedError(f"{self._index.describe(shard)} can't be read: {error}") from error
        except ObjectNotFoundError as error:
            raise DamagedError(
                f"{self._index.describe(shard)} is missing: {error}; no batch that needs it can be "
                f"delivered; {self._index.to_repair(shard)}"
            ) from error
        except (StoreError, DatasetError) as error:
            raise LoadError(
                f"{self._index.describe(shard)} can't be opened: {error}; the stream stops at this "
                "batch; resume from its last state when the cause is gone"
            ) from error
        if view.size != self._index.size(shard):
            size = view.size
            view.close()
            raise DamagedError(
                f"{self._index.describe(shard)} has {size} bytes, {self._index.size(shard)} "
                "expected: it was cut or replaced; none of its tokens are delivered; "
                f"{self._index.to_repair(shard)}"
            )
        return view

    def _close(self, shard: int) -> None:
        self._descriptors[shard] = _CLOSED
        self._views.pop(shard).close()
