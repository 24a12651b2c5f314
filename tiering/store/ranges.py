"""Which requests fetch a set of byte ranges: near ones together, large ones in parts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Request", "coalesce_ranges", "split_range"]


@dataclass(frozen=True, slots=True)
class Request:
    """Bytes [start, stop) and the numbers of the ranges that lie in them."""

    start: int
    stop: int
    ranges: tuple[int, ...]


def coalesce_ranges(
    ranges: Sequence[tuple[int, int]], *, gap_bytes: int, max_bytes: int
) -> list[Request]:
    """Returns the requests for some (offset, length), ascending by start.

    Each range lies in exactly one request. Ranges at most `gap_bytes` apart share one as long as
    it doesn't exceed `max_bytes`; a single larger range has one of its own. Ranges of length 0
    are in none.
    """
    requests: list[Request] = []
    for number in sorted(range(len(ranges)), key=lambda number: ranges[number]):
        offset, length = ranges[number]
        if length == 0:
            continue
        stop = offset + length
        last = requests[-1] if requests else None
        if last is not None and _joins(last, offset, stop, gap_bytes, max_bytes):
            requests[-1] = Request(last.start, max(last.stop, stop), (*last.ranges, number))
        else:
            requests.append(Request(offset, stop, (number,)))
    return requests


def split_range(offset: int, length: int, *, max_bytes: int) -> list[tuple[int, int]]:
    """Returns a range as (offset, length) parts of at most `max_bytes`, ascending."""
    stop = offset + length
    return [(at, min(max_bytes, stop - at)) for at in range(offset, stop, max_bytes)]


def _joins(last: Request, start: int, stop: int, gap_bytes: int, max_bytes: int) -> bool:
    whole = max(last.stop, stop) - last.start
    return start <= last.stop + gap_bytes and (whole <= max_bytes or stop <= last.stop)
