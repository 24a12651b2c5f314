"""Writing one token shard: a stretch of every unit, merged into the planned order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.dataset import Repository, ShardRecord
from datapipe.dataset.tables import DOCMAP
from datapipe.engine.encode_unit import ENCODED, TOKENS, gather_spans
from datapipe.engine.layout import RowRange, document_order
from datapipe.engine.work import Piece, Work

__all__ = ["ShardTask", "write_shard"]


@dataclass(frozen=True, slots=True)
class ShardTask:
    """One shard to write."""

    work: Work
    repository: Repository
    key: str
    source: str
    number: int
    dtype: str
    rows: tuple[tuple[Piece, RowRange], ...]
    """Every encoded unit that gives something, and what."""

    @property
    def piece(self) -> Piece:
        """Where the record lies; the shard itself goes into the dataset."""
        return Piece("shards", self.key)


def write_shard(task: ShardTask) -> ShardRecord:
    """Returns the shard's record, writing its objects unless they are there already."""
    record = task.work.record(task.piece)
    if record is not None:
        found = ShardRecord.from_json(record)
        if task.repository.holds_shard(found):
            return found
    written = _write(task)
    task.work.finish(task.piece, written.to_json())
    return written


def _write(task: ShardTask) -> ShardRecord:
    parts = [_read_part(task, piece, rows) for piece, rows in task.rows]
    documents = pa.concat_tables([table for table, _ in parts]).combine_chunks()
    tokens = np.concatenate([ids for _, ids in parts])
    num_tokens = documents["num_tokens"].to_numpy()
    starts = np.cumsum(num_tokens) - num_tokens
    order = document_order(documents)
    ordered = documents.take(pa.array(order))
    return task.repository.write_shard(
        gather_spans(tokens, starts[order], num_tokens[order]),
        source=task.source,
        number=task.number,
        docmap=_docmap(ordered),
        text_bytes=int(documents["text_bytes"].to_numpy().sum()),
    )


def _read_part(task: ShardTask, piece: Piece, rows: RowRange) -> tuple[pa.Table, npt.NDArray[Any]]:
    tokens = np.empty(rows.num_tokens, dtype=task.dtype)
    with task.work.open(piece, TOKENS) as view:
        view.read_into(tokens.data.cast("B"), rows.token_start * tokens.itemsize)
    return task.work.get_rows(piece, ENCODED, rows.start, rows.stop), tokens


def _docmap(documents: pa.Table) -> pa.Table:
    num_tokens = documents["num_tokens"].to_numpy()
    starts = pa.array(np.cumsum(num_tokens) - num_tokens)
    return documents.append_column("token_start", starts).select(DOCMAP.names).cast(DOCMAP)
