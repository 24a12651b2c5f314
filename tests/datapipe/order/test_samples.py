from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datapipe.order.samples import TAILS, Tail, num_samples, samples_holding, token_runs

PAIRS = st.tuples(st.integers(0, 60), st.integers(1, 20))


@pytest.mark.parametrize(
    ("num_tokens", "pad", "drop"),
    [(0, 0, 0), (1, 0, 0), (2, 1, 0), (8, 1, 0), (9, 1, 1), (10, 2, 1), (17, 2, 2)],
)
def test_samples_of_a_shard_at_eight_tokens(num_tokens: int, pad: int, drop: int) -> None:
    assert num_samples([num_tokens], seq_len=8, tail="pad").tolist() == [pad]
    assert num_samples([num_tokens], seq_len=8, tail="drop").tolist() == [drop]


@given(PAIRS)
def test_padded_samples_hold_every_pair_once(case: tuple[int, int]) -> None:
    num_tokens, seq_len = case
    samples = np.arange(int(num_samples(num_tokens, seq_len=seq_len, tail="pad")))
    runs = token_runs(samples, num_tokens=np.full(samples.shape, num_tokens), seq_len=seq_len)
    inputs = [
        token
        for start, num in zip(runs.start.tolist(), runs.num_pairs.tolist(), strict=True)
        for token in range(start, start + num)
    ]
    assert inputs == list(range(max(num_tokens - 1, 0)))
    assert np.all(runs.num_pairs > 0)


@given(PAIRS)
def test_dropped_tails_leave_whole_samples(case: tuple[int, int]) -> None:
    num_tokens, seq_len = case
    samples = np.arange(int(num_samples(num_tokens, seq_len=seq_len, tail="drop")))
    runs = token_runs(samples, num_tokens=np.full(samples.shape, num_tokens), seq_len=seq_len)
    assert np.all(runs.num_pairs == seq_len)


@given(case=PAIRS, start=st.integers(0, 59), num=st.integers(0, 20), tail=st.sampled_from(TAILS))
def test_samples_holding_tokens_are_those_that_read_one(
    case: tuple[int, int], start: int, num: int, tail: Tail
) -> None:
    total, seq_len = case
    run = set(range(min(start, total), min(start + num, total)))
    first, end = samples_holding(
        min(start, total), num_tokens=len(run), shard_tokens=total, seq_len=seq_len, tail=tail
    )
    count = int(num_samples(total, seq_len=seq_len, tail=tail))
    holding = []
    for i in range(count):
        pairs = min(seq_len, total - 1 - i * seq_len)
        if run & set(range(i * seq_len, i * seq_len + pairs + 1)):
            holding.append(i)
    assert list(range(int(first), int(end))) == holding
