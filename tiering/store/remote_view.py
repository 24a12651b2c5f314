"""A view of a remote object: each read is a ranged request for the version that was opened."""

from __future__ import annotations

import threading
from typing import Protocol

from tiering.store.protocol import ObjectInfo

__all__ = ["RangeReader", "RemoteView"]

FIRST_AHEAD_BYTES = 64 * 1024
MAX_AHEAD_BYTES = 4 << 20
"""A small read right behind the last one fetches ahead, twice as much each time up to this."""


class RangeReader(Protocol):
    """Fills buffers from one version of an object."""

    def read_into(self, info: ObjectInfo, buffer: memoryview, offset: int) -> int:
        """Fills `buffer` from `offset` on; returns the bytes read, fewer only at the end."""


class RemoteView:
    """An object that was found at `info`; may be shared by threads.

    Holds no connection: a read long after the opening works. Once the object is overwritten, a
    read raises PreconditionError instead of giving bytes of another version.
    """

    def __init__(self, reader: RangeReader, info: ObjectInfo) -> None:
        self._reader = reader
        self._info = info
        self._closed = False
        self._lock = threading.Lock()
        self._ahead = b""
        self._ahead_at = 0
        self._next_offset = 0
        self._ahead_bytes = FIRST_AHEAD_BYTES

    @property
    def size(self) -> int:
        """Bytes of the object."""
        return self._info.size

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fills `buffer` from `offset` on; returns the bytes read, fewer only at the end."""
        if self._closed:
            raise ValueError(f"the view of {self._info.path} is closed; open the object again")
        wanted = max(0, min(buffer.nbytes, self.size - offset))
        if wanted == 0:
            return 0
        target = buffer.cast("B")[:wanted]
        if wanted >= MAX_AHEAD_BYTES:
            return self._reader.read_into(self._info, target, offset)
        with self._lock:
            return self._read_small(target, offset)

    def fileno(self) -> int | None:
        """Returns None: there is no local file."""
        return None

    def close(self) -> None:
        """Ends the view; closing twice is no error."""
        self._closed = True
        self._ahead = b""

    def _read_small(self, target: memoryview, offset: int) -> int:
        if not self._has(offset, target.nbytes):
            if offset != self._next_offset:
                self._next_offset, self._ahead_bytes = offset + target.nbytes, FIRST_AHEAD_BYTES
                return self._reader.read_into(self._info, target, offset)
            self._fetch(offset, max(target.nbytes, self._ahead_bytes))
            self._ahead_bytes = min(2 * self._ahead_bytes, MAX_AHEAD_BYTES)
        start = offset - self._ahead_at
        target[:] = self._ahead[start : start + target.nbytes]
        self._next_offset = offset + target.nbytes
        return target.nbytes

    def _has(self, offset: int, num_bytes: int) -> bool:
        end = self._ahead_at + len(self._ahead)
        return self._ahead_at <= offset and offset + num_bytes <= end

    def _fetch(self, offset: int, num_bytes: int) -> None:
        data = bytearray(min(num_bytes, self.size - offset))
        self._reader.read_into(self._info, memoryview(data), offset)
        self._ahead, self._ahead_at = bytes(data), offset

    def __enter__(self) -> RemoteView:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
