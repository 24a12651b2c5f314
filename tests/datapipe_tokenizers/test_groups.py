from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe_tokenizers.groups import plan_groups


@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.integers(0, 50), max_size=40), limit=st.integers(1, 100))
def test_groups_cover_all_and_keep_the_limit(sizes: list[int], limit: int) -> None:
    groups = list(plan_groups(np.array(sizes, dtype=np.int64), limit=limit))
    assert [i for start, stop in groups for i in range(start, stop)] == list(range(len(sizes)))
    for start, stop in groups:
        assert stop - start == 1 or sum(sizes[start:stop]) <= limit
