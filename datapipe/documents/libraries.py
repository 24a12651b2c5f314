"""Libraries that only some stages need."""

from __future__ import annotations

import importlib
from typing import Any

from datapipe.errors import MissingExtraError

__all__ = ["optional_library"]


def optional_library(module: str, *, stage: str, package: str, extra: str) -> Any:
    """Returns a library that a stage needs, imported now.

    Raises:
        MissingExtraError: it isn't installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"the stage {stage} needs the package {package}, which isn't installed; nothing was "
            f"built; pip install 'datapipe-train[{extra}]'"
        ) from error
