"""What the engine asks of an executor: run one function over many tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

__all__ = ["Executor"]

Task = TypeVar("Task")
Result = TypeVar("Result")


class Executor(Protocol):
    """Runs independent tasks; the results do not depend on which executor does."""

    def map(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result]]:
        """Yields (task number, result) in the order of completion.

        `function` is importable by name, tasks and results can be pickled. The first exception of
        a task is raised here, after running tasks have ended and waiting ones are dropped.
        """

    def close(self) -> None:
        """Ends the workers."""
