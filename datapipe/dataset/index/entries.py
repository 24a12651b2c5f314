"""Entries of an index: a 64-bit hash and the place of a row, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.dataset.tables import HASH_BYTES

__all__ = [
    "COLUMNS",
    "Entries",
    "concatenate",
    "domain_key",
    "entries_of",
    "id_key",
    "join",
    "places",
]

_ROWS_AT_ONCE = 1000

UInt64s = npt.NDArray[np.uint64]

COLUMNS = {"doc": "doc_id", "url": "url_hash", "domain": "domain"}
"""What each kind of index is over; a table that lacks the column isn't in it."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Rows of an index."""

    hash: UInt64s
    place: UInt64s
    """The number of the table in the upper 32 bits, of the row in it in the lower ones."""

    def __len__(self) -> int:
        return len(self.hash)

    @property
    def table(self) -> npt.NDArray[np.int32]:
        """Numbers of the tables."""
        return (self.place >> np.uint64(32)).astype(np.int32)

    @property
    def row(self) -> npt.NDArray[np.int32]:
        """Numbers of the rows."""
        return (self.place & np.uint64(0xFFFFFFFF)).astype(np.int32)

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """Yields hash, table and row of each; who wants the first ones doesn't pay for all."""
        for start in range(0, len(self), _ROWS_AT_ONCE):
            part = self.part(start, start + _ROWS_AT_ONCE)
            columns = (part.hash, part.table, part.row)
            yield from zip(*(column.tolist() for column in columns), strict=True)

    def part(self, start: int, stop: int) -> Entries:
        """Returns rows [start, stop)."""
        return Entries(self.hash[start:stop], self.place[start:stop])


def entries_of(kind: str, table: pa.Table, *, number: int, first: int = 0) -> Entries:
    """Returns the entries of a docmap or of dropped rows, by row; rows without a value have none.

    Args:
        kind: of the index.
        table: has the kind's column.
        number: what the table is called in the index.
        first: number of its first row.
    """
    column = table.column(COLUMNS[kind]).combine_chunks()
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)).astype(np.uint64)
    rows += np.uint64(first)
    hashes = _HASHES[kind](column.drop_null())
    return Entries(hashes, places(np.full(len(rows), number, dtype=np.uint64), rows))


def places(tables: npt.NDArray[np.unsignedinteger], rows: UInt64s) -> UInt64s:
    """Returns the places of rows in tables."""
    return (tables.astype(np.uint64) << np.uint64(32)) | rows


def concatenate(parts: Sequence[Entries]) -> Entries:
    """Returns the rows of all parts as they follow each other."""
    if not parts:
        return Entries(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64))
    return Entries(
        np.concatenate([part.hash for part in parts]),
        np.concatenate([part.place for part in parts]),
    )


def join(parts: Sequence[Entries]) -> Entries:
    """Returns the rows of all parts, ascending by hash, then by place."""
    joined = concatenate(parts)
    order = np.argsort(joined.hash, kind="stable")
    ordered = joined.hash[order]
    if (ordered[1:] == ordered[:-1]).any():
        order = np.lexsort((joined.place, joined.hash))
    return Entries(ordered, joined.place[order])


def id_key(doc_id: bytes) -> int:
    """Returns a document's hash: the first 8 bytes of its id, so that ids sort as their hashes."""
    return int.from_bytes(doc_id[:8], "big")


def domain_key(domain: str) -> int:
    """Returns a domain's hash: BLAKE2b-64 of its UTF-8 bytes, little-endian, as of a URL."""
    return int.from_bytes(blake2b(domain.encode(), digest_size=8).digest(), "little")


def _id_hashes(ids: pa.FixedSizeBinaryArray) -> UInt64s:
    data = np.frombuffer(ids.buffers()[1] if len(ids) else b"", dtype=np.uint8)
    start = ids.offset * HASH_BYTES
    stretch = data[start : start + len(ids) * HASH_BYTES].reshape(-1, HASH_BYTES)
    return np.ascontiguousarray(stretch[:, :8]).view(">u8").reshape(-1).astype(np.uint64)


def _url_hashes(hashes: pa.UInt64Array) -> UInt64s:
    found: UInt64s = hashes.to_numpy(zero_copy_only=False).astype(np.uint64)
    return found


def _domain_hashes(domains: pa.DictionaryArray) -> UInt64s:
    if len(domains) < len(domains.dictionary):  # a few rows have the dictionary of all
        domains = domains.cast(domains.type.value_type).dictionary_encode()
    keys = [domain_key(domain) for domain in domains.dictionary.to_pylist()]
    codes = domains.indices.to_numpy(zero_copy_only=False)
    found: UInt64s = np.array(keys, dtype=np.uint64)[codes]
    return found


_HASHES = {"doc": _id_hashes, "url": _url_hashes, "domain": _domain_hashes}
