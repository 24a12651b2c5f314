"""Which stage a name in a recipe means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datapipe import clean
from datapipe.documents import Stage

__all__ = ["document_stage", "is_document_stage"]

_STAGES = {**clean.STAGES}


def is_document_stage(name: str) -> bool:
    """Tells whether `name` is a stage that looks at one document at a time."""
    return name in _STAGES


def document_stage(name: str, options: Mapping[str, Any]) -> Stage:
    """Returns the stage that a recipe calls `name`; names and options are those of the recipe."""
    return _STAGES[name](options)
