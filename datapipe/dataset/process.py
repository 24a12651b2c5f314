"""Which process wrote something, so that its end can be seen on the same machine.

A killed writer's transaction lives on for its grace period, because elsewhere nothing tells that it
is dead. Where its process could be seen, its absence does.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["is_gone", "this_process"]

_ENDED = frozenset("ZX")


def this_process() -> str:
    """Returns boot, process space, number and start of this process; "" where that isn't known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = Path("/proc/self/ns/pid").readlink()
        state_and_start = _look(os.getpid())
    except (OSError, ValueError, IndexError):
        return ""
    return f"{boot} {space} {os.getpid()} {state_and_start[1]}"


def is_gone(process: str) -> bool:
    """Returns whether a process has certainly ended, given what `this_process` said in it.

    False where it can't be known: it ran on another machine or in another container.
    """
    theirs, ours = process.split(" "), this_process().split(" ")
    if len(theirs) != 4 or theirs[:2] != ours[:2] or not theirs[2].isdigit():
        return False
    try:
        os.kill(int(theirs[2]), 0)
        state, start = _look(int(theirs[2]))
    except ProcessLookupError:
        return True
    except (OSError, ValueError, IndexError, OverflowError):
        return False  # another user's, or hidden
    return state in _ENDED or start != theirs[3]


def _look(pid: int) -> tuple[str, str]:
    """Returns the state of a process and when it started, in ticks since boot."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], fields[19]
