"""What goes into one unit of work."""

import pytest

from datapipe.engine.units import UNIT_BYTES, UNIT_RANGES, group_ranges
from datapipe.read import FileRange, Format, InputFile

MIB = 1 << 20


def range_of(size_bytes: int, *, compression: str) -> tuple[FileRange, int]:
    file = InputFile(path="/raw/a", relative="a", size_bytes=size_bytes)
    format_ = Format(kind="jsonl", compression=compression)  # type: ignore[arg-type]
    return FileRange(file=file, format=format_, start=0, end=size_bytes), size_bytes


@pytest.mark.parametrize(
    ("compression", "expected"),
    [("none", [4] * 5), ("gzip", [1] * 20), ("zstd", [1] * 20)],
    ids=["plain", "gzip", "zstd"],
)
def test_units_hold_about_equal_amounts_of_text(compression: str, expected: list[int]) -> None:
    ranges = [range_of(1 * MIB, compression=compression) for _ in range(20)]
    units = list(group_ranges("web", ranges, unit_bytes=UNIT_BYTES))
    assert [unit.num_bytes // MIB for unit in units] == expected
    assert [piece for unit in units for piece in unit.ranges] == [piece for piece, _ in ranges]


def test_larger_ranges_stand_alone() -> None:
    ranges = [range_of(UNIT_BYTES * 2, compression="zstd"), range_of(1, compression="zstd")]
    assert [len(unit.ranges) for unit in group_ranges("web", ranges, unit_bytes=UNIT_BYTES)] == [
        1,
        1,
    ]


def test_a_unit_holds_a_limited_number_of_ranges() -> None:
    ranges = [range_of(1, compression="none") for _ in range(UNIT_RANGES + 1)]
    assert [len(unit.ranges) for unit in group_ranges("web", ranges, unit_bytes=UNIT_BYTES)] == [
        UNIT_RANGES,
        1,
    ]
