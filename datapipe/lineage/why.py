"""What became of a document: kept where, dropped by which rule, or quarantined with which error.

Any record that a build of the dataset ever read has an answer. It is looked for in the version that
is asked, and where that one never met it, in the others, the newest first.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dataset import Dataset, log_entries, open_dataset
from datapipe.dataset.find import (
    FoundRow,
    Wanted,
    find,
    id_wanted,
    origin_wanted,
    record_wanted,
    url_wanted,
)
from datapipe.dataset.retired import read_retired
from datapipe.dataset.tables import HASH_BYTES
from datapipe.documents import url_hashes
from datapipe.errors import UnknownReferenceError, UsageError
from datapipe.observe import NO_PROGRESS, Progress

__all__ = ["Fate", "why_document", "why_record", "why_url"]

_MOST = 100
"""Records of one URL or place that are told about."""

_SHORTEST_PREFIX = 4
_DEEPEST = 8  # a survivor that was dropped in turn, and so on
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fate:
    """What became of one record."""

    outcome: Literal["kept", "dropped", "quarantined"]
    version: int
    "The version that says so."
    values: dict[str, Any]
    "Its row, as JSON values: hashes in hex, `source` and, where it was kept, `shard` among them."
    survivors: tuple[Fate, ...] = ()
    "What became of the document that was to be kept in its place."

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        answer: dict[str, Any] = {"outcome": self.outcome, "version": self.version, **self.values}
        if self.outcome == "dropped" and self.values["survivor"] is not None:
            answer["survivors"] = [fate.to_json() for fate in self.survivors]
        return answer


def why_document(
    dataset: Dataset | str, document: str, *, progress: Progress = NO_PROGRESS
) -> list[Fate]:
    """Returns what became of a document; several have an answer where a record id was read twice.

    Args:
        dataset: a version.
        document: its doc_id, the first 4 digits or more of it, or the input's own record id.
        progress: hears of tables that are read where there is no index.

    Raises:
        UnknownReferenceError: no record has it, or several documents begin with these digits.
        DamagedError: a table or an index can't be read.
    """
    _check_text(document)
    opened = open_dataset(dataset) if isinstance(dataset, str) else dataset
    digits = document.lower()
    if _SHORTEST_PREFIX <= len(digits) <= 2 * HASH_BYTES and _HEX.issuperset(digits):
        fates = _search(opened, id_wanted(digits), progress)
        ids = sorted({fate.values["doc_id"] for fate in fates})
        if len(ids) > 1:
            raise UnknownReferenceError(
                f"{'over ' if len(fates) >= _MOST else ''}{len(ids)} documents of {opened.url} "
                f"begin with {document}: {', '.join(ids[:3])}...; give more digits"
            )
        if fates:
            return fates
    fates = _search(opened, record_wanted(document), progress)
    if not fates:
        raise UnknownReferenceError(
            f"no record with the doc_id or record id {document} was ever read into {opened.url}; "
            f"check it (a doc_id has {2 * HASH_BYTES} hex digits, {_SHORTEST_PREFIX} of them will "
            "do); a record that couldn't be read has no id, ask for it by --file and --offset"
        )
    return fates


def why_url(dataset: Dataset | str, url: str, *, progress: Progress = NO_PROGRESS) -> list[Fate]:
    """Returns what became of all documents of a URL, which is compared as it stands in the input.

    Raises:
        As `why_document`.
    """
    _check_text(url)
    opened = open_dataset(dataset) if isinstance(dataset, str) else dataset
    url_hash = url_hashes(pa.array([url], pa.string()))[0].as_py()
    fates = _search(opened, url_wanted(url_hash), progress)
    if not fates:
        raise UnknownReferenceError(
            f"no document of this URL was ever read into {opened.url}; write it exactly as the "
            "input has it (scheme, case and slash at the end count); inputs whose URLs weren't "
            "read (`fields: {url: ...}`) can't be found by them"
        )
    return fates


def why_record(
    dataset: Dataset | str, *, file: str, offset: int, progress: Progress = NO_PROGRESS
) -> list[Fate]:
    """Returns what became of the records at a place of an input file, those without an id too.

    Args:
        dataset: a version.
        file: its name relative to the input's root, as `inputs` has it.
        offset: byte in the uncompressed file; of Parquet the row group, whose rows all answer.
        progress: hears of tables that are read.

    Raises:
        As `why_document`.
    """
    _check_text(file)
    opened = open_dataset(dataset) if isinstance(dataset, str) else dataset
    fates = _search(
        opened,
        origin_wanted(file, offset),
        progress,
        also=lambda version: _quarantined(version, file, offset),
    )
    if not fates:
        raise _unknown_place(opened, file, offset)
    return fates


def _check_text(text: str) -> None:
    """Raises: UsageError: bytes of the command line that aren't text, as no input holds them."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{text!a} isn't UTF-8; no input holds it; write it in UTF-8") from error


def _search(
    dataset: Dataset,
    wanted: Wanted,
    progress: Progress,
    also: Callable[[Dataset], Iterable[Fate]] = lambda _: (),
) -> list[Fate]:
    """Returns what the first version says that says something."""
    read: set[str] = set()
    for version in _versions(dataset):
        fates = list(also(version))
        rows = find(version, wanted, limit=_MOST, skip=read, progress=progress)
        fates += [_fate(version, row, progress) for row in rows]
        if fates:
            return fates
    return []


def _versions(dataset: Dataset) -> Iterator[Dataset]:
    """Yields the version, then the others with other content, the newest first."""
    yield dataset
    seen = {dataset.manifest.digests.logical}
    retired = read_retired(dataset.repository.store)
    for entry in reversed(log_entries(dataset.repository)):
        if entry.version in retired or entry.manifest == dataset.manifest_sha256:
            continue
        other = dataset.repository.open(entry.version)
        if other.manifest.digests.logical not in seen:
            seen.add(other.manifest.digests.logical)
            yield other


def _fate(dataset: Dataset, row: FoundRow, progress: Progress, depth: int = 0) -> Fate:
    values = {name: _json(name, value) for name, value in row.values.items()}
    source, number = row.table
    if source is not None:
        values |= {"source": source, "shard": number}
        return Fate(outcome="kept", version=dataset.version, values=values)
    survivors: list[Fate] = []
    if row.values["survivor"] is not None and depth < _DEEPEST:
        wanted = id_wanted(row.values["survivor"].hex())
        found = find(dataset, wanted, limit=_MOST, progress=progress)
        survivors = [_fate(dataset, survivor, progress, depth + 1) for survivor in found]
    return Fate(
        outcome="dropped", version=dataset.version, values=values, survivors=tuple(survivors)
    )


def _quarantined(dataset: Dataset, file: str, offset: int) -> Iterator[Fate]:
    table = dataset.quarantine()
    place = pc.and_(pc.equal(table["source_file"], file), pc.equal(table["source_offset"], offset))
    for values in table.filter(place).to_pylist():
        shown = {**values, "raw": values["raw"].decode("utf-8", "backslashreplace")}
        yield Fate(outcome="quarantined", version=dataset.version, values=shown)


def _json(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if name == "url_hash" and value is not None:
        return f"{value:016x}"
    return value


def _unknown_place(dataset: Dataset, file: str, offset: int) -> UnknownReferenceError:
    files = sorted(set(dataset.inputs()["file"].to_pylist()))
    if file not in files:
        near = difflib.get_close_matches(file, files, n=3) or list(islice(files, 3))
        hint = f"did you mean {' or '.join(near)}? (`datapipe sql` has the names in documents)"
        return UnknownReferenceError(f"{dataset.url} has read no file {file}; {hint}")
    return UnknownReferenceError(
        f"no record of {file} begins at {offset}; give the byte at which it begins in the "
        "uncompressed file, of Parquet the row group"
    )
