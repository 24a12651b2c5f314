from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datapipe.dataset.index import sorting
from datapipe.dataset.index.entries import Entries, concatenate
from datapipe.dataset.index.sorting import Sorter, merge

HASHES = st.lists(st.sampled_from([0, 1, 2, 7, 2**63, 2**64 - 1]), max_size=60)


def entries(rows: list[tuple[int, int]]) -> Entries:
    columns = [np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True)]
    return Entries(*columns) if columns else concatenate([])


def rows_of(found: Entries) -> list[tuple[int, int]]:
    return list(zip(found.hash.tolist(), found.place.tolist(), strict=True))


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "_BLOCK_ROWS", 3)


@given(HASHES, st.integers(1, 20), st.integers(1, 7))
def test_entries_come_back_sorted_whatever_fits_in_memory(
    hashes: list[int], run_rows: int, at_once: int
) -> None:
    rows = [(hash_, place) for place, hash_ in enumerate(hashes)]
    with closing(Sorter(run_rows=run_rows)) as sorter:
        for start in range(0, len(rows), at_once):
            sorter.add(entries(rows[start : start + at_once]))
        assert [row for block in sorter.sorted() for row in rows_of(block)] == sorted(rows)


@given(st.lists(st.lists(st.integers(0, 3), max_size=20), max_size=4), st.integers(1, 4))
def test_streams_merge_by_hash_and_place(streams: list[list[int]], block: int) -> None:
    place = iter(range(10_000, 0, -1))
    sorted_streams = [sorted((hash_, next(place)) for hash_ in stream) for stream in streams]
    merged = merge(
        iter([entries(rows[start : start + block]) for start in range(0, len(rows), block)])
        for rows in sorted_streams
    )
    found = [row for part in merged for row in rows_of(part)]
    assert found == sorted(row for rows in sorted_streams for row in rows)
