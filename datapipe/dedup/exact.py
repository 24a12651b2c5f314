"""Exact duplicates: equal texts, decided on 128 bits; which one stays depends on nothing but them.

Pure: keys and ranks in, survivors out. One sort of integers puts equal keys side by side; ranks are
compared within those groups, without sorting.
10 million rows take 2 s when all keys differ and 6 s when four fifths share one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dataset.tables import HASH_BYTES
from datapipe.documents import content_hashes

__all__ = [
    "EXACT_VERSION",
    "choose_survivors",
    "comparison_keys",
    "key_words",
    "rank_columns",
]

EXACT_VERSION = 1
"""Grows whenever the same documents may get another survivor."""

Words = npt.NDArray[np.uint64]


def comparison_keys(batch: pa.RecordBatch) -> pa.FixedSizeBinaryArray:
    """Returns what is compared: BLAKE2b-128 of each document's text as it now stands."""
    return content_hashes(batch.column("text"))


def key_words(keys: pa.FixedSizeBinaryArray | pa.ChunkedArray) -> Words:
    """Returns 16-byte keys as uint64 [rows, 2]; rows compare like the bytes do."""
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    buffer = keys.buffers()[1]
    if buffer is None or not len(keys):
        return np.empty((0, 2), dtype=np.uint64)
    words = np.frombuffer(buffer, ">u8", count=2 * len(keys), offset=keys.offset * HASH_BYTES)
    return words.astype(np.uint64).reshape(-1, 2)


def rank_columns(
    *,
    source_order: npt.NDArray[np.integer],
    content_hash: pa.FixedSizeBinaryArray | pa.ChunkedArray,
    source_file: pa.Array | pa.ChunkedArray,
    source_offset: npt.NDArray[np.int64],
    source_length: npt.NDArray[np.int64],
) -> list[npt.NDArray[np.generic]]:
    """Returns what decides between equal documents, most important first; the smallest stays.

    Args:
        source_order: place of each document's source among the inputs.
        content_hash: of the text as read.
        source_file: relative name; names compare by their UTF-8 bytes.
        source_offset: see DOCUMENTS.
        source_length: see DOCUMENTS.
    """
    words = key_words(content_hash)
    files = _ranks(source_file)
    return [source_order, words[:, 0], words[:, 1], files, source_offset, source_length]


def choose_survivors(
    keys: Words,
    ranks: Sequence[npt.NDArray[np.generic]],
    *,
    existing: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.int64]:
    """Returns for each row which row stays in its place: int64 [rows]; its own number if it stays.

    Of rows with equal keys the one with the smallest ranks stays. Rows that exist already all
    stay, and the smallest of them stands for new rows. The answer doesn't depend on the order of
    the rows as long as ranks tell them apart; rows that are equal in everything go by place.

    Args:
        keys: uint64 [rows, 2], see `key_words`.
        ranks: columns [rows], most important first.
        existing: bool [rows], documents that an earlier version holds; default: none.
    """
    survivors = np.arange(len(keys), dtype=np.int64)
    rows = _candidates(keys)
    if not len(rows):
        return survivors
    old = existing[rows] if existing is not None else np.zeros(len(rows), dtype=bool)
    first = _starts_of_runs(keys[rows])
    chosen = _smallest(np.cumsum(first) - 1, [(~old).view(np.int8), *(r[rows] for r in ranks)])
    survivors[rows] = np.where(old, rows, rows[chosen][np.cumsum(first) - 1])
    return survivors


def _candidates(keys: Words) -> npt.NDArray[np.int64]:
    """Returns the rows whose first key word is there more than once, ascending by key, then row."""
    order = np.argsort(keys[:, 0], kind="stable")
    words = keys[order, 0]
    equal = words[1:] == words[:-1]
    shared = np.zeros(len(keys), dtype=bool)
    shared[1:] = equal
    shared[:-1] |= equal
    rows = order[shared]
    second = keys[rows, 1]
    halves_equal = keys[rows[1:], 0] == keys[rows[:-1], 0]
    if (halves_equal & (second[1:] != second[:-1])).any():
        rows = rows[np.lexsort((second, keys[rows, 0]))]  # half of a key collided
    return rows


def _starts_of_runs(keys: Words) -> npt.NDArray[np.bool_]:
    first = np.ones(len(keys), dtype=bool)
    first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return first


def _smallest(
    groups: npt.NDArray[np.int64], columns: Sequence[npt.NDArray[np.generic]]
) -> npt.NDArray[np.int64]:
    """Returns the row of each group that is smallest by the columns; `groups` ascends from 0."""
    left = np.arange(len(groups))
    for column in columns:
        values, group = column[left], groups[left]
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        left = left[values == np.minimum.reduceat(values, starts)[group]]
    return left[np.flatnonzero(np.diff(groups[left], prepend=-1))]


def _ranks(names: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Returns the rank of each name among the distinct ones."""
    if isinstance(names, pa.ChunkedArray):
        names = names.unify_dictionaries().combine_chunks()
    if not pa.types.is_dictionary(names.type):
        names = names.dictionary_encode()
    distinct = names.dictionary.cast(pa.binary())
    ranks = pc.rank(distinct, tiebreaker="dense").to_numpy()
    return np.asarray(ranks[names.indices.to_numpy()], dtype=np.int64)
