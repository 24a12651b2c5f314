"""One event loop a process, in a thread of its own, for the requests of all remote stores.

Connections and limits belong to a loop; so callers on threads, and callers on loops of their own,
all hand their requests to this one. After a fork the child makes a new one at first use.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["call", "hand_over"]

T = TypeVar("T")

_STOP_SECONDS = 2.0


class _LoopThread:
    """The loop and its thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="tiering-stores", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=_STOP_SECONDS)


class _Holder:
    """This process's loop, made when it is first needed."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """The child of a fork has none of the parent's threads, and maybe its lock held."""
        self._lock = threading.Lock()
        self._thread: _LoopThread | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._thread is None:
                self._thread = _LoopThread()
            return self._thread.loop

    def stop(self) -> None:
        if self._thread is not None:
            self._thread.stop()


_HOLDER = _Holder()
os.register_at_fork(after_in_child=_HOLDER.forget)
atexit.register(_HOLDER.stop)


def call(work: Coroutine[Any, Any, T]) -> T:
    """Returns what `work` gives; blocks this thread, which mustn't be the loop's own."""
    future = _start(work)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # an interrupt of this thread ends the request too
        raise


async def hand_over(work: Coroutine[Any, Any, T]) -> T:
    """Returns what `work` gives, run on the process's loop, to a caller on any loop."""
    return await asyncio.wrap_future(_start(work))


def _start(work: Coroutine[Any, Any, T]) -> Future[T]:
    return asyncio.run_coroutine_threadsafe(work, _HOLDER.loop())
