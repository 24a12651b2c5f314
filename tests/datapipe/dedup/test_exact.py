from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.dedup import choose_survivors, comparison_keys, key_words, rank_columns
from datapipe.documents import batch_from_columns


def keys(*values: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Keys of 128 bits whose halves are the two digits of each value in base 10."""
    return np.array([divmod(value, 10) for value in values], dtype=np.uint64).reshape(-1, 2)


@pytest.mark.parametrize(
    ("given_keys", "rank", "existing", "survivors"),
    [
        ([], [], [], []),
        ([1], [0], [0], [0]),
        ([1, 2, 3], [2, 1, 0], [0, 0, 0], [0, 1, 2]),
        ([1, 1, 1], [2, 0, 1], [0, 0, 0], [1, 1, 1]),
        ([1, 2, 1, 2], [0, 1, 1, 0], [0, 0, 0, 0], [0, 3, 0, 3]),
        ([1, 1, 1], [0, 1, 2], [0, 0, 1], [2, 2, 2]),
        ([1, 1, 1], [0, 2, 1], [0, 1, 1], [2, 1, 2]),
        ([1, 1], [5, 5], [0, 0], [0, 0]),
        ([10, 11, 10, 11], [3, 2, 1, 0], [0, 0, 0, 0], [2, 3, 2, 3]),
        ([11, 12, 13], [0, 0, 0], [0, 0, 0], [0, 1, 2]),
    ],
    ids=[
        "none", "one", "all different", "all equal", "two pairs", "the existing one wins",
        "all existing ones stay", "equal ranks", "halves collide", "only halves are equal",
    ],
)  # fmt: skip
def test_survivors(
    given_keys: list[int], rank: list[int], existing: list[int], survivors: list[int]
) -> None:
    chosen = choose_survivors(
        keys(*given_keys), [np.array(rank, dtype=np.int64)], existing=np.array(existing, dtype=bool)
    )
    assert chosen.tolist() == survivors


_ROWS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 2), st.integers(0, 2), st.booleans()), max_size=30
)


@settings(max_examples=200, deadline=None)
@given(rows=_ROWS, data=st.data())
def test_survivors_are_the_smallest_whatever_the_order_of_rows(
    rows: list[tuple[int, int, int, bool]], data: st.DataObject
) -> None:
    ranked = [(*row, place) for place, row in enumerate(rows)]  # the last rank tells rows apart
    shuffled = data.draw(st.permutations(ranked))
    columns = list(zip(*shuffled, strict=True)) or [()] * 5
    ranks = [np.array(columns[i], dtype=np.int64) for i in (1, 2, 4)]
    chosen = choose_survivors(
        keys(*columns[0]), ranks, existing=np.array(columns[3], dtype=np.bool_)
    )
    for row, survivor in zip(shuffled, chosen.tolist(), strict=True):
        same = [other for other in shuffled if other[0] == row[0]]
        best = min(same, key=lambda other: (not other[3], other[1], other[2], other[4]))
        assert shuffled[survivor] == (row if row[3] else best)


def test_existing_rows_may_be_left_out() -> None:
    assert choose_survivors(keys(1, 1), [np.array([1, 0])]).tolist() == [1, 1]


def test_keys_are_hashes_of_the_text_as_it_stands() -> None:
    batch = batch_from_columns(
        ["a", "b", "a"], source="s", source_file="f", offsets=[0, 1, 2], lengths=[1, 1, 1]
    )
    changed = batch.set_column(0, batch.schema.field(0), pa.array(["x"] * 3, pa.large_string()))
    digest = hashlib.blake2b(b"x", digest_size=16).digest()
    assert comparison_keys(changed).to_pylist() == [digest] * 3


def test_words_compare_like_the_bytes() -> None:
    values = [bytes([i]) * 8 + bytes([255 - i]) * 8 for i in (0, 1, 127, 128, 255)]
    array = pa.array(values, pa.binary(16))
    words = key_words(array)
    assert sorted(words.tolist()) == words.tolist()
    assert key_words(array[2:4]).tolist() == words[2:4].tolist()
    assert key_words(pa.chunked_array([array[:2], array[2:]])).tolist() == words.tolist()
    assert key_words(array[:0]).shape == (0, 2)


def test_ranks_go_by_source_then_hash_then_file_then_place() -> None:
    files = [pa.array(part).dictionary_encode() for part in (["b", "a"], ["é", "b", "Z"])]
    ranks = rank_columns(
        source_order=np.array([1, 0, 1, 0, 0]),
        content_hash=pa.array([bytes(16)] * 5, pa.binary(16)),
        source_file=pa.chunked_array(files),
        source_offset=np.arange(5),
        source_length=np.ones(5, dtype=np.int64),
    )
    assert np.lexsort(ranks[::-1]).tolist() == [4, 1, 3, 0, 2]
