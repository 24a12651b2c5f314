"""Where a document lies: the one place that looks kept documents up.

A doc_id is looked up in the version's index, if it has one. Else one column of the docmaps is read,
16 bytes a document for a doc_id, by as many threads as there are processors; a doc_id ends the
search where it is found. What a docmap says of a document that was found is read from the whole
docmap, whose digest is checked.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dataset import Dataset, layout
from datapipe.dataset.find import find, id_wanted
from datapipe.dataset.objects import reading
from datapipe.dataset.parquet import open_table, restore
from datapipe.dataset.tables import DOCMAP, HASH_BYTES
from datapipe.errors import UnknownReferenceError
from datapipe.observe import NO_PROGRESS, Progress
from tiering.store import ViewFile

__all__ = ["DocumentAt", "find_document", "unknown_document"]

_SUGGESTED = 3
_SHORTEST_HINT = 4
_SHARDS_A_THREAD = 4  # read before it is looked whether to go on

_Match = Callable[[pa.ChunkedArray], list[int]]


class DocumentAt(NamedTuple):
    """Where a document lies in a dataset version."""

    source: str
    shard: int
    "Number of the shard in its source."
    row: int
    "Number of the document in the shard."


class _Shard(NamedTuple):
    source: str
    number: int
    num_documents: int


def find_document(
    dataset: Dataset,
    document: str,
    *,
    source: str | None = None,
    progress: Progress = NO_PROGRESS,
) -> DocumentAt | None:
    """Returns where a document lies, None where there is no such document.

    Args:
        dataset: the version.
        document: a doc_id (32 hex digits), or the input's own record id.
        source: only documents of this source; None: of all.
        progress: hears of documents.

    Raises:
        UnknownReferenceError: several documents have this record id, or no such source.
        DamagedError: a docmap is missing or can't be read.
        DatasetError: the store can't be read.
    """
    doc_id = _doc_id(document)
    if doc_id is not None:
        hits = _by_id(dataset, doc_id, source=source, progress=progress)
        if (first := next(hits, None)) is not None:
            return first
    hits = _scan(
        dataset, "record_id", _equal_to(pa.scalar(document)), source=source, progress=progress
    )
    found = list(itertools.islice(hits, _SUGGESTED))
    if len(found) > 1:
        raise _ambiguous(dataset, document, found)
    return found[0] if found else None


def unknown_document(
    dataset: Dataset,
    document: str,
    *,
    source: str | None = None,
    progress: Progress = NO_PROGRESS,
) -> UnknownReferenceError:
    """Returns the error that no document is meant, with what may have been.

    Raises:
        DamagedError: a table or docmap can't be read.
        DatasetError: the store can't be read.
    """
    if (dropped := _dropped(dataset, document)) is not None:
        return UnknownReferenceError(dropped)
    near = _near(dataset, document, source, progress)
    hint = f"did you mean {' or '.join(near)}?" if near else "check the id"
    shown = document if document.isprintable() else repr(document)
    return UnknownReferenceError(
        f"no document of {dataset.url}@{dataset.version} has the doc_id or record id {shown}; "
        f"{hint} (a doc_id is {2 * HASH_BYTES} hex digits)"
    )


def _by_id(
    dataset: Dataset, doc_id: bytes, *, source: str | None, progress: Progress
) -> Iterator[DocumentAt]:
    if dataset.index("doc") is None:
        match = _equal_to(pa.scalar(doc_id, pa.binary(HASH_BYTES)))
        yield from _scan(dataset, "doc_id", match, source=source, progress=progress)
        return
    if source is not None:
        dataset.shards(source)  # raises for an unknown one
    for found in find(dataset, id_wanted(doc_id.hex())):
        name, number = found.table
        if name is not None and source in (None, name):
            yield DocumentAt(name, number, found.row)


def _scan(
    dataset: Dataset, column: str, match: _Match, *, source: str | None, progress: Progress
) -> Iterator[DocumentAt]:
    """Yields the documents whose value in a column matches, in the order of the shards."""

    def look(shard: _Shard) -> list[int]:
        return match(_read_column(dataset, shard, column))

    shards = _shards(dataset, source)
    progress.begin("look up", sum(shard.num_documents for shard in shards), "documents")
    num_threads = os.cpu_count() or 1
    size = num_threads * _SHARDS_A_THREAD
    try:
        with ThreadPoolExecutor(num_threads) as threads:
            for start in range(0, len(shards), size):
                some = shards[start : start + size]
                for shard, rows in zip(some, threads.map(look, some), strict=True):
                    progress.advance(shard.num_documents)
                    yield from (DocumentAt(shard.source, shard.number, row) for row in rows)
    finally:
        progress.end()


def _shards(dataset: Dataset, source: str | None) -> list[_Shard]:
    names = [source] if source is not None else [found.name for found in dataset.sources]
    return [
        _Shard(name, number, num_documents)
        for name in names
        for number, num_documents in enumerate(dataset.shards(name).num_documents.tolist())
    ]


def _read_column(dataset: Dataset, shard: _Shard, column: str) -> pa.ChunkedArray:
    path = layout.docmap_path(dataset.shards(shard.source).docmap_sha256[shard.number])
    store = dataset.repository.store
    with reading(store, path), ViewFile(store.open(path)) as file:
        return restore(open_table(file, DOCMAP, path=path), DOCMAP, path=path, columns=[column])[0]


def _equal_to(value: pa.Scalar) -> _Match:
    def rows(column: pa.ChunkedArray) -> list[int]:
        return _true_rows(pc.equal(column, value))

    return rows


def _true_rows(mask: pa.ChunkedArray) -> list[int]:
    found: list[int] = pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()
    return found


def _doc_id(document: str) -> bytes | None:
    try:
        doc_id = bytes.fromhex(document)
    except ValueError:
        return None
    return doc_id if len(doc_id) == HASH_BYTES else None


def _ambiguous(
    dataset: Dataset, document: str, found: Iterable[DocumentAt]
) -> UnknownReferenceError:
    shown = []
    for at in found:
        row = dataset.docmap(at.source, at.shard).slice(at.row, 1).to_pylist()[0]
        shown.append(f"{row['doc_id'].hex()} ({at.source}, {row['source_file']})")
    return UnknownReferenceError(
        f"several documents have the record id {document}: which one is meant can't be known; name "
        f"one by its doc_id: {', '.join(shown)}"
    )


def _dropped(dataset: Dataset, document: str) -> str | None:
    table = dataset.dropped()
    doc_id = _doc_id(document)
    mask = pc.fill_null(pc.equal(table["record_id"], document), False)
    if doc_id is not None:
        same = pc.equal(table["doc_id"], pa.scalar(doc_id, pa.binary(HASH_BYTES)))
        mask = pc.or_(mask, same)
    rows = table.filter(mask).slice(0, 1).to_pylist()
    if not rows:
        return None
    row = rows[0]
    survivor = f"; {row['survivor'].hex()} was kept in its place" if row["survivor"] else ""
    return (
        f"document {document} isn't in {dataset.url}@{dataset.version}: stage {row['stage']} "
        f"removed it by rule {row['rule']}{survivor}, so no step saw it; ask for the document "
        "that was kept"
    )


def _near(dataset: Dataset, document: str, source: str | None, progress: Progress) -> list[str]:
    """Returns ids that begin with, or contain, what was asked for; none for a whole doc_id."""
    if len(document) < _SHORTEST_HINT or _doc_id(document) is not None:
        return []
    matches: dict[str, _Match] = {"record_id": _containing(document)}
    if (prefix := _whole_bytes(document)) is not None:
        matches = {"doc_id": _beginning_with(prefix), **matches}
    near: list[str] = []
    for column, match in matches.items():
        hits = _scan(dataset, column, match, source=source, progress=progress)
        for at in itertools.islice(hits, _SUGGESTED - len(near)):
            value = dataset.docmap(at.source, at.shard)[column][at.row].as_py()
            near.append(value.hex() if column == "doc_id" else value)
    return near


def _containing(text: str) -> _Match:
    def rows(column: pa.ChunkedArray) -> list[int]:
        return _true_rows(pc.match_substring(column, text, ignore_case=True))

    return rows


def _beginning_with(prefix: bytes) -> _Match:
    def rows(column: pa.ChunkedArray) -> list[int]:
        ids = _bytes_of(column.combine_chunks())
        same = ids[:, : len(prefix)] == np.frombuffer(prefix, dtype=np.uint8)
        found: list[int] = np.flatnonzero(same.all(axis=1)).tolist()
        return found

    return rows


def _whole_bytes(document: str) -> bytes | None:
    try:
        return bytes.fromhex(document[: len(document) // 2 * 2])[:HASH_BYTES]
    except ValueError:
        return None


def _bytes_of(column: pa.FixedSizeBinaryArray) -> npt.NDArray[np.uint8]:
    data = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    start = column.offset * HASH_BYTES
    return data[start : start + len(column) * HASH_BYTES].reshape(-1, HASH_BYTES)
