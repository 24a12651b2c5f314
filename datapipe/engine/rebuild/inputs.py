"""The input files that a version read, found again.

Names in a dataset are data: a recorded name never leads out of its folder, and no file is read as
input before its SHA-256 is the recorded one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from datapipe.dataset import Dataset
from datapipe.dataset.local import local_path
from datapipe.engine.sources import SourceInputs
from datapipe.errors import InputError, RecipeError
from datapipe.read import detect_format, list_inputs
from datapipe.recipe import Input, Recipe

__all__ = ["RecordedFile", "check_sources", "find_files", "fits", "group_files", "recorded_files"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedFile:
    """One input file of a step."""

    source: str
    relative: str
    size_bytes: int
    sha256: str
    root: Path | None = None
    """The folder that holds it now; None: not found yet."""
    was_in: str = ""
    """Name of the folder that its name was relative to."""

    @property
    def path(self) -> Path:
        """Where it is, once it is found."""
        assert self.root is not None
        return self.root / self.relative


def recorded_files(version: Dataset, parent: Dataset | None) -> list[RecordedFile]:
    """Returns the files that a version read itself, ascending by source and name."""
    is_append = version.manifest.operation == "append" and parent is not None
    table = version.rows_since("inputs", parent) if is_append and parent else version.inputs()
    return [
        RecordedFile(
            source=row["source"],
            relative=row["file"],
            size_bytes=row["size_bytes"],
            sha256=row["sha256"].hex(),
        )
        for row in table.select(["source", "file", "size_bytes", "sha256"]).to_pylist()
    ]


def find_files(
    files: Sequence[RecordedFile], *, roots: Sequence[Mapping[str, Any]], inputs: str | None
) -> list[RecordedFile]:
    """Returns the files with the places where they are now.

    Args:
        files: what is to be found.
        roots: the folders that names were relative to, as in the log entry.
        inputs: the only folder to read in: the deepest one that the recorded folders have in
            common, or one above it, wherever it lies now. None: the recorded folders.

    Raises:
        InputError: a file isn't there, or would lie outside.
    """
    if not files:
        return []
    folders: dict[str, list[Path]] = {file.source: [] for file in files}
    for entry in roots:
        folders.setdefault(str(entry["source"]), []).append(_without_anchor(entry["root"]))
    common = _common(root for found in folders.values() for root in found)
    limit = None if inputs is None else _absolute(local_path(inputs, "--inputs"))
    attempts = []
    for base in _bases(common, limit):
        places = {source: _moved(roots, common, base) for source, roots in folders.items()}
        attempts.append([_find(file, places[file.source], limit) for file in files])
        if not _missing(attempts[-1]):
            return attempts[-1]
    missing = min((_missing(attempt) for attempt in attempts), key=len)
    where = f"below {inputs}" if inputs is not None else f"where they were ({Path('/') / common})"
    raise InputError(
        f"{len(missing)} of {len(files)} recorded inputs aren't {where}, the first is "
        f"{missing[0].relative} of {missing[0].source}; nothing was rebuilt; give the folder "
        "that holds them with --inputs"
    )


def _absolute(folder: Path) -> Path:
    # Links are kept, and a `~` that is nobody's home is a name like any other.
    return Path(os.path.abspath(os.path.expanduser(folder)))  # noqa: PTH100, PTH111


def _missing(files: Sequence[RecordedFile]) -> list[RecordedFile]:
    return [file for file in files if file.root is None]


def _without_anchor(root: object) -> Path:
    return Path(*(name for name in PurePosixPath(str(root)).parts if name not in ("/", "//", "..")))


def _moved(folders: Iterable[Path], common: Path, base: Path) -> list[tuple[Path, str]]:
    """Returns where folders below `common` are now that it is `base`, and what they were called."""
    return [(base / folder.relative_to(common), folder.name) for folder in folders]


def _common(folders: Iterable[Path]) -> Path:
    return Path(os.path.commonpath(list(folders) or [Path()]))


def _bases(common: Path, limit: Path | None) -> list[Path]:
    """Returns the folders that may be what `common` was: `limit` and its last parts below it."""
    if limit is None:
        return [Path("/") / common]
    if not limit.is_dir():
        raise InputError(f"--inputs {limit} isn't a folder; nothing was rebuilt")
    names = common.parts
    return [limit.joinpath(*names[start:]) for start in range(len(names), -1, -1)]


def _find(
    file: RecordedFile, folders: Sequence[tuple[Path, str]], limit: Path | None
) -> RecordedFile:
    """Returns the file with its place: where all is right, else the size, else only the name.

    Args:
        file: what is to be found.
        folders: where it may be, and what the folder was called.
        limit: see `find_files`.
    """
    there = [
        replace(file, root=root, was_in=name)
        for root, name in folders
        if _is_there(root, file.relative, limit=limit)
    ]
    right = [place for place in there if place.path.stat().st_size == file.size_bytes]
    if len(right) > 1:
        right.sort(key=lambda place: _sha256(place.path) != file.sha256)
    return next(iter([*right, *there]), file)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _is_there(root: Path, relative: str, *, limit: Path | None) -> bool:
    """Tells whether a recorded name is a regular file in a folder, and inside `limit` if given."""
    name = PurePosixPath(relative)
    if name.is_absolute() or ".." in name.parts or "\0" in f"{root}{relative}":
        return False
    try:
        place = (root / name).resolve()
        inside = limit is None or place.is_relative_to(limit.resolve())
        return inside and place.is_file()
    except (OSError, RuntimeError):  # a name too long, a link to itself
        return False


# -- files by input entry


def group_files(
    recorded: Sequence[Mapping[str, Any]], recipe: Recipe, files: Sequence[RecordedFile]
) -> list[SourceInputs]:
    """Returns the files as the build takes them: by input entry of the recipe.

    Args:
        recorded: the input entries as the manifest has them: their paths tell whose a file is.
        recipe: the same recipe.
        files: found, as `find_files` returns them.
    """
    owners: dict[int, list[RecordedFile]] = {number: [] for number in range(len(recorded))}
    for file in files:
        owners[_owner(recorded, file)].append(file)
    return [_inputs(entry, owners[number]) for number, entry in enumerate(recipe.inputs)]


def check_sources(recorded: Sequence[Mapping[str, Any]], files: Sequence[RecordedFile]) -> None:
    """Raises: RecipeError: a file was read for a source that no input entry is for."""
    names = {entry["source"] for entry in recorded}
    for file in files:
        if file.source not in names:
            raise RecipeError(
                f"{file.relative} was read for {file.source}, a source that the recipe doesn't "
                "have; nothing was rebuilt; run `datapipe verify` to see what is damaged"
            )


def _owner(recorded: Sequence[Mapping[str, Any]], file: RecordedFile) -> int:
    mine = [number for number, entry in enumerate(recorded) if entry["source"] == file.source]
    return max(mine, key=lambda number: _likeness(recorded[number]["paths"], file))


def _likeness(paths: Sequence[str], file: RecordedFile) -> int:
    """Returns how well the paths of an input entry mean a file: 0, 1 or 2.

    Names in a folder that was given alone are relative to it, so its own name isn't in them.
    """
    if len(paths) == 1 and PurePosixPath(paths[0]).name == file.was_in:
        return 2
    return int(any(fits(path, file.relative) for path in paths))


def fits(given: str, relative: str) -> bool:
    """Tells whether a path of a recipe, as `list_inputs` takes it, means a file of this name."""
    return _covers(PurePosixPath(given).parts, PurePosixPath(relative).parts)


def _covers(pattern: Sequence[str], path: Sequence[str]) -> bool:
    if not pattern:
        return True
    if pattern[0] == "**" and _covers(pattern[1:], path):
        return True
    if not path:
        return False
    if pattern[0] == "**":
        return _covers(pattern, path[1:])
    fits = pattern[0] == path[0] or fnmatchcase(path[0], pattern[0])
    return fits and _covers(pattern[1:], path[1:])


def _inputs(entry: Input, files: Sequence[RecordedFile]) -> SourceInputs:
    listed = [
        replace(found, named=False)  # whatever its format is, it was let in then
        for file in files
        for found in list_inputs(file.path, root=file.root)  # singly: copies may be links now
    ]
    listed.sort(key=lambda found: found.relative)
    return SourceInputs(
        source=entry.source,
        fields=entry.fields,
        licence=entry.licence,
        files=tuple((file, detect_format(file, declared=entry.format)) for file in listed),
    )
