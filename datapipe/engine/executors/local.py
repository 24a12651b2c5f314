"""Units as processes of this machine.

Workers are forks of a server that has imported what they need and done nothing with it: a fork of
this process, which has threads (pyarrow's, the tokenizer's), may deadlock, and a worker that
imports all by itself takes a second of a core. One worker means this very process, which starts in
no time.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import TracebackType
from typing import Self, TypeVar

from datapipe.errors import ResumableError, UsageError

__all__ = ["LocalExecutor", "available_cores"]

Task = TypeVar("Task")
Result = TypeVar("Result")

_WAITING_PER_WORKER = 2  # enough that no worker idles; more would only pickle tasks early
_SIGNAL_SECONDS = 0.2  # between a signal's arrival at the workers and at this process
_LEFT_TO_PARENT = {signal.SIGINT, signal.SIGHUP}  # SIGTERM ends them: the pool relies on it
_HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PRELOADED = ("datapipe.engine.passes", "datapipe_tokenizers.fast", "awkward", "gigatoken")
"""What workers import sooner or later; what isn't installed is passed over."""
_GUARD = (
    'in a script of your own, put the call under `if __name__ == "__main__":`, since every worker '
    "imports the script; or build with workers=1"
)


def available_cores() -> int:
    """Returns the cores this process may use, not those the machine has."""
    return len(os.sched_getaffinity(0))


def _context() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_PRELOADED])
    return context


def _start_worker(environment: dict[str, str]) -> None:
    """Makes a worker end with a killed parent, and gives it the environment of now.

    The server has that of the time when it was started.
    """
    os.environ.clear()
    os.environ.update(environment)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # what is half-done has no name yet


@contextmanager
def _starting_processes() -> Iterator[None]:
    """Has processes that are started inside born deaf to Ctrl-C, and none left half-started.

    Ctrl-C goes to the whole group. A handler set by the worker itself would come too late: it
    spends its first second importing. And an exception raised here between starting a worker and
    telling it what it is would leave one that nobody ends. So signals wait for the end of this.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _HELD}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in held:
        signal.signal(number, lambda number, _: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _LEFT_TO_PARENT)
    try:
        resource_tracker.ensure_running()  # unblocks SIGINT when it starts its process
        signal.pthread_sigmask(signal.SIG_BLOCK, _LEFT_TO_PARENT)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in held.items():
            signal.signal(number, handler)
    for arrived in came:
        signal.raise_signal(arrived)


def _broken(*, is_first: bool) -> ResumableError:
    if is_first:
        return ResumableError(
            "a worker process was killed before it had done anything, most often for want of "
            "memory, or couldn't start; finished units are kept. Run the same command again with "
            f"fewer workers; {_GUARD}"
        )
    return ResumableError(
        "a worker process was killed, most often for want of memory; finished units are kept. "
        "Run the same command again, with fewer workers if it happens again"
    )


class LocalExecutor:
    """Runs tasks in `workers` processes; with one worker in the calling process.

    Leaving its context ends the workers; at once where an interruption (a BaseException that is
    no Exception) leaves it.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None
        self._has_run = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            self._kill()
        self.close()

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
                    with _starting_processes():
                        running[pool.submit(function, entry[1])] = entry[0]
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    result = future.result()
                    self._has_run = True
                    yield running.pop(future), result
        except BrokenProcessPool as error:
            time.sleep(_SIGNAL_SECONDS)  # what ended the worker may be about to end this process
            raise _broken(is_first=not self._has_run) from error
        except Exception:
            self.close()
            raise

    def _started(self) -> ProcessPoolExecutor:
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise UsageError(f"a worker that is still importing can't start a build: {_GUARD}")
        if self._pool is None:
            with _starting_processes():
                self._pool = ProcessPoolExecutor(
                    self.workers,
                    mp_context=_context(),
                    initializer=_start_worker,
                    initargs=(dict(os.environ),),
                )
        return self._pool

    def close(self) -> None:
        """Ends the workers after their running tasks; waiting ones are dropped.

        Futures aren't cancelled one by one: the pool's thread may set them at the same time.
        """
        if self._pool is not None:
            pool, self._pool = self._pool, None
            pool.shutdown(wait=True, cancel_futures=True)

    def _kill(self) -> None:
        """Ends the workers now: what is half-done has no name yet."""
        processes = self._pool._processes if self._pool is not None else None
        for process in list((processes or {}).values()):
            process.kill()
