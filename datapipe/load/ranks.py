"""Which part of each global batch this process takes: data-parallel rank and world size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from datapipe.errors import UsageError

__all__ = ["Ranks", "resolve_ranks"]

_LAUNCHERS = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"))


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
        environment: environment variables: RANK and WORLD_SIZE (torchrun), else SLURM_PROCID and
            SLURM_NTASKS. Where neither pair is set there is one process.

    Raises:
        UsageError: half of a pair, a rank outside its size, or settings that contradict.
    """
    found = _process(process_group, environment)
    process_rank, num_processes, found_in = found
    if dp_rank is None and dp_world_size is None:
        return Ranks(
            dp_rank=process_rank,
            dp_world_size=num_processes,
            process_rank=process_rank,
            found_in=found_in,
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
        process_rank=process_rank if num_processes > 1 else dp_rank,
        found_in="arguments",
    )


def _process(
    process_group: tuple[int, int] | None, environment: Mapping[str, str]
) -> tuple[int, int, str]:
    if process_group is not None:
        return (*process_group, "torch.distributed")
    for rank_name, size_name in _LAUNCHERS:
        rank, size = environment.get(rank_name), environment.get(size_name)
        if rank is None and size is None:
            continue
        if rank is None or size is None:
            there, missing = (rank_name, size_name) if size is None else (size_name, rank_name)
            raise UsageError(
                f"the environment sets {there}={environment[there]} and not {missing}: which rows "
                f"this process takes can't be known; set both, unset {there}, or give dp_rank and "
                "dp_world_size"
            )
        where = f"{rank_name} and {size_name} of the environment"
        numbers = _number(rank_name, rank), _number(size_name, size)
        _check(*numbers, where)
        return (*numbers, where)
    return 0, 1, "one process"


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
