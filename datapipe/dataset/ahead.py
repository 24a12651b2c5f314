"""Reading a few things ahead, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["read_ahead"]

_THREADS = 4
_AHEAD = 8

Name = TypeVar("Name")
Found = TypeVar("Found")


def read_ahead(names: Iterable[Name], read: Callable[[Name], Found]) -> Iterator[Found]:
    """Yields what `read` gives for each name, in order; the next few are read meanwhile."""
    rest = iter(names)
    threads = ThreadPoolExecutor(_THREADS)
    try:
        waiting = deque(threads.submit(read, name) for name in islice(rest, _AHEAD))
        while waiting:
            found = waiting.popleft().result()
            waiting.extend(threads.submit(read, name) for name in islice(rest, 1))
            yield found
    finally:
        threads.shutdown(cancel_futures=True)
