"""Which documents go into which shard: pure planning.

The documents of a source stand in the order of a keyed hash of their content, so every shard is a
fair sample of its source and the layout is the same whatever files the documents came in. Order:
(oversize, shuffle key, content hash, file, offset, length); equal texts have equal tokens, so what
comes after the content hash changes no shard. A document larger than a shard stands behind all
others and gets a shard of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dedup import key_words
from datapipe.order.permutation import mix

__all__ = ["RowRange", "ShardPlan", "document_order", "plan_shards", "shuffle_keys"]

UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows [start, stop) of the documents of one encoded unit, and the tokens they hold."""

    unit: int
    start: int
    stop: int
    token_start: int
    num_tokens: int


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """One shard to write: from each unit one stretch of rows."""

    number: int
    num_tokens: int
    rows: tuple[RowRange, ...]


def shuffle_keys(content_hashes: pa.Array, *, seed: int) -> UInt64:
    """Returns the keyed hash of each 16-byte content hash that orders a source's documents."""
    words = key_words(content_hashes)
    return mix(mix(words[:, 0] ^ np.uint64(mix(seed))) ^ words[:, 1])


def document_order(table: pa.Table) -> Int64:
    """Returns the rows of a table of encoded documents in the order that shards hold them.

    Args:
        table: columns oversize, shuffle_key, content_hash, source_file, source_offset,
            source_length.

    Returns:
        int64 [rows]: the order's permutation.
    """
    keys = table["shuffle_key"].to_numpy()
    oversize = table["oversize"].to_numpy()
    order = np.lexsort((keys, oversize))
    ranked = keys[order]
    tied = np.zeros(len(order), dtype=bool)
    if len(order) > 1:
        same = ranked[1:] == ranked[:-1]
        tied[1:] |= same
        tied[:-1] |= same
    if tied.any():
        order[tied] = _break_ties(table, order[tied])
    return order


def _break_ties(table: pa.Table, rows: Int64) -> Int64:
    names = ["oversize", "shuffle_key", "content_hash"]
    names += ["source_file", "source_offset", "source_length"]
    few = table.select(names).take(pa.array(rows))
    order = pc.sort_indices(few, sort_keys=[(name, "ascending") for name in names])
    return np.asarray(rows[order.to_numpy()])


def plan_shards(
    units: Sequence[pa.Table], *, shard_tokens: int, first_number: int
) -> list[ShardPlan]:
    """Plans the shards of one source.

    Args:
        units: of each encoded unit the columns of `document_order` and num_tokens, in its order.
        shard_tokens: tokens a shard should hold; they come out equal to within one document.
        first_number: number of the first shard.

    Returns:
        The shards in order of their numbers.
    """
    table = pa.concat_tables(units) if units else None
    if table is None or table.num_rows == 0:
        return []
    order = document_order(table)
    unit_of_row = np.repeat(np.arange(len(units)), [unit.num_rows for unit in units])[order]
    num_tokens = table["num_tokens"].to_numpy()[order]
    oversize = table["oversize"].to_numpy()[order]
    ends = shard_ends(num_tokens, oversize, shard_tokens=shard_tokens)
    return _assign_rows(unit_of_row, num_tokens, ends, len(units), first_number)


def shard_ends(num_tokens: Int64, oversize: npt.NDArray[np.bool_], *, shard_tokens: int) -> Int64:
    """Returns where each shard ends, as document counts: equal shares, then each oversize alone."""
    regular = int(len(oversize) - np.count_nonzero(oversize))
    alone = np.arange(regular + 1, len(oversize) + 1)
    if regular == 0:
        return alone
    cumulative = np.cumsum(num_tokens[:regular])
    total = int(cumulative[-1])
    count = max(1, -(-total // shard_tokens))
    share, rest = divmod(total, count)
    parts = np.arange(1, count, dtype=np.int64)
    ends = np.searchsorted(cumulative, parts * share + parts * rest // count) + 1
    ends = np.append(np.minimum(ends, regular), regular)
    return np.unique(np.concatenate([ends, alone]))


def _assign_rows(
    unit_of_row: Int64, num_tokens: Int64, ends: Int64, num_units: int, first_number: int
) -> list[ShardPlan]:
    rows_taken = np.zeros(num_units, dtype=np.int64)
    tokens_taken = np.zeros(num_units, dtype=np.int64)
    plans = []
    begin = 0
    for number, end in enumerate(ends.tolist(), start=first_number):
        units = unit_of_row[begin:end]
        rows = np.bincount(units, minlength=num_units)
        tokens = np.zeros(num_units, dtype=np.int64)
        np.add.at(tokens, units, num_tokens[begin:end])
        ranges = tuple(
            RowRange(
                unit=unit,
                start=int(rows_taken[unit]),
                stop=int(rows_taken[unit] + rows[unit]),
                token_start=int(tokens_taken[unit]),
                num_tokens=int(tokens[unit]),
            )
            for unit in np.flatnonzero(rows).tolist()
        )
        plans.append(ShardPlan(number, int(tokens.sum()), ranges))
        rows_taken += rows
        tokens_taken += tokens
        begin = end
    return plans
