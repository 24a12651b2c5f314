from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datapipe.engine.layout import document_order, plan_shards, shard_ends, shuffle_keys


def _documents(lengths: list[int], *, shard_tokens: int, files: str = "a") -> pa.Table:
    hashes = [hashlib.blake2b(b"%d" % n, digest_size=16).digest() for n in range(len(lengths))]
    column = pa.array(hashes, pa.binary(16))
    return pa.table(
        {
            "oversize": pa.array(np.array(lengths) > shard_tokens),
            "shuffle_key": pa.array(shuffle_keys(column, seed=0)),
            "content_hash": column,
            "source_file": pa.array([files] * len(lengths)),
            "source_offset": pa.array(np.arange(len(lengths))),
            "source_length": pa.array(np.zeros(len(lengths), dtype=np.int64)),
            "num_tokens": pa.array(np.array(lengths, dtype=np.int64)),
        }
    )


def _every(table: pa.Table, first: int, step: int) -> pa.Table:
    return table.take(pa.array(range(first, table.num_rows, step), pa.int64()))


def _sorted(table: pa.Table) -> pa.Table:
    return table.take(pa.array(document_order(table)))


@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=60),
    shard_tokens=st.integers(1, 40),
    num_units=st.integers(1, 5),
)
def test_every_document_is_in_exactly_one_shard_whatever_the_units(
    lengths: list[int], shard_tokens: int, num_units: int
) -> None:
    table = _documents(lengths, shard_tokens=shard_tokens)
    units = [_sorted(_every(table, u, num_units)) for u in range(num_units)]
    plans = plan_shards(units, shard_tokens=shard_tokens, first_number=3)
    seen = [
        units[part.unit]["source_offset"][row].as_py()
        for plan in plans
        for part in plan.rows
        for row in range(part.start, part.stop)
    ]
    assert sorted(seen) == list(range(len(lengths)))
    assert [plan.number for plan in plans] == list(range(3, 3 + len(plans)))
    assert sum(plan.num_tokens for plan in plans) == sum(lengths)


@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=60), num_units=st.integers(2, 5))
def test_shards_hold_the_same_documents_however_they_are_spread_over_units(
    lengths: list[int], num_units: int
) -> None:
    table = _documents(lengths, shard_tokens=50)
    whole = [_sorted(table)]
    parts = [_sorted(_every(table, u, num_units)) for u in range(num_units)]
    assert _contents(whole, 50) == _contents(parts, 50)


def _contents(units: list[pa.Table], shard_tokens: int) -> list[set[int]]:
    return [
        {
            units[part.unit]["source_offset"][row].as_py()
            for part in plan.rows
            for row in range(part.start, part.stop)
        }
        for plan in plan_shards(units, shard_tokens=shard_tokens, first_number=0)
    ]


def test_token_ranges_of_a_unit_follow_each_other() -> None:
    lengths = [5, 7, 9, 11, 13, 15]
    unit = _sorted(_documents(lengths, shard_tokens=20))
    plans = plan_shards([unit], shard_tokens=20, first_number=0)
    starts = np.cumsum(unit["num_tokens"].to_numpy()) - unit["num_tokens"].to_numpy()
    for plan in plans:
        (part,) = plan.rows
        assert part.token_start == starts[part.start]
        assert part.num_tokens == unit["num_tokens"].to_numpy()[part.start : part.stop].sum()


@pytest.mark.parametrize(
    ("lengths", "shard_tokens", "expected"),
    [
        pytest.param([10] * 10, 50, [5, 10], id="two-equal-shards"),
        pytest.param([10] * 10, 30, [3, 5, 8, 10], id="equal-shares-not-full-ones"),
        pytest.param([10] * 3, 1000, [3], id="one-small-shard"),
        pytest.param([0, 0, 0], 10, [3], id="documents-without-tokens"),
        pytest.param([5, 0, 0], 10, [3], id="nothing-left-behind-the-last-token"),
    ],
)
def test_shards_are_equal_shares(
    lengths: list[int], shard_tokens: int, expected: list[int]
) -> None:
    none = np.zeros(len(lengths), dtype=bool)
    ends = shard_ends(np.array(lengths, dtype=np.int64), none, shard_tokens=shard_tokens)
    assert ends.tolist() == expected


def test_a_document_larger_than_a_shard_stands_alone_behind_the_others() -> None:
    unit = _sorted(_documents([10, 200, 10, 300], shard_tokens=50))
    plans = plan_shards([unit], shard_tokens=50, first_number=0)
    assert sorted(plan.num_tokens for plan in plans[1:]) == [200, 300]
    assert plans[0].num_tokens == 20


def test_equal_texts_stand_by_file_and_offset() -> None:
    same = pa.array([b"x" * 16] * 3, pa.binary(16))
    table = pa.table(
        {
            "oversize": [False] * 3,
            "shuffle_key": pa.array(shuffle_keys(same, seed=1)),
            "content_hash": same,
            "source_file": ["b", "a", "a"],
            "source_offset": [0, 9, 2],
            "source_length": [1, 1, 1],
        }
    )
    assert document_order(table).tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("content_hash", "seed", "expected"),
    [
        (bytes(range(16)), 0, 0x13C795AF9B597597),
        (bytes(range(16)), 7, 0x2596E906320658A),
        (b"\xff" * 16, 7, 0xFD31BD50B5284754),
    ],
)
def test_shuffle_keys_are_frozen(content_hash: bytes, seed: int, expected: int) -> None:
    """Changes only with the dataset format: every content digest depends on them."""
    hashes = pa.array([bytes(16), content_hash], pa.binary(16)).slice(1)
    assert shuffle_keys(hashes, seed=seed).tolist() == [expected]
