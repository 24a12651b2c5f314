"""What goes in: the files of every source, with what identifies their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from datapipe.engine.executors import Executor
from datapipe.observe import NO_PROGRESS, Progress
from datapipe.read import (
    Format,
    InputFile,
    check_fields,
    detect_format,
    ensure_distinct,
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


def list_sources(
    inputs: Sequence[Input],
    *,
    own: Sequence[str] = (),
    note: Callable[[str], None] = NO_PROGRESS.note,
) -> list[SourceInputs]:
    """Returns the files of every input entry, their formats known and their fields checked.

    Args:
        inputs: the recipe's entries.
        own: paths or URLs of the folders that the build writes to; they are left out.
        note: told, once each, what was left out or has several names.

    Raises:
        InputError: a path or field that isn't there, an unknown format, a file or relative name
            twice in one source.
    """
    notes: dict[str, None] = {}
    found = [_list_source(entry, own, notes.setdefault) for entry in inputs]
    for source in dict.fromkeys(entry.source for entry in found):
        ensure_distinct(
            file for entry in found if entry.source == source for file, _ in entry.files
        )
    for message in notes:
        note(message)
    return found


def _list_source(entry: Input, own: Sequence[str], note: Callable[[str], None]) -> SourceInputs:
    files = list_inputs(entry.paths, root=entry.root, own=own, note=note)
    formats = [detect_format(file, declared=entry.format) for file in files]
    check_fields(files, entry.fields, entry.source, declared=entry.format)
    return SourceInputs(
        source=entry.source,
        fields=entry.fields,
        licence=entry.licence,
        files=tuple(zip(files, formats, strict=True)),
    )


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
