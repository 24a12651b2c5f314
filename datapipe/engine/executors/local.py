"""Units as processes of this machine.

Processes are spawned, never forked: a fork of a process that has threads (pyarrow's, the
tokenizer's) may deadlock. One worker means this very process, which starts in no time.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from datapipe.errors import ResumableError

__all__ = ["LocalExecutor", "available_cores"]

Task = TypeVar("Task")
Result = TypeVar("Result")

_WAITING_PER_WORKER = 2  # enough that no worker idles; more would only pickle tasks early


def available_cores() -> int:
    """Returns the cores this process may use, not those the machine has."""
    return len(os.sched_getaffinity(0))


def _start_worker() -> None:
    """Leaves Ctrl-C to the parent, which ends the workers in order; ends with a killed parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # what is half-done has no name yet


def _broken(*, is_first: bool) -> ResumableError:
    advice = "Run the same command again, with fewer workers if it happens again"
    if is_first:
        advice += (
            '. In a script of your own, put the call under `if __name__ == "__main__":`, since '
            "every worker imports the script; or build with workers=1"
        )
    return ResumableError(
        "a worker process was killed, most often for want of memory; finished units are kept. "
        + advice
    )


class LocalExecutor:
    """Runs tasks in `workers` processes; with one worker in the calling process."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None
        self._has_run = False

    def map(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result]]:
        """See `Executor.map`. Raises: ResumableError: a worker process was killed."""
        if self.workers == 1 or len(tasks) <= 1:
            return ((number, function(task)) for number, task in enumerate(tasks))
        return self._map_in_processes(function, tasks)

    def _map_in_processes(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result]]:
        pool = self._started()
        waiting = iter(enumerate(tasks))
        running: dict[Future[Result], int] = {}
        try:
            while True:
                while len(running) < self.workers * _WAITING_PER_WORKER:
                    entry = next(waiting, None)
                    if entry is None:
                        break
                    running[pool.submit(function, entry[1])] = entry[0]
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    result = future.result()
                    self._has_run = True
                    yield running.pop(future), result
        except BrokenProcessPool as error:
            raise _broken(is_first=not self._has_run) from error
        finally:
            for future in running:
                future.cancel()
            wait([future for future in running if future.running()])

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.workers,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_start_worker,
            )
        return self._pool

    def close(self) -> None:
        """Ends the workers."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
