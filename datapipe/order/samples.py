"""Samples of a shard: which tokens a sample has, and which samples hold a token.

A shard of n tokens has n - 1 (input, label) pairs. Sample i has the inputs [i T, i T + T) and the
labels one further; with `tail="pad"` the last one may be short and every pair occurs exactly
once, with `tail="drop"` the pairs that fill no whole sample are left out.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from datapipe.order.permutation import Int64s

__all__ = ["TAILS", "Tail", "TokenRuns", "num_samples", "samples_holding", "token_runs"]

Tail = Literal["pad", "drop"]
TAILS: tuple[Tail, ...] = ("pad", "drop")


class TokenRuns(NamedTuple):
    """The tokens of samples inside their shards, int64 arrays of one length.

    Sample k reads the tokens [start, start + num_pairs] of its shard, both ends included: inputs
    are the first num_pairs of them, labels the last. num_pairs < T means padding.
    """

    start: Int64s
    num_pairs: Int64s


def num_samples(num_tokens: npt.ArrayLike, *, seq_len: int, tail: Tail) -> Int64s:
    """Returns the number of samples of shards of `num_tokens` tokens; 0 for 0 or 1 token."""
    pairs = np.maximum(np.asarray(num_tokens, dtype=np.int64) - 1, 0)
    if tail == "pad":
        pairs += seq_len - 1
    return np.floor_divide(pairs, seq_len)


def token_runs(samples: Int64s, *, num_tokens: Int64s, seq_len: int) -> TokenRuns:
    """Returns where samples (index within their shard) of shards of `num_tokens` tokens lie."""
    start = samples * seq_len
    return TokenRuns(start, np.minimum(num_tokens - 1 - start, seq_len))


def samples_holding(
    token_start: npt.ArrayLike,
    *,
    num_tokens: npt.ArrayLike,
    shard_tokens: npt.ArrayLike,
    seq_len: int,
    tail: Tail,
) -> tuple[Int64s, Int64s]:
    """Returns the samples [first, end) of a shard that hold any of a run of its tokens.

    A sample holds a token if the token is one of its inputs or one of its labels.

    Args:
        token_start: first token of each run.
        num_tokens: length of each run.
        shard_tokens: number of tokens of each run's shard.
        seq_len: T, the tokens of a sample.
        tail: whether a short last sample exists.
    """
    start = np.asarray(token_start, dtype=np.int64)
    last = start + np.asarray(num_tokens, dtype=np.int64) - 1
    total = np.asarray(shard_tokens, dtype=np.int64)
    first = np.maximum(start - 1, 0) // seq_len
    end = np.minimum(last // seq_len + 1, num_samples(total, seq_len=seq_len, tail=tail))
    return first, np.where(last < start, first, np.maximum(end, first))
