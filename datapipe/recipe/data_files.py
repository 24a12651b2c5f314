"""The files that stages read: which options of a stage name one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from datapipe.recipe.stage_options import STAGE_OPTIONS
from datapipe.recipe.strict import DataFileMark

__all__ = ["named_files", "with_files"]


def named_files(stage: str, options: Mapping[str, Any]) -> set[str]:
    """Returns what a stage's options have for files: paths, or digests in their place."""
    found: set[str] = set()

    def noted(path: str) -> str:
        found.add(path)
        return path

    with_files(stage, options, noted)
    return found


def with_files(
    stage: str, options: Mapping[str, Any], change: Callable[[str], str]
) -> dict[str, Any]:
    """Returns a stage's options with every data file's path replaced by `change` of it."""
    model = STAGE_OPTIONS.get(stage)
    fields = model.model_fields if model is not None else {}
    marked = {
        name for name, field in fields.items() if _is_marked(field.annotation, field.metadata)
    }
    return {
        name: _changed(value, change) if name in marked else value
        for name, value in options.items()
    }


def _is_marked(annotation: Any, metadata: Any = ()) -> bool:
    """Tells whether the mark is anywhere in a type: of `DataFile | None`, a list of them, ..."""
    if any(isinstance(item, DataFileMark) for item in metadata):
        return True
    return isinstance(annotation, DataFileMark) or any(map(_is_marked, get_args(annotation)))


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [_changed(item, change) for item in value]
    if isinstance(value, dict):
        return {name: _changed(item, change) for name, item in value.items()}
    return value
