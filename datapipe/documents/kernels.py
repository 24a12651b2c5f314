"""How kernels are declared: compiled by Numba, kept on disk, running without the GIL.

Compiled code lies in a folder of its own, named by the digest of all kernels' source: Numba looks
only at the file of the kernel itself, so one that calls a kernel of another file would otherwise
stay as it was when that file changes. Only modules that hold kernels import this one, and only
stages that run kernels import those: Numba takes half a second to load.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numba
import numpy.typing as npt

__all__ = ["Array", "Integer", "cache_folder", "kernel"]

Integer: TypeAlias = Any
"""A number that is an int in Python and an int64 in a kernel."""
Array: TypeAlias = npt.NDArray[Any]
"""What kernels take; they are compiled for the types that they are called with."""

_CONSTANTS = ("characters.py", "kernels.py")
"""Files without kernels whose constants are compiled into kernels."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compiles `function` when it is first called; compiled code is kept where that is possible.

    The compiled function releases the GIL and is safe to call from several threads.
    """
    folder = cache_folder(Path(function.__code__.co_filename).parent)
    config: Any = numba.core.config
    kept = config.CACHE_DIR
    config.CACHE_DIR = str(folder) if folder else kept
    try:
        compiled: Any = numba.njit(nogil=True, cache=folder is not None)(function)
    finally:
        config.CACHE_DIR = kept
    return compiled


@cache
def cache_folder(source: Path) -> Path | None:
    """Returns the folder for code compiled from the folder `source`, made if needed.

    None: there is none that can be written; the first time this is a RuntimeWarning.
    """
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    kept = Path(base) if base else Path.home() / ".cache"
    folder = kept / "datapipe" / f"kernels-{_digest(source)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        _warn_once(kept, error.strerror or str(error))
        return None
    return folder


@cache
def _warn_once(folder: Path, reason: str) -> None:
    warnings.warn(
        f"compiled kernels can't be kept below {folder}: {reason}. Every process compiles them "
        "again, which takes about a minute; set XDG_CACHE_HOME to a folder that can be written.",
        RuntimeWarning,
        stacklevel=2,
    )


def _digest(source: Path) -> str:
    """Returns a digest of all that compiled code depends on.

    Kernels call those of their own folder and of this one, and hold the constants they name.
    """
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for folder in sorted({source, Path(__file__).parent}):
        for path in sorted(folder.glob("*.py")):
            text = path.read_bytes()
            if path.name in _CONSTANTS or b"documents.kernels import Array" in text:
                digest.update(path.name.encode() + b"\0" + text)
    return digest.hexdigest()[:16]
