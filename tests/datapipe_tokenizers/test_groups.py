"""Texts encoded group by group give what they give at once."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe_tokenizers.groups import Counts, Ids, encode_in_groups, plan_groups


def encode(texts: pa.LargeStringArray) -> tuple[Ids, Counts]:
    """A token for each character, none for spaces and three for an x."""
    ids = [[*text.replace(" ", "").replace("x", "xyz").encode()] for text in texts.to_pylist()]
    counts = np.array([len(each) for each in ids], dtype=np.int64)
    return np.array([*chain.from_iterable(ids)], dtype=np.uint32), counts


@pytest.mark.parametrize("threads", [1, 3])
@given(texts=st.lists(st.text("a x", max_size=9), max_size=30), limit=st.integers(1, 40))
def test_groups_give_what_the_whole_gives(threads: int, texts: list[str], limit: int) -> None:
    column = pa.array(texts, pa.large_string())
    ids, counts = encode_in_groups(column, encode, limit=limit, threads=threads)
    expected = encode(column)
    np.testing.assert_array_equal(ids, expected[0])
    np.testing.assert_array_equal(counts, expected[1])
    assert ids.dtype == np.dtype(np.uint32)
    assert counts.dtype == np.dtype(np.int64)


@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.integers(0, 50), max_size=40), limit=st.integers(1, 100))
def test_groups_cover_all_and_keep_the_limit(sizes: list[int], limit: int) -> None:
    groups = list(plan_groups(np.array(sizes, dtype=np.int64), limit=limit))
    assert [i for start, stop in groups for i in range(start, stop)] == list(range(len(sizes)))
    for start, stop in groups:
        assert stop - start == 1 or sum(sizes[start:stop]) <= limit
