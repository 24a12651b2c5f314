"""Exports of a version for Megatron: an index beside the shards' own bytes, which aren't copied.

Linked, each shard is a data file of its own, because its bytes stay where they are. Copied, each
source is one data file: mixing thousands of them is slow in Megatron.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from datapipe.dataset.foreign.files import (
    CopiedShards,
    ExportFile,
    Index,
    LinkedShard,
    Listing,
)
from datapipe.dataset.foreign.folder import locked_folder
from datapipe.dataset.foreign.megatron import token_code
from datapipe.dataset.local import local_path
from datapipe.dataset.reader import Dataset
from datapipe.errors import UnknownReferenceError, UsageError
from datapipe.observe import NO_PROGRESS, Progress
from tiering.store import LocalFiles

__all__ = ["Exported", "ExportedSource", "export_megatron"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedSource:
    """One source's files."""

    source: str
    listing: str
    """File for `--data-args-path`: tokens and path of each data file without its ending."""
    num_files: int
    """Data files; each has an index."""
    num_documents: int
    num_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """What an export came to."""

    sources: tuple[ExportedSource, ...]
    written: int
    """Files that weren't there, links among them."""
    existing: int
    """Files that were there already and are the same."""


def export_megatron(
    dataset: Dataset,
    out: str | Path,
    *,
    sources: Sequence[str] = (),
    copy: bool = False,
    dry_run: bool = False,
    progress: Progress = NO_PROGRESS,
) -> Exported:
    """Writes what Megatron's `IndexedDataset` reads: .bin and .idx files, and a list a source.

    Args:
        dataset: the version.
        out: a local folder, made where there is none. Files that are there already must be the
            same; then they stay.
        sources: only these; none: all.
        copy: copy the tokens, one data file a source, instead of linking each shard.
        dry_run: only say what would be written.
        progress: hears of documents.

    Raises:
        UnknownReferenceError: there is no such source, or nothing in it.
        UsageError: another file is in the way, or the dataset can't be exported so.
        DamagedError: a shard or docmap isn't what the version says.
        FailedError: the folder can't be written.
        SpaceError: the disk is full.
    """
    folder = Path(os.path.abspath(local_path(out, "out")))  # noqa: PTH100 (resolve() would follow links)
    _check(dataset, folder, copy=copy)
    plan = {
        source: _data_files(dataset, source, folder, copy=copy)
        for source in sources or [summary.name for summary in dataset.sources]
    }
    if not any(plan.values()):
        raise UnknownReferenceError(
            f"version {dataset.version} of {dataset.url} has no shard in "
            f"{', '.join(plan) or 'any source'}; nothing was exported"
        )
    files = [file for source in plan for file in _files(dataset, source, folder, plan[source])]
    missing = [file for file in files if not os.path.lexists(file.path)]
    _check_existing(files, missing)
    if not dry_run:
        _write(missing, folder, progress)
    return Exported(
        sources=tuple(_summary(source, folder, plan[source]) for source in plan),
        written=len(missing),
        existing=len(files) - len(missing),
    )


# -- plan


@dataclass(frozen=True, kw_only=True, slots=True)
class _DataFile:
    data: ExportFile
    shards: range
    num_tokens: int
    num_documents: int

    @property
    def prefix(self) -> Path:
        """Its path without the ending: what Megatron is told."""
        return self.data.path.with_name(self.data.path.name.removesuffix(".bin"))


def _check(dataset: Dataset, folder: Path, *, copy: bool) -> None:
    token_code(dataset.token_dtype, max_id=dataset.manifest.tokenizer.max_id)
    if any(character.isspace() for character in str(folder)):
        raise UsageError(
            f"Megatron splits its lists of files at white space, which {str(folder)!r} has; "
            "nothing was exported; name another folder"
        )
    if not copy and not isinstance(dataset.repository.store, LocalFiles):
        raise UsageError(
            f"{dataset.url} isn't a folder of this machine, so its shards can't be linked; nothing "
            "was exported; give --copy"
        )


def _data_files(dataset: Dataset, source: str, folder: Path, *, copy: bool) -> list[_DataFile]:
    table = dataset.shards(source)
    whole = range(len(table))
    parts = [range(number, number + 1) for number in whole]
    if copy:
        parts = [whole] if whole else []
    files = []
    for shards in parts:
        number, name = shards.start, quote(source, safe="@")
        data: ExportFile
        if copy:
            data = CopiedShards(path=folder / f"{name}.bin", dataset=dataset, source=source)
        else:
            path = folder / f"{name}-{number:05d}.bin"
            data = LinkedShard(path=path, dataset=dataset, source=source, number=number)
        rows = slice(shards.start, shards.stop)
        files.append(
            _DataFile(
                data=data,
                shards=shards,
                num_tokens=int(table.num_tokens[rows].sum()),
                num_documents=int(table.num_documents[rows].sum()),
            )
        )
    return files


def _files(
    dataset: Dataset, source: str, folder: Path, data_files: Sequence[_DataFile]
) -> Iterator[ExportFile]:
    """Yields a source's files in the order of writing: what names a file comes behind it."""
    for file in data_files:
        yield file.data
        yield Index(
            path=file.prefix.with_name(f"{file.prefix.name}.idx"),
            dataset=dataset,
            source=source,
            shards=file.shards,
            num_documents=file.num_documents,
        )
    weights = [(file.num_tokens, file.prefix) for file in data_files]
    yield Listing(path=_listing(source, folder), weights=weights)


def _listing(source: str, folder: Path) -> Path:
    return folder / f"{quote(source, safe='@')}.txt"


def _summary(source: str, folder: Path, data_files: Sequence[_DataFile]) -> ExportedSource:
    return ExportedSource(
        source=source,
        listing=str(_listing(source, folder)),
        num_files=len(data_files),
        num_documents=sum(file.num_documents for file in data_files),
        num_tokens=sum(file.num_tokens for file in data_files),
    )


# -- act


def _check_existing(files: Sequence[ExportFile], missing: Sequence[ExportFile]) -> None:
    absent = {file.path for file in missing}
    for file in files:
        if file.path not in absent and not file.is_there():
            raise UsageError(
                f"{file.path} is there already and isn't what would be written; nothing was "
                "exported; name another folder, or delete what is in this one"
            )


def _write(missing: Sequence[ExportFile], folder: Path, progress: Progress) -> None:
    progress.begin("export", sum(file.num_documents for file in missing), "documents")
    with locked_folder(folder):
        for file in missing:
            file.write()
            progress.advance(file.num_documents)
    progress.end()
