"""The pass before the first: large files that can't be read from the middle are cut.

Whether a file is cut depends on the inputs alone, and what is read of it doesn't depend on that.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from datapipe.engine.sources import SourceInputs
from datapipe.engine.work import Piece, Work
from datapipe.read import CutError, FileRange, Format, InputFile, can_cut, cut_input
from tiering.store import View

__all__ = ["CutTask", "cut_file", "files_to_cut", "ranges_of", "stretch_pieces"]

CUT_BYTES = 32 << 20
"""Stored bytes from which on cutting pays: unpacking costs a second, and all workers get work."""
CUT_SHARE = 64
"""A file below this part of all input isn't cut: there are enough others to share."""

STRETCH_BYTES = 16 << 20
"""Uncompressed bytes of a stretch: what is in memory of a cut, and a unit of its own."""

_STREAM = "stream.bin"


@dataclass(frozen=True, slots=True)
class CutTask:
    """One file to cut."""

    work: Work
    key: str
    file: InputFile
    format: Format

    @property
    def piece(self) -> Piece:
        """Where the result lies."""
        return Piece("cut", self.key)


@dataclass(frozen=True, slots=True)
class StretchPlace:
    """A stretch in the work folder."""

    work: Work
    piece: Piece

    def open(self) -> View:
        """See `Place`. Raises: ResumableError: it is gone."""
        return self.work.open(self.piece, _STREAM)


def files_to_cut(sources: Sequence[SourceInputs]) -> list[tuple[InputFile, Format]]:
    """Returns the files that would keep one worker busy too long, each once."""
    files = {file.path: (file, format) for source in sources for file, format in source.files}
    total = sum(file.size_bytes for file, _ in files.values())
    return [
        (file, format)
        for file, format in files.values()
        if file.size_bytes >= max(CUT_BYTES, total // CUT_SHARE) and can_cut(format)
    ]


def cut_file(task: CutTask) -> dict[str, Any]:
    """Returns the borders of a file's stretches, doing the work unless it is finished already.

    "borders" is null of a file that has to be read whole.
    """
    record = task.work.record(task.piece)
    return record if record is not None else _cut(task)


def _cut(task: CutTask) -> dict[str, Any]:
    borders: list[int] | None = None
    contexts: list[str | None] = []
    stretches = cut_input(task.file, task.format, target_bytes=STRETCH_BYTES)
    try:
        for number, stretch in enumerate(stretches):
            if task.format.compression != "none":
                data = memoryview(stretch.data)
                task.work.put_bytes(_piece(task, number), _STREAM, data)
            borders = [*(borders or [stretch.start]), stretch.end]
            contexts.append(stretch.context)
    except CutError:
        borders = None
    record = {"borders": borders, "contexts": contexts}
    task.work.finish(task.piece, record)
    return record


def ranges_of(task: CutTask, record: dict[str, Any]) -> list[FileRange] | None:
    """Returns the ranges of a file that was cut; None: it is read whole."""
    if record["borders"] is None:
        return None
    is_stored = task.format.compression != "none"
    return [
        FileRange(
            file=task.file,
            format=task.format,
            start=start,
            end=end,
            place=StretchPlace(task.work, _piece(task, number)) if is_stored else None,
            context=context,
        )
        for number, ((start, end), context) in enumerate(
            zip(itertools.pairwise(record["borders"]), record["contexts"], strict=True)
        )
    ]


def stretch_pieces(task: CutTask, record: dict[str, Any]) -> list[Piece]:
    """Returns the pieces that a file was cut into."""
    return [_piece(task, number) for number in range(len(record["borders"] or [0]) - 1)]


def _piece(task: CutTask, number: int) -> Piece:
    return Piece(task.piece.stage, f"{task.key}-{number:06d}")
