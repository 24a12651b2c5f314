"""Wall time, CPU time and peak memory of a command with all of its descendants.

This process becomes the reaper of orphans (prctl), so CPU time of workers whose parent went first
(a fork server's) is counted too. Memory is sampled: the sum of resident sets, which counts pages
that processes share once for each of them.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Measured", "measure"]

_PR_SET_CHILD_SUBREAPER = 36
_SAMPLE_SECONDS = 0.1
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of one command."""

    wall_seconds: float
    cpu_seconds: float
    """User and system time of all processes."""
    peak_rss_mb: float


def measure(command: Sequence[str], *, environment: Mapping[str, str], log: Path) -> Measured:
    """Runs a command to its end; its output goes into `log`.

    Raises:
        RuntimeError: it failed; the message ends with the end of its log.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    opened = (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    sampler = _Sampler()
    started = time.perf_counter()
    process = os.posix_spawn(
        command[0],
        list(command),
        dict(environment),
        file_actions=[opened, (os.POSIX_SPAWN_DUP2, 1, 2)],
    )
    with sampler:
        code, wall, cpu = _reap(process, started)
    if code:
        raise RuntimeError(f"{' '.join(command)} ended with {code}: {log.read_text()[-2000:]}")
    return Measured(wall, cpu, sampler.peak_bytes / 1e6)


def _reap(process: int, started: float) -> tuple[int, float, float]:
    """Returns exit code and wall time of `process`, and the CPU time of it and all orphans."""
    code, wall, cpu = 0, 0.0, 0.0
    while True:
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return code, wall, cpu
        cpu += usage.ru_utime + usage.ru_stime
        if pid == process:
            code, wall = os.waitstatus_to_exitcode(status), time.perf_counter() - started


class _Sampler:
    """Looks at the memory of all descendants of this process, again and again, on a thread."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self.peak_bytes = max(self.peak_bytes, sum(map(_resident_bytes, _descendants())))


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            children.setdefault(_parent(entry), []).append(int(entry.name))
    found = list(children.get(os.getpid(), []))
    for process in found:
        found += children.get(process, [])
    return found


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended
        return -1


def _resident_bytes(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0
