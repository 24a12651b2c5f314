"""Which part of each global batch this process takes: data-parallel rank and world size."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch

from datapipe.errors import UsageError

__all__ = ["Ranks", "find_ranks", "resolve_ranks"]

_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)
"""Rank and size as torchrun, Open MPI and MPICH or Intel MPI set them, the nearest first."""

_SLURM = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")
"""Set together only by srun. A batch script has SLURM_PROCID=0 and the SLURM_NTASKS of its job,
but is one process: so SLURM_NTASKS says nothing of who reads."""

_TORCHRUN = "TORCHELASTIC_RUN_ID"
"""torchrun sets it: then RANK and WORLD_SIZE are of this process, whatever started torchrun."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranks:
    """This process among those that share a global batch."""

    dp_rank: int
    dp_world_size: int
    process_rank: int
    "Rank among all processes: peers that share a dp_rank differ in it."
    found_in: str
    "Where rank and size come from, for messages and reports."

    @property
    def is_writer(self) -> bool:
        """Whether this process writes the run record: one does."""
        return self.dp_rank == 0 and self.process_rank == 0


class _Process(NamedTuple):
    rank: int
    size: int
    found_in: str


def find_ranks(*, dp_rank: int | None, dp_world_size: int | None) -> Ranks:
    """Returns this process's place now, by torch.distributed and the environment.

    Raises:
        UsageError: see `resolve_ranks`.
    """
    distributed = torch.distributed
    group = None
    if distributed.is_available() and distributed.is_initialized():
        group = (distributed.get_rank(), distributed.get_world_size())
    return resolve_ranks(
        dp_rank=dp_rank,
        dp_world_size=dp_world_size,
        process_group=group,
        environment=os.environ,
    )


def resolve_ranks(
    *,
    dp_rank: int | None,
    dp_world_size: int | None,
    process_group: tuple[int, int] | None,
    environment: Mapping[str, str],
) -> Ranks:
    """Returns this process's place: from arguments, else torch.distributed, else the launcher.

    Args:
        dp_rank: given by the caller, together with `dp_world_size`.
        dp_world_size: given by the caller.
        process_group: rank and size of torch.distributed, None where it isn't initialised.
        environment: environment variables of launchers; see `docs/loading.md`.

    Raises:
        UsageError: half of a pair, a rank outside its size, or settings that contradict.
    """
    if dp_rank is None and dp_world_size is None:
        found = _process(process_group, environment)
        return Ranks(
            dp_rank=found.rank,
            dp_world_size=found.size,
            process_rank=found.rank,
            found_in=found.found_in,
        )
    if dp_rank is None or dp_world_size is None:
        raise UsageError(
            f"dp_rank={dp_rank} and dp_world_size={dp_world_size}: one without the other doesn't "
            "say which rows this process takes; give both, or neither to take them from "
            "torch.distributed or the launcher"
        )
    _check(dp_rank, dp_world_size, "the arguments dp_rank and dp_world_size")
    if process_group is not None and dp_world_size > process_group[1]:
        raise UsageError(
            f"dp_world_size={dp_world_size} and torch.distributed has {process_group[1]} "
            "processes: some rows of every batch would reach nobody; give the number of "
            "data-parallel groups"
        )
    return Ranks(
        dp_rank=dp_rank,
        dp_world_size=dp_world_size,
        process_rank=_process_rank(process_group, environment, dp_rank=dp_rank),
        found_in="arguments",
    )


def _process_rank(
    process_group: tuple[int, int] | None, environment: Mapping[str, str], *, dp_rank: int
) -> int:
    """Returns the rank among all processes, by which one of the peers of a dp_rank is chosen."""
    try:
        found = _process(process_group, environment)
    except UsageError:  # the arguments say what matters
        return dp_rank
    return found.rank if found.size > 1 else dp_rank


def _process(process_group: tuple[int, int] | None, environment: Mapping[str, str]) -> _Process:
    if process_group is not None:
        return _Process(*process_group, "torch.distributed")
    pairs = [_pair(names, environment) for names in _LAUNCHERS]
    found = [pair for pair in (*pairs, _srun(environment)) if pair is not None]
    if not found:
        return _Process(0, 1, "one process")
    nearest, *others = found
    if _TORCHRUN not in environment:
        for other in others:
            _check_agree(nearest, other)
    return nearest


def _srun(environment: Mapping[str, str]) -> _Process | None:
    """Returns the place among the tasks of a job step, None outside of one.

    In a batch script or salloc's shell there is one process, however many tasks the job has.
    """
    rank_name, size_name = _SLURM
    if size_name not in environment and environment.get(rank_name, "0") == "0":
        return None
    if rank_name not in environment:
        return None
    return _pair(_SLURM, environment)


def _pair(names: tuple[str, str], environment: Mapping[str, str]) -> _Process | None:
    rank, size = (environment.get(name) for name in names)
    if rank is None and size is None:
        return None
    if rank is None or size is None:
        there, missing = names if size is None else names[::-1]
        raise UsageError(
            f"the environment sets {there}={environment[there]} and not {missing}: which rows "
            f"this process takes can't be known; set both, unset {there}, or give dp_rank and "
            "dp_world_size"
        )
    where = f"{names[0]} and {names[1]} of the environment"
    found = _Process(_number(names[0], rank), _number(names[1], size), where)
    _check(found.rank, found.size, where)
    return found


def _check_agree(nearest: _Process, other: _Process) -> None:
    """Raises UsageError where two launchers can't both have started this process.

    One that started fewer processes may have started the nearer one, a launcher on each node.
    """
    if nearest.size > other.size or nearest[:2] == other[:2]:
        return
    raise UsageError(
        f"{nearest.found_in} say rank {nearest.rank} of {nearest.size}, {other.found_in} say rank "
        f"{other.rank} of {other.size}: ranks could read the same rows; unset what is left over "
        "from elsewhere, or give dp_rank and dp_world_size"
    )


def _number(name: str, value: str) -> int:
    if not value.strip().isdecimal():
        raise UsageError(
            f"the environment sets {name}={value!r}, which is no number: which rows this process "
            "takes can't be known; correct or unset it, or give dp_rank and dp_world_size"
        )
    return int(value)


def _check(rank: int, size: int, where: str) -> None:
    if size < 1 or not 0 <= rank < size:
        raise UsageError(
            f"{where} say rank {rank} of {size}: there is no such rank; ranks count from 0 to the "
            "size less one"
        )
