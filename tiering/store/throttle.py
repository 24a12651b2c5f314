"""How many requests go to one store at a time: more while it goes well, half when throttled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

__all__ = ["ConcurrencyLimit"]

_PAUSE_SECONDS = 1.0  # one burst of refusals halves the limit once


class ConcurrencyLimit:
    """A semaphore whose size follows the store (additive increase, multiplicative decrease).

    Belongs to one event loop.
    """

    def __init__(self, maximum: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._maximum = maximum
        self._limit = float(maximum)
        self._busy = 0
        self._clock = clock
        self._halved_at = float("-inf")
        self._changed = asyncio.Condition()

    @property
    def limit(self) -> int:
        """Requests allowed at a time, now; at least 1."""
        return int(self._limit)

    def throttled(self) -> None:
        """The store asked to slow down."""
        now = self._clock()
        if now - self._halved_at >= _PAUSE_SECONDS:
            self._halved_at = now
            self._limit = max(1.0, self._limit / 2)

    def succeeded(self) -> None:
        """A request succeeded: as many as the limit raise it by one."""
        self._limit = min(float(self._maximum), self._limit + 1 / self._limit)

    async def __aenter__(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._busy < self.limit)
            self._busy += 1

    async def __aexit__(self, *exc: object) -> None:
        async with self._changed:
            self._busy -= 1
            self._changed.notify_all()
