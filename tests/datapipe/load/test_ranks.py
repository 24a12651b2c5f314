from __future__ import annotations

import pytest

from datapipe.errors import UsageError
from datapipe.load.ranks import resolve_ranks

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "8"}
MPIRUN = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}
MPICH = {"PMI_RANK": "1", "PMI_SIZE": "4"}
SRUN = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2"}
SBATCH = {"SLURM_PROCID": "0", "SLURM_NTASKS": "16", "SLURM_JOB_ID": "7"}
SALLOC = {"SLURM_NTASKS": "16", "SLURM_JOB_ID": "7"}
AGENT = {"TORCHELASTIC_RUN_ID": "none"}


@pytest.mark.parametrize(
    ("given", "group", "environment", "expected"),
    [
        pytest.param((None, None), None, {}, (0, 1, "one process"), id="alone"),
        pytest.param((None, None), None, TORCHRUN, (3, 8, "RANK"), id="torchrun"),
        pytest.param((None, None), None, MPIRUN, (3, 4, "OMPI_COMM_WORLD_RANK"), id="Open MPI"),
        pytest.param((None, None), None, MPICH, (1, 4, "PMI_RANK"), id="MPICH"),
        pytest.param((None, None), None, SRUN, (1, 2, "SLURM_PROCID"), id="srun"),
        pytest.param((None, None), None, SBATCH, (0, 1, "one process"), id="batch script"),
        pytest.param((None, None), None, SALLOC, (0, 1, "one process"), id="shell of salloc"),
        pytest.param((None, None), None, SBATCH | MPIRUN, (3, 4, "OMPI"), id="mpirun in sbatch"),
        pytest.param((None, None), None, SRUN | MPIRUN, (3, 4, "OMPI"), id="mpirun through srun"),
        pytest.param((None, None), None, SRUN | TORCHRUN, (3, 8, "RANK"), id="torchrun by srun"),
        pytest.param((None, None), None, MPIRUN | TORCHRUN, (3, 8, "RANK"), id="torchrun by MPI"),
        pytest.param(
            (None, None),
            None,
            SRUN | AGENT | {"RANK": "0", "WORLD_SIZE": "2"},
            (0, 2, "RANK"),
            id="torchrun that numbers nodes otherwise",
        ),
        pytest.param(
            (None, None),
            None,
            MPIRUN | {"RANK": "3", "WORLD_SIZE": "4"},
            (3, 4, "RANK"),
            id="two that agree",
        ),
        pytest.param((1, 2), None, {"RANK": "x"}, (1, 2, "arguments"), id="arguments over half"),
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
        pytest.param(
            (None, None),
            None,
            {"SLURM_PROCID": "1", "SLURM_NTASKS": "2"},
            "not SLURM_STEP_NUM_TASKS",
            id="second task without the step's size",
        ),
        pytest.param(
            (None, None),
            None,
            {"OMPI_COMM_WORLD_SIZE": "2"},
            "not OMPI_COMM_WORLD_RANK",
            id="half MPI",
        ),
        pytest.param(
            (None, None),
            None,
            MPIRUN | {"RANK": "0", "WORLD_SIZE": "1"},
            "RANK and WORLD_SIZE .* rank 0 of 1, OMPI_COMM_WORLD_RANK .* rank 3 of 4",
            id="RANK left over",
        ),
        pytest.param(
            (None, None),
            None,
            SRUN | {"RANK": "0", "WORLD_SIZE": "2"},
            "RANK .* rank 0 of 2, SLURM_PROCID .* rank 1 of 2",
            id="another rank by srun",
        ),
        pytest.param(
            (None, None),
            None,
            MPIRUN | MPICH,
            "OMPI_.* rank 3 of 4, PMI_RANK .* rank 1 of 4",
            id="two MPIs",
        ),
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
