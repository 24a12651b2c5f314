"""How much memory this process holds, as the system counts it."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

__all__ = ["resident_bytes"]

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Returns the resident memory of this process; its peak where the system tells only that.

    Linux tells what is resident now (/proc/self/statm, second field, in pages). Elsewhere the peak
    still shows growth, and never less of it than there is.
    """
    try:
        return int(_STATM.read_bytes().split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
