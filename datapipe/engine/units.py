"""Units: the smallest pieces of build work, planned from the inputs alone.

A unit is some ranges of files of one source. Units never depend on the number of workers, so the
same unit has the same key whoever runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from datapipe.engine.sources import SourceInputs
from datapipe.read import FileRange, Format, plan_ranges

__all__ = ["UNIT_BYTES", "Unit", "group_ranges", "plan_units", "unpacked_bytes"]

UNIT_BYTES = 4 << 20
"""Unpacked bytes a unit aims at, at least: small enough that two workers share 20 MB of text
evenly, large enough that making it durable (some 50 ms) is a few percent of tokenizing it."""
MOST_UNIT_BYTES = 64 << 20
"""The same at most: what a worker holds of a unit's tokens stays small."""
UNITS_OF_SOURCE = 256
"""Large inputs are cut into about so many units, since each shard reads a part of each unit."""
PACKED_TO_TEXT = 3
"""Text packs to about a third (zstd and gzip on books, manual pages and documentation)."""
UNIT_RANGES = 2_000
"""Ranges a unit holds at most: a folder of tiny files is cut too."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Ranges of files of one source that are read in one pass."""

    source: str
    ranges: tuple[FileRange, ...]
    num_bytes: int
    """Stored bytes, about."""


def plan_units(
    inputs: SourceInputs, cut: Mapping[str, Sequence[FileRange]] = MappingProxyType({})
) -> Iterator[Unit]:
    """Yields the units of one input entry, in the order of its files.

    Args:
        inputs: the entry.
        cut: the ranges of files that were cut, by path.
    """
    total = sum(file.size_bytes for file, _ in inputs.files)
    unit_bytes = max(UNIT_BYTES, min(total // UNITS_OF_SOURCE, MOST_UNIT_BYTES))
    return group_ranges(
        inputs.source, _sized_ranges(inputs, cut, unit_bytes), unit_bytes=unit_bytes
    )


def _sized_ranges(
    inputs: SourceInputs, cut: Mapping[str, Sequence[FileRange]], unit_bytes: int
) -> Iterator[tuple[FileRange, int]]:
    for file, format in inputs.files:
        ranges = cut.get(file.path) or plan_ranges(file, format, target_bytes=unit_bytes)
        for piece in ranges:
            yield piece, file.size_bytes // len(ranges)


def unpacked_bytes(format: Format, size: int) -> int:
    """Returns about how many bytes `size` stored ones are unpacked."""
    return size * (1 if format.compression == "none" else PACKED_TO_TEXT)


def group_ranges(
    source: str, ranges: Iterable[tuple[FileRange, int]], *, unit_bytes: int
) -> Iterator[Unit]:
    """Groups (range, stored bytes), in the order given, into units of about `unit_bytes`."""
    group: list[FileRange] = []
    stored = unpacked = 0
    for piece, size in ranges:
        weight = unpacked_bytes(piece.format, size)
        if group and (unpacked + weight > unit_bytes or len(group) == UNIT_RANGES):
            yield Unit(source, tuple(group), stored)
            group, stored, unpacked = [], 0, 0
        group.append(piece)
        stored += size
        unpacked += weight
    if group:
        yield Unit(source, tuple(group), stored)
