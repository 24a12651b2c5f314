"""Options that commands share as one class, since typer wants each as a parameter."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = ["expanded"]


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Returns a command that takes the fields of its last parameter, a dataclass, one by one."""
    *own, last = inspect.signature(command, eval_str=True).parameters.values()
    fields = inspect.signature(last.annotation, eval_str=True).parameters.values()

    @wraps(command)
    def called(**given: Any) -> None:
        shared = {field.name: given.pop(field.name) for field in fields}
        command(**given, **{last.name: last.annotation(**shared)})

    parameters = [entry.replace(kind=inspect.Parameter.KEYWORD_ONLY) for entry in (*own, *fields)]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {entry.name: entry.annotation for entry in parameters}
    return called
