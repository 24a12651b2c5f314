"""Views: open objects that are read by ranges."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from tiering.errors import StoreError
from tiering.store.protocol import View

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["LocalView", "ViewFile"]


class LocalView:
    """A view of a local file; `preadv` on one descriptor, so threads may share it."""

    def __init__(self, descriptor: int, *, size: int, path: str) -> None:
        self._descriptor = descriptor
        self._size = size
        self._path = path

    @property
    def size(self) -> int:
        """Bytes of the object when it was opened."""
        return self._size

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fills `buffer` from `offset` on; returns the bytes read, fewer only at the end."""
        descriptor = self._open_descriptor()
        target = buffer.cast("B") if buffer.nbytes else buffer
        done = 0
        while done < buffer.nbytes:
            count = self._read_once(descriptor, target[done:], offset + done)
            if count == 0:
                break
            done += count
        return done

    def fileno(self) -> int | None:
        """Returns the descriptor; it stays the view's own."""
        return self._open_descriptor()

    def close(self) -> None:
        """Closes the descriptor; closing twice is no error."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _open_descriptor(self) -> int:
        if self._descriptor < 0:
            raise ValueError(f"the view of {self._path} is closed; open the object again")
        return self._descriptor

    def _read_once(self, descriptor: int, target: memoryview, offset: int) -> int:
        try:
            return os.preadv(descriptor, [target], offset)
        except OSError as error:
            raise StoreError(
                f"reading {self._path} at byte {offset} failed: {error.strerror}; "
                "check the disk it lies on",
                path=self._path,
            ) from error

    def __enter__(self) -> LocalView:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class ViewFile(io.RawIOBase):
    """A view as a readable, seekable file, for decoders that read streams; closing closes both."""

    def __init__(self, view: View) -> None:
        super().__init__()
        self._view = view
        self._position = 0

    def readable(self) -> bool:
        """Returns True."""
        return True

    def seekable(self) -> bool:
        """Returns True."""
        return True

    def tell(self) -> int:
        """Returns the position in bytes from the start."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves the position; behind the end is allowed and reads nothing."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._view.size}[whence]
        if base + offset < 0:
            raise ValueError(f"can't seek to byte {base + offset}, before the start")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fills `buffer` from the position on; returns the bytes read, 0 at the end."""
        if self.closed:
            raise ValueError("the file is closed; open the object again")
        count = self._view.read_into(memoryview(buffer).cast("B"), self._position)
        self._position += count
        return count

    def close(self) -> None:
        """Closes the view too."""
        if not self.closed:
            self._view.close()
        super().close()
