from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiering.store.ranges import Request, coalesce_ranges, split_range

RANGES = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 80)), max_size=20)


@pytest.mark.parametrize(
    ("ranges", "requests"),
    [
        ([], []),
        ([(5, 0)], []),
        ([(0, 4), (4, 4)], [Request(0, 8, (0, 1))]),
        ([(12, 4), (0, 4)], [Request(0, 16, (1, 0))]),
        ([(0, 4), (15, 4)], [Request(0, 4, (0,)), Request(15, 19, (1,))]),
        ([(0, 60), (61, 60)], [Request(0, 60, (0,)), Request(61, 121, (1,))]),
        ([(0, 300), (10, 5)], [Request(0, 300, (0, 1))]),
    ],
)
def test_near_ranges_share_a_request(
    ranges: list[tuple[int, int]], requests: list[Request]
) -> None:
    assert coalesce_ranges(ranges, gap_bytes=10, max_bytes=100) == requests


@settings(max_examples=100)
@given(RANGES, st.integers(0, 50), st.integers(1, 100))
def test_each_range_lies_in_one_request(
    ranges: list[tuple[int, int]], gap_bytes: int, max_bytes: int
) -> None:
    requests = coalesce_ranges(ranges, gap_bytes=gap_bytes, max_bytes=max_bytes)
    numbers = [number for request in requests for number in request.ranges]
    assert sorted(numbers) == [n for n, (_, length) in enumerate(ranges) if length]
    longest = max([length for _, length in ranges], default=0)
    for request in requests:
        assert request.stop - request.start <= max(max_bytes, longest)
        for number in request.ranges:
            offset, length = ranges[number]
            assert request.start <= offset
            assert offset + length <= request.stop


@settings(max_examples=50)
@given(st.integers(0, 100), st.integers(0, 100), st.integers(1, 40))
def test_parts_are_the_whole(offset: int, length: int, max_bytes: int) -> None:
    parts = split_range(offset, length, max_bytes=max_bytes)
    whole = [at for start, size in parts for at in range(start, start + size)]
    assert whole == list(range(offset, offset + length))
    assert all(0 < size <= max_bytes for _, size in parts)
