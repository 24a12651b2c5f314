"""Keys and keyed permutations: all the randomness of the order, in 64-bit integers.

`mix` is splitmix64's finaliser. A permutation of [0, m) is a balanced Feistel network of exactly
8 rounds on the smallest even number of bits that covers m (4 rounds leave visible neighbours),
walked along its cycle until it lands below m: no table, at most 4 evaluations on average, and an
inverse of the same price. Golden values lock every bit of it; a change is a new spec version.
"""

from __future__ import annotations

from typing import overload

import numpy as np
import numpy.typing as npt

__all__ = [
    "Int64s",
    "UInt64s",
    "mix",
    "permute",
    "scalar_key",
    "shuffled",
    "unpermute",
    "vector_keys",
]

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

_ROUNDS = 8
_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS = (np.uint64(_FIRST), np.uint64(_SECOND))
_COVERED = np.array([4**half_bits for half_bits in range(32)], dtype=np.uint64)
_CHUNK = 1 << 16  # elements of a full shuffle worked on at a time: stays in the L2 cache


@overload
def mix(value: int) -> int: ...
@overload
def mix(value: UInt64s) -> UInt64s: ...
def mix(value: int | UInt64s) -> int | UInt64s:
    """Returns splitmix64's finaliser of 0 <= value < 2^64, of an array element by element."""
    if isinstance(value, int):
        value = ((value ^ (value >> 30)) * _FIRST) & _MASK
        value = ((value ^ (value >> 27)) * _SECOND) & _MASK
        return value ^ (value >> 31)
    return _mix_in_place(value.copy())


def scalar_key(seed: int, *parts: int) -> int:
    """Returns the key of a tuple of numbers >= 0.

    k = seed, then k = mix(k ^ mix(part_i + i * 0x9E3779B97F4A7C15)) mod 2^64 for i = 1, 2, ...
    """
    key = seed
    for i, part in enumerate(parts, start=1):
        key = mix(key ^ mix((part + _GOLDEN * i) & _MASK))
    return key


def vector_keys(key: int | UInt64s, *parts: Int64s, first: int) -> UInt64s:
    """Returns the keys of tuples whose parts from the `first`-th on (from 1) are arrays.

    `key` is the `scalar_key` of the parts before, one for all tuples or one for each.
    """
    keys = np.asarray(key, dtype=np.uint64)
    for i, part in enumerate(parts, start=first):
        mixed = _mix_in_place(part.astype(np.uint64) + np.uint64((_GOLDEN * i) & _MASK))
        keys = _mix_in_place(np.bitwise_xor(mixed, keys))
    return keys


def permute(values: Int64s, *, sizes: Int64s, keys: int | UInt64s) -> Int64s:
    """Returns where each value (0 <= value < its size) goes in the permutation of its key."""
    return _walked(values, sizes=sizes, keys=keys, inverse=False)


def unpermute(values: Int64s, *, sizes: Int64s, keys: int | UInt64s) -> Int64s:
    """Returns the inverse of `permute` with the same sizes and keys."""
    return _walked(values, sizes=sizes, keys=keys, inverse=True)


def shuffled(size: int, *, key: int) -> npt.NDArray[np.int32]:
    """Returns the whole permutation of [0, size): int32 [size], `permute` of 0, 1, 2, ...

    Round functions come from tables of 2^half_bits entries: 1 million values take about 30 ms.
    """
    half_bits = int(np.searchsorted(_COVERED, np.uint64(size)))
    tables = _round_tables(half_bits, key=key)
    result = np.empty(size, dtype=np.int32)
    for start in range(0, size, _CHUNK):
        chunk = np.arange(start, min(start + _CHUNK, size), dtype=np.uint32)
        result[start : start + chunk.size] = _walked_by_tables(chunk, size, half_bits, tables)
    return result


def _mix_in_place(values: UInt64s) -> UInt64s:
    values ^= values >> _SHIFTS[0]
    values *= _FACTORS[0]
    values ^= values >> _SHIFTS[1]
    values *= _FACTORS[1]
    values ^= values >> _SHIFTS[2]
    return values


def _walked(values: Int64s, *, sizes: Int64s, keys: int | UInt64s, inverse: bool) -> Int64s:
    bounds = sizes.astype(np.uint64)
    half_bits = np.searchsorted(_COVERED, bounds).astype(np.uint64)
    round_keys = _round_keys(keys, values.size)
    result = _network(values.astype(np.uint64), half_bits, round_keys, inverse)
    rest: npt.NDArray[np.intp] = np.flatnonzero(result >= bounds)
    walking, current = rest, result
    while rest.size:
        current, bounds, half_bits = current[rest], bounds[rest], half_bits[rest]
        round_keys = round_keys[:, rest]
        current = _network(current, half_bits, round_keys, inverse)
        result[walking] = current
        rest = np.flatnonzero(current >= bounds)
        walking = walking[rest]
    return result.astype(np.int64)


def _round_keys(keys: int | UInt64s, num: int) -> UInt64s:
    if isinstance(keys, int):
        column = np.array([mix((keys + i) & _MASK) for i in range(_ROUNDS)], dtype=np.uint64)
        return np.broadcast_to(column[:, None], (_ROUNDS, num))
    return _mix_in_place(keys[None, :] + np.arange(_ROUNDS, dtype=np.uint64)[:, None])


def _network(values: UInt64s, half_bits: UInt64s, round_keys: UInt64s, inverse: bool) -> UInt64s:
    mask: UInt64s = (np.uint64(1) << half_bits) - np.uint64(1)
    high, low = values >> half_bits, values & mask
    if inverse:
        for i in reversed(range(_ROUNDS)):
            high, low = low ^ (_mix_in_place(high ^ round_keys[i]) & mask), high
    else:
        for i in range(_ROUNDS):
            high, low = low, high ^ (_mix_in_place(low ^ round_keys[i]) & mask)
    return (high << half_bits) | low


def _round_tables(half_bits: int, *, key: int) -> list[npt.NDArray[np.uint32]]:
    halves = np.arange(1 << half_bits, dtype=np.uint64)
    mask = np.uint64((1 << half_bits) - 1)
    return [
        (_mix_in_place(halves ^ np.uint64(mix((key + i) & _MASK))) & mask).astype(np.uint32)
        for i in range(_ROUNDS)
    ]


def _walked_by_tables(
    values: npt.NDArray[np.uint32],
    size: int,
    half_bits: int,
    tables: list[npt.NDArray[np.uint32]],
) -> npt.NDArray[np.uint32]:
    mask = np.uint32((1 << half_bits) - 1)
    result = values
    open_ones = np.arange(values.size)
    while open_ones.size:
        high, low = values >> np.uint32(half_bits), values & mask
        for table in tables:
            high, low = low, high ^ table[low]
        values = (high << np.uint32(half_bits)) | low
        result[open_ones] = values
        rest = np.flatnonzero(values >= size)
        open_ones, values = open_ones[rest], values[rest]
    return result
