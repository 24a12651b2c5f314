"""The obstore library as this process may use it.

Its threads (a tokio runtime, one for each loaded copy of the extension) don't survive a fork, and
a child that calls the parent's copy waits for ever. DataLoader workers are such children. So a
child of a process that used obstore loads a copy of its own, which has a runtime of its own.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from tiering.errors import StoreURLError

__all__ = ["exceptions", "library", "stores"]

_EXTENSION = "obstore._obstore"


class _Loaded:
    """Which copy belongs to this process."""

    def __init__(self) -> None:
        self.pid = 0
        self.modules: dict[str, ModuleType] = {}
        self.inherited = False  # the extension was loaded before this process was forked

    def note_fork(self) -> None:
        self.inherited = _EXTENSION in sys.modules


_LOADED = _Loaded()
os.register_at_fork(after_in_child=_LOADED.note_fork)


def library() -> ModuleType:
    """Returns the module `obstore`. Raises: StoreURLError: it isn't installed."""
    return _module("obstore")


def stores() -> ModuleType:
    """Returns the module `obstore.store`."""
    return _module("obstore.store")


def exceptions() -> ModuleType:
    """Returns the module `obstore.exceptions`."""
    return _module("obstore.exceptions")


def _module(name: str) -> ModuleType:
    if _LOADED.pid != os.getpid():
        _LOADED.modules = _load_copy() if _LOADED.inherited else _load()
        _LOADED.pid = os.getpid()
    return _LOADED.modules[name]


def _load() -> dict[str, ModuleType]:
    try:
        importlib.import_module("obstore.store")
    except ImportError as error:
        raise StoreURLError(
            f"this URL needs the package obstore, which can't be imported ({error}); nothing was "
            "opened; pip install 'datapipe-train[s3]'"
        ) from error
    return _taken()


def _load_copy() -> dict[str, ModuleType]:
    """Loads the library anew beside the parent's, which `sys.modules` keeps."""
    before = _taken()
    original = str(before[_EXTENSION].__file__)
    for name in before:
        del sys.modules[name]
    descriptor = os.memfd_create("obstore")
    finder = _Finder(f"/proc/{os.getpid()}/fd/{descriptor}")  # a path that was never loaded before
    sys.meta_path.insert(0, finder)
    try:
        _copy(original, descriptor)
        importlib.import_module("obstore.store")
        return _taken()
    finally:
        sys.meta_path.remove(finder)
        os.close(descriptor)
        for name in _taken():
            del sys.modules[name]
        sys.modules.update(before)


class _Finder:
    """Finds the extension, and nothing else, at another path."""

    def __init__(self, path: str) -> None:
        self._path = path

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        del path, target
        if name != _EXTENSION:
            return None
        loader = importlib.machinery.ExtensionFileLoader(name, self._path)
        return importlib.util.spec_from_file_location(name, self._path, loader=loader)


def _copy(file: str, descriptor: int) -> None:
    with open(file, "rb") as source:  # noqa: PTH123 (its descriptor is wanted)
        size, done = os.fstat(source.fileno()).st_size, 0
        while done < size:
            done += os.sendfile(descriptor, source.fileno(), done, size - done)


def _taken() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.partition(".")[0] == "obstore"]
    return {name: sys.modules[name] for name in names}
