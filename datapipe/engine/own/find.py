"""Finding the code of own stages: files given with a command, entry points of packages."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import decode_source, module_from_spec
from pathlib import Path
from types import CodeType
from typing import Any

from datapipe.engine.own.checked import CheckedStage
from datapipe.errors import DatapipeError, ResumableError, UsageError
from datapipe.recipe import STAGE_OPTIONS, OwnStage
from tiering.store import printable_url

__all__ = ["GROUP", "installed_stages", "make_own_stage", "stages_of_files"]

GROUP = "datapipe.stages"
"""Group of the entry points."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")


def stages_of_files(paths: Sequence[str]) -> dict[str, OwnStage]:
    """Returns the stages that Python files define in `STAGES`, by name.

    Raises:
        UsageError: a file can't be run, or defines no stages, or one of a name that is taken.
    """
    found: dict[str, OwnStage] = {}
    for path in paths:
        data = _read(path)
        code = f"sha256:{hashlib.sha256(data).hexdigest()}"
        for name in _factories(path, code, data):
            if name in found or name in STAGE_OPTIONS:
                raise UsageError(
                    f"{path} defines a stage {name}, and there is one of that name already; "
                    "nothing was done; give it another name"
                )
            found[name] = OwnStage(code, path)
    return found


def installed_stages() -> dict[str, OwnStage]:
    """Returns the stages that installed packages bring along, by name; none of them is loaded."""
    found: dict[str, OwnStage] = {}
    for entry in metadata.entry_points(group=GROUP):
        if entry.name not in STAGE_OPTIONS and entry.dist is not None:
            found.setdefault(entry.name, OwnStage(f"{entry.dist.name} {entry.dist.version}", None))
    return found


def make_own_stage(name: str, own: OwnStage, options: Mapping[str, Any]) -> CheckedStage:
    """Returns a stage, wrapped in what checks it.

    Raises:
        UsageError: it can't be made with these options, or isn't a stage.
        ResumableError: its code has changed since the build began.
    """
    where = own.file or own.code
    factory = _loaded_from_file(name, own) if own.file is not None else _loaded_entry(name, own)
    try:
        stage = factory(**options)
    except DatapipeError:
        raise
    except Exception as error:
        raise UsageError(
            f"the stage {name} of {where} can't be made with the options {dict(options)}: "
            f"{type(error).__name__}: {error}; nothing was committed; correct recipe or stage"
        ) from error
    if not callable(getattr(stage, "apply", None)):
        raise UsageError(
            f"the stage {name} of {where} is a {type(stage).__name__} without a method apply; "
            "nothing was committed; correct the stage"
        )
    return CheckedStage(stage, name=name, options=options, where=where)


def _loaded_from_file(name: str, own: OwnStage) -> Callable[..., Any]:
    assert own.file is not None
    data = _read(own.file)
    if f"sha256:{hashlib.sha256(data).hexdigest()}" != own.code:
        raise _changed(own.file)
    return _factories(own.file, own.code, data)[name]


def _loaded_entry(name: str, own: OwnStage) -> Callable[..., Any]:
    for entry in metadata.entry_points(group=GROUP, name=name):
        if entry.dist is not None and f"{entry.dist.name} {entry.dist.version}" == own.code:
            try:
                loaded: Callable[..., Any] = entry.load()
            except Exception as error:
                raise UsageError(
                    f"the stage {name} of {own.code} can't be loaded: {type(error).__name__}: "
                    f"{error}; nothing was committed; correct the package"
                ) from error
            return loaded
    raise _changed(own.code)


def _changed(what: str) -> ResumableError:
    return ResumableError(
        f"{what}, which holds a stage of the recipe, has changed since the build began; nothing "
        "was committed; run the same command again"
    )


def _read(path: str) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except (OSError, RuntimeError, ValueError) as error:  # no such user, a NUL
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            f"the file of stages {printable_url(path)!r} can't be read: {reason}; nothing was "
            "done; give a Python file"
        ) from error


@lru_cache
def _factories(path: str, code: str, data: bytes) -> Mapping[str, Callable[..., Any]]:
    """Returns what makes the stages of a file, by name; the file is run once a process."""
    name = f"datapipe_stages_{code[-16:]}"
    module = module_from_spec(ModuleSpec(name, _Loader(data, path), origin=path))
    sys.modules[name] = module  # dataclasses look there
    try:
        assert module.__spec__ is not None
        assert module.__spec__.loader is not None
        module.__spec__.loader.exec_module(module)
    except Exception as error:
        raise UsageError(
            f"the file of stages {path} can't be run: {type(error).__name__}: {error}; nothing was "
            "done; correct it"
        ) from error
    stages = getattr(module, "STAGES", None)
    if not isinstance(stages, dict) or not stages or not all(map(_is_stage, stages.items())):
        raise UsageError(
            f"{path} doesn't define `STAGES = {{name: class}}`, names in small letters, digits and "
            "_; nothing was done; see `Own stages` in docs/cleaning.md"
        )
    return stages


def _is_stage(item: tuple[object, object]) -> bool:
    name, factory = item
    return isinstance(name, str) and _NAME.fullmatch(name) is not None and callable(factory)


class _Loader(InspectLoader):
    """Runs source that is in memory: what ran is what was hashed, and nothing is written."""

    def __init__(self, data: bytes, path: str) -> None:
        self._data, self._path = data, path

    def get_source(self, fullname: str) -> str:
        del fullname
        return decode_source(self._data)

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_source(fullname), self._path)
