from __future__ import annotations

import pytest

from datapipe.dataset import Dataset
from datapipe.dataset.parts import Part, SourceParts

PARTS = SourceParts(
    name="train",
    parts=(
        Part(dataset=0, source="web", num_shards=2),
        Part(dataset=0, source="books", num_shards=1),
    ),
)


@pytest.mark.parametrize(
    ("shard", "expected"), [(0, ("web", 0)), (1, ("web", 1)), (2, ("books", 0))]
)
def test_shards_are_numbered_through(shard: int, expected: tuple[str, int]) -> None:
    part, number = PARTS.split(shard)
    assert (part.source, number) == expected


def test_tokens_follow_the_same_numbers(dataset: Dataset) -> None:
    assert PARTS.num_shards == 3
    assert PARTS.num_tokens([dataset]).tolist() == [7, 5, 9]


def test_shards_that_came_later_are_left_out(appended: Dataset) -> None:
    assert PARTS.num_tokens([appended]).tolist() == [7, 5, 9]
