"""Which stage a name in a recipe means, and the files that stages read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from datapipe import clean, signals
from datapipe.clean.pii.plugins import plugin_version
from datapipe.documents import Stage
from datapipe.engine.own import make_own_stage
from datapipe.errors import InputError, ResumableError
from datapipe.recipe import OwnStage, Recipe, StageSpec, named_files
from tiering.store import looks_like_url, printable_url

__all__ = [
    "StageCall",
    "document_stage",
    "file_digest",
    "file_digests",
    "is_document_stage",
    "stage_calls",
]

_STAGES = {**clean.STAGES, **signals.STAGES}


@dataclass(frozen=True, slots=True)
class StageCall:
    """A stage of a recipe, to be made in whatever process runs it."""

    name: str
    options: Mapping[str, Any]
    """As the recipe has them, with the paths of files."""
    identity: Mapping[str, Any]
    """The same with the files' digests in the place of paths: what a result depends on."""
    own: OwnStage | None = None
    """Where its code is; None: it comes with the program."""

    def make(self) -> Stage:
        """Returns the stage.

        Raises:
            InputError: a file that it reads can't be read, or isn't what it needs.
            UsageError: it is a stage of the user's own and can't be made.
            ResumableError: such a file, or the code, has changed since the build began.
        """
        if self.own is not None:
            return make_own_stage(self.name, self.own, self.options)
        recorded = named_files(self.name, self.identity)
        for path in sorted(named_files(self.name, self.options)):
            _check_unchanged(path, recorded)
        return document_stage(self.name, self.options)


def is_document_stage(name: str) -> bool:
    """Tells whether `name` is a stage that looks at one document at a time."""
    return name in _STAGES


def document_stage(name: str, options: Mapping[str, Any]) -> Stage:
    """Returns the stage that a recipe calls `name`; names and options are those of the recipe."""
    return _STAGES[name](options)


def stage_calls(recipe: Recipe, files: Mapping[str, str]) -> Sequence[StageCall]:
    """Returns the stages of a recipe in order; `files` are the digests of its data files."""
    return [_call(stage, files) for stage in recipe.stages]


def _call(stage: StageSpec, files: Mapping[str, str]) -> StageCall:
    identity = stage.recorded(files)
    if stage.own is None and stage.options.get("plugins"):
        identity["code"] = {name: plugin_version(name) for name in stage.options["plugins"]}
    return StageCall(stage.name, stage.options, identity, stage.own)


def file_digests(recipe: Recipe) -> dict[str, str]:
    """Returns "sha256:" and the digest of every file that stages of the recipe read, by path.

    Raises:
        InputError: one can't be read.
    """
    return {path: file_digest(path) for path in recipe.data_files}


def file_digest(path: str) -> str:
    """Returns "sha256:" and the digest of a file that a stage reads. Raises: InputError."""
    if looks_like_url(path) and not Path(path).exists():
        raise InputError(
            f"a stage is to read {printable_url(path)}; stages read local files: copy it here "
            "and name the copy in the recipe."
        )
    try:
        with Path(path).expanduser().open("rb") as file:
            state = os.fstat(file.fileno())
        return _digest_at(path, state.st_size, state.st_mtime_ns, state.st_ino)
    except (OSError, RuntimeError, ValueError) as error:  # no such user's home, a NUL
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise InputError(
            f"{path!r}, which a stage reads, can't be read: {reason}; correct the path."
        ) from error


@lru_cache(maxsize=1000)
def _digest_at(path: str, size: int, modified_ns: int, inode: int) -> str:
    """Returns the digest of a file in a known state: each is read once a process."""
    del size, modified_ns, inode
    with Path(path).expanduser().open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _check_unchanged(path: str, recorded: set[str]) -> None:
    if file_digest(path) not in recorded:
        raise ResumableError(
            f"{path}, which a stage of the recipe reads, has changed since the build began; "
            "nothing was committed; run the same command again"
        )
