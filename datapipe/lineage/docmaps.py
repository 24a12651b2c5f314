"""Looking into docmaps: the documents of a token range, and the place of a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dataset import Dataset
from datapipe.dataset.tables import HASH_BYTES
from datapipe.errors import UnknownReferenceError

__all__ = [
    "Docmaps",
    "DocumentPlace",
    "DocumentSpan",
    "ShardOf",
    "find_document",
    "unknown_document",
]

_CACHED_DOCMAPS = 64
_SUGGESTED = 3
_SHORTEST_HINT = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentSpan:
    """A document, as far as a range of tokens holds it."""

    doc_id: str
    record_id: str | None
    source: str
    source_file: str
    source_offset: int
    source_length: int
    token_start: int
    "First token of the range's part, counted in the document."
    tokens: int
    "Tokens of the document that are in the range."

    def to_json(self) -> dict[str, Any]:
        """Returns the span as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardOf:
    """A shard of a dataset version, and what its source is called in the answer."""

    dataset: Dataset
    source: str
    number: int
    label: str

    @property
    def docmap_sha256(self) -> str:
        """Digest of the docmap: equal ones need to be looked into once."""
        return self.dataset.shards(self.source).docmap_sha256[self.number]


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentPlace:
    """Where a document lies."""

    shard: ShardOf
    doc_id: str
    record_id: str | None
    source_file: str
    source_offset: int
    source_length: int
    token_start: int
    "First token in the shard."
    num_tokens: int


class Docmaps:
    """Docmaps of shards, the last 64 kept in memory."""

    def __init__(self) -> None:
        self._read = lru_cache(maxsize=_CACHED_DOCMAPS)(_read_docmap)

    def table(self, shard: ShardOf) -> pa.Table:
        """Returns the docmap of a shard."""
        return self._read(shard.dataset, shard.source, shard.number)

    def spans(self, shard: ShardOf, *, start: int, end: int) -> list[DocumentSpan]:
        """Returns the documents that hold tokens [start, end) of a shard, in token order."""
        table = self.table(shard)
        starts = table["token_start"].to_numpy()
        first = max(int(np.searchsorted(starts, start, side="right")) - 1, 0)
        stop = int(np.searchsorted(starts, end, side="left"))
        rows = table.slice(first, stop - first).to_pylist()
        return [span for row in rows if (span := _span(row, shard.label, start, end)).tokens > 0]


def find_document(
    docmaps: Docmaps, shards: Iterable[ShardOf], document: str
) -> dict[str, list[DocumentPlace]]:
    """Returns the places of a document by docmap digest; none where it isn't in any.

    Args:
        docmaps: where tables come from.
        shards: where to look; shards of one docmap are looked into once.
        document: a doc_id in hex, or the input's own record id.

    Raises:
        UnknownReferenceError: several documents have this record id.
    """
    found: dict[str, list[DocumentPlace]] = {}
    for shard in shards:
        digest = shard.docmap_sha256
        if digest not in found:
            found[digest] = list(_places(docmaps.table(shard), shard, document))
    places = [place for some in found.values() for place in some]
    if len({place.doc_id for place in places}) > 1:
        shown = ", ".join(f"{p.doc_id} ({p.shard.label}, {p.source_file})" for p in places[:5])
        raise UnknownReferenceError(
            f"{len(places)} documents have the record id {document}: which one is meant can't be "
            f"known; name one by its doc_id: {shown}"
        )
    return {digest: some for digest, some in found.items() if some}


def unknown_document(
    docmaps: Docmaps, dataset: Dataset, shards: Iterable[ShardOf], document: str
) -> UnknownReferenceError:
    """Returns the error that no document is meant, with what may have been."""
    dropped = _dropped(dataset, document)
    if dropped:
        return UnknownReferenceError(dropped)
    near: list[str] = []
    for shard in shards:
        near += _near(docmaps.table(shard), document)
        if len(near) >= _SUGGESTED:
            break
    hint = f"did you mean {' or '.join(near[:_SUGGESTED])}?" if near else "check the id"
    return UnknownReferenceError(
        f"no document of {dataset.url}@{dataset.version} has the doc_id or record id {document}; "
        f"{hint} (a doc_id is {2 * HASH_BYTES} hex digits)"
    )


def _read_docmap(dataset: Dataset, source: str, number: int) -> pa.Table:
    return dataset.docmap(source, number).combine_chunks()


def _span(row: dict[str, Any], label: str, start: int, end: int) -> DocumentSpan:
    begin, stop = row["token_start"], row["token_start"] + row["num_tokens"]
    first = max(begin, start)
    return DocumentSpan(
        doc_id=row["doc_id"].hex(),
        record_id=row["record_id"],
        source=label,
        source_file=row["source_file"],
        source_offset=row["source_offset"],
        source_length=row["source_length"],
        token_start=first - begin,
        tokens=min(stop, end) - first,
    )


def _places(table: pa.Table, shard: ShardOf, document: str) -> Iterator[DocumentPlace]:
    for row in table.filter(_matches(table, document)).to_pylist():
        yield DocumentPlace(
            shard=shard,
            doc_id=row["doc_id"].hex(),
            record_id=row["record_id"],
            source_file=row["source_file"],
            source_offset=row["source_offset"],
            source_length=row["source_length"],
            token_start=row["token_start"],
            num_tokens=row["num_tokens"],
        )


def _matches(table: pa.Table, document: str) -> pa.ChunkedArray:
    by_record = pc.fill_null(pc.equal(table["record_id"], document), False)
    doc_id = _doc_id(document)
    if doc_id is None:
        return by_record
    return pc.or_(by_record, pc.equal(table["doc_id"], pa.scalar(doc_id, pa.binary(HASH_BYTES))))


def _doc_id(document: str) -> bytes | None:
    try:
        doc_id = bytes.fromhex(document)
    except ValueError:
        return None
    return doc_id if len(doc_id) == HASH_BYTES else None


def _dropped(dataset: Dataset, document: str) -> str | None:
    table = dataset.dropped()
    rows = table.filter(_matches(table, document)).slice(0, 1).to_pylist()
    if not rows:
        return None
    row = rows[0]
    survivor = f"; {row['survivor'].hex()} was kept in its place" if row["survivor"] else ""
    return (
        f"document {document} isn't in {dataset.url}@{dataset.version}: stage {row['stage']} "
        f"removed it by rule {row['rule']}{survivor}, so no step saw it; ask for the document "
        "that was kept"
    )


def _near(table: pa.Table, document: str) -> list[str]:
    if len(document) < _SHORTEST_HINT:
        return []
    hexes = [doc_id.hex() for doc_id in _with_prefix(table, document.lower())]
    similar = pc.fill_null(
        pc.match_substring(table["record_id"], document, ignore_case=True), False
    )
    records: list[str] = table.filter(similar).slice(0, _SUGGESTED)["record_id"].to_pylist()
    return hexes + records


def _with_prefix(table: pa.Table, prefix: str) -> list[bytes]:
    try:
        begin = bytes.fromhex(prefix[: len(prefix) // 2 * 2])[:HASH_BYTES]
    except ValueError:
        return []
    column = table["doc_id"].combine_chunks()
    ids = _bytes_of(column)
    same = (ids[:, : len(begin)] == np.frombuffer(begin, dtype=np.uint8)).all(axis=1)
    return [bytes(row) for row in ids[same][:_SUGGESTED]]


def _bytes_of(column: pa.FixedSizeBinaryArray) -> npt.NDArray[np.uint8]:
    data = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    start = column.offset * HASH_BYTES
    return data[start : start + len(column) * HASH_BYTES].reshape(-1, HASH_BYTES)
