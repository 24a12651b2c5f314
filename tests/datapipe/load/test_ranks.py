from __future__ import annotations

import pytest

from datapipe.errors import UsageError
from datapipe.load.ranks import resolve_ranks

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "8"}
SLURM = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}


@pytest.mark.parametrize(
    ("given", "group", "environment", "expected"),
    [
        pytest.param((None, None), None, {}, (0, 1, "one process"), id="alone"),
        pytest.param((None, None), None, TORCHRUN, (3, 8, "RANK"), id="torchrun"),
        pytest.param((None, None), None, SLURM, (1, 2, "SLURM_PROCID"), id="slurm"),
        pytest.param((None, None), None, SLURM | TORCHRUN, (3, 8, "RANK"), id="torchrun in slurm"),
        pytest.param((None, None), (5, 6), TORCHRUN, (5, 6, "distributed"), id="process group"),
        pytest.param((2, 4), (5, 8), TORCHRUN, (2, 4, "arguments"), id="arguments"),
        pytest.param((2, 4), None, {}, (2, 4, "arguments"), id="arguments alone"),
    ],
)
def test_rank_and_size_come_from_the_nearest_place(
    given: tuple[int | None, int | None],
    group: tuple[int, int] | None,
    environment: dict[str, str],
    expected: tuple[int, int, str],
) -> None:
    ranks = resolve_ranks(
        dp_rank=given[0], dp_world_size=given[1], process_group=group, environment=environment
    )
    assert (ranks.dp_rank, ranks.dp_world_size) == expected[:2]
    assert expected[2] in ranks.found_in


@pytest.mark.parametrize(
    ("given", "group", "environment", "match"),
    [
        pytest.param((1, None), None, {}, "give both", id="rank without size"),
        pytest.param((None, 4), None, {}, "give both", id="size without rank"),
        pytest.param((4, 4), None, {}, "rank 4 of 4", id="rank behind size"),
        pytest.param((-1, 4), None, {}, "rank -1 of 4", id="negative rank"),
        pytest.param((0, 0), None, {}, "rank 0 of 0", id="no ranks"),
        pytest.param((0, 8), (0, 4), {}, "4 processes", id="more ranks than processes"),
        pytest.param((None, None), None, {"RANK": "1"}, "WORLD_SIZE", id="RANK alone"),
        pytest.param((None, None), None, {"WORLD_SIZE": "2"}, "not RANK", id="WORLD_SIZE alone"),
        pytest.param((None, None), None, {"SLURM_PROCID": "0"}, "SLURM_NTASKS", id="half slurm"),
        pytest.param(
            (None, None), None, {"RANK": "x", "WORLD_SIZE": "2"}, "no number", id="no number"
        ),
        pytest.param(
            (None, None), None, {"RANK": "2", "WORLD_SIZE": "2"}, "rank 2 of 2", id="outside"
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(
    given: tuple[int | None, int | None],
    group: tuple[int, int] | None,
    environment: dict[str, str],
    match: str,
) -> None:
    with pytest.raises(UsageError, match=match):
        resolve_ranks(
            dp_rank=given[0], dp_world_size=given[1], process_group=group, environment=environment
        )


@pytest.mark.parametrize(
    ("given", "group", "expected"),
    [
        pytest.param((None, None), (0, 4), True, id="first process"),
        pytest.param((None, None), (1, 4), False, id="second process"),
        pytest.param((0, 2), (0, 4), True, id="first of the peers of rank 0"),
        pytest.param((0, 2), (1, 4), False, id="its tensor-parallel peer"),
        pytest.param((0, 2), None, True, id="rank 0 by arguments"),
        pytest.param((1, 2), None, False, id="rank 1 by arguments"),
    ],
)
def test_one_process_writes_the_run_record(
    given: tuple[int | None, int | None], group: tuple[int, int] | None, expected: bool
) -> None:
    ranks = resolve_ranks(
        dp_rank=given[0], dp_world_size=given[1], process_group=group, environment={}
    )
    assert ranks.is_writer is expected
