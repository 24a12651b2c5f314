"""What goes in: the files of every source, with what identifies their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from datapipe.engine.executors import Executor
from datapipe.errors import InputError
from datapipe.observe import Progress
from datapipe.read import (
    Format,
    InputFile,
    check_fields,
    detect_format,
    input_sha256,
    list_inputs,
)
from datapipe.recipe import Fields, Input

__all__ = ["SourceInputs", "hash_files", "input_roots", "list_sources"]

_HASH_TASK_BYTES = 64 << 20
_HASH_TASK_FILES = 500


@dataclass(frozen=True, slots=True)
class SourceInputs:
    """One input entry of a recipe, its files found."""

    source: str
    fields: Fields
    licence: str | None
    files: tuple[tuple[InputFile, Format], ...]


def list_sources(inputs: Sequence[Input]) -> list[SourceInputs]:
    """Returns the files of every input entry, their formats known and their fields checked.

    Raises:
        InputError: a path or field that isn't there, an unknown format, the same relative name
            twice in one source.
    """
    found = [_list_source(entry) for entry in inputs]
    _check_names(found)
    return found


def _list_source(entry: Input) -> SourceInputs:
    files = list_inputs(entry.paths, root=entry.root)
    formats = [detect_format(file, declared=entry.format) for file in files]
    check_fields(files, entry.fields, entry.source, declared=entry.format)
    return SourceInputs(
        source=entry.source,
        fields=entry.fields,
        licence=entry.licence,
        files=tuple(zip(files, formats, strict=True)),
    )


def _check_names(inputs: Sequence[SourceInputs]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for entry in inputs:
        for file, _ in entry.files:
            name = (entry.source, file.relative)
            other = seen.get(name)
            if other is not None:
                raise InputError(
                    f"source {entry.source} has the relative name {file.relative} twice: "
                    f"{other} and {file.path}; documents of both would have the same identity. "
                    "Leave one out, give it another source, or set `root:` of its input"
                )
            seen[name] = file.path


def input_roots(sources: Sequence[SourceInputs]) -> list[tuple[str, str]]:
    """Returns (source, folder that its files' names are relative to), each pair once, sorted."""
    return sorted(
        {
            (source.source, file.path.removesuffix(file.relative))
            for source in sources
            for file, _ in source.files
        }
    )


def hash_files(
    files: Sequence[InputFile], *, executor: Executor, progress: Progress
) -> dict[str, str]:
    """Returns the SHA-256 (hex) of every file, by its path."""
    groups = list(_groups(files))
    progress.begin("hash inputs", sum(file.size_bytes for file in files), "bytes")
    digests: dict[str, str] = {}
    for number, found in executor.map(_hash_group, groups):
        digests.update(found)
        progress.advance(sum(file.size_bytes for file in groups[number]))
    progress.end()
    return digests


def _groups(files: Sequence[InputFile]) -> Iterator[list[InputFile]]:
    group: list[InputFile] = []
    size = 0
    for file in files:
        group.append(file)
        size += file.size_bytes
        if size >= _HASH_TASK_BYTES or len(group) == _HASH_TASK_FILES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _hash_group(files: Sequence[InputFile]) -> dict[str, str]:
    return {file.path: input_sha256(file).hex() for file in files}
