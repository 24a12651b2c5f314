"""Looking into docmaps: the documents of a token range, and the place of a document's row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from datapipe.dataset import Dataset

__all__ = ["Docmaps", "DocumentPlace", "DocumentSpan", "ShardOf"]

_CACHED_DOCMAPS = 64
_PLACE_COLUMNS = (
    *("record_id", "source_file", "source_offset", "source_length"),
    *("token_start", "num_tokens"),
)


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
        """Returns the docmap of a shard. Raises: DamagedError: it isn't what its digest says."""
        return self._read(shard.dataset, shard.source, shard.number)

    def place(self, shard: ShardOf, row: int) -> DocumentPlace:
        """Returns the place of a document by its row in the docmap.

        Raises:
            DamagedError: the docmap isn't what its digest says.
        """
        values = self.table(shard).slice(row, 1).to_pylist()[0]
        return DocumentPlace(
            shard=shard,
            doc_id=values["doc_id"].hex(),
            **{name: values[name] for name in _PLACE_COLUMNS},
        )

    def spans(self, shard: ShardOf, *, start: int, end: int) -> list[DocumentSpan]:
        """Returns the documents that hold tokens [start, end) of a shard, in token order.

        Raises:
            DamagedError: the docmap isn't what its digest says.
        """
        table = self.table(shard)
        starts = table["token_start"].to_numpy()
        first = max(int(np.searchsorted(starts, start, side="right")) - 1, 0)
        stop = int(np.searchsorted(starts, end, side="left"))
        rows = table.slice(first, stop - first).to_pylist()
        return [span for row in rows if (span := _span(row, shard.label, start, end)).tokens > 0]


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
