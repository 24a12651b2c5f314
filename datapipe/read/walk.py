"""Going through folders: each is entered once, whatever links lead to it, and never recursively.

What the program writes itself isn't input: the folders it is told of, and datasets anywhere.
"""

from __future__ import annotations

import errno
import heapq
import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from datapipe.errors import DatapipeError, FailedError, InputError

__all__ = ["Identity", "Walker", "identity", "is_dataset", "unreadable"]

Identity = tuple[int, int]
"""Device and inode: what a file or folder is, whatever it is called."""

_DATASET_NAMES = {"_log", "_work"}  # beside format.json: one that is committed, or only begun


class Walker:
    """Finds files below folders; remembers what it passed over, and why."""

    def __init__(self, own: Iterable[Path] = ()) -> None:
        """`own` are the folders that the program writes to; those that don't exist don't matter."""
        self._own = {identity(path.stat()) for path in own if os.path.exists(path)}  # noqa: PTH110 - False on any error
        self.left_out: dict[Path, str] = {}
        """Folders and links that aren't input -> what they are."""
        self.linked: dict[Path, Path] = {}
        """Folder -> its other name, under which it was entered."""

    def is_own(self, path: Path) -> bool:
        """Tells whether `path`, links resolved, is one of the program's folders or lies in one."""
        if not self._own:
            return False
        real = Path(os.path.realpath(path))
        return any(self._is_own_folder(folder) for folder in (real, *real.parents))

    def below(self, top: Path) -> Iterator[Path]:
        """Yields the files below a folder, hidden ones left out."""
        for folder in self._folders(top):
            for child in self._children(folder):
                if not child.name.startswith(".") and not _is_folder(child):
                    yield from self._file(child)

    def matches(self, folder: Path, pattern: tuple[str, ...]) -> Iterator[Path]:
        """Yields the files that `pattern` means below `folder`; a folder it means counts whole."""
        first, rest = pattern[0], pattern[1:]
        if first == "**":
            while rest[:1] == ("**",):
                rest = rest[1:]
            for inner in self._folders(folder) if rest else ():
                yield from self.matches(inner, rest)
            yield from () if rest else self.below(folder)
            return
        for child in self._children(folder):
            if child.name.startswith(".") and not first.startswith("."):
                continue
            if not fnmatchcase(child.name, first):
                continue
            if rest:
                yield from self.matches(Path(child), rest) if _is_folder(child) else ()
            else:
                yield from self.below(Path(child)) if _is_folder(child) else self._file(child)

    def _folders(self, top: Path) -> Iterator[Path]:
        """Yields `top` and the folders below it; those that aren't behind a link come first."""
        entered: dict[Identity, Path] = {}
        waiting, links = [top], list[Path]()
        while waiting or links:
            folder = waiting.pop() if waiting else heapq.heappop(links)
            other = entered.setdefault(_identity_of(folder), folder)
            if other is not folder:
                self.linked[folder] = other
                continue
            yield folder
            for child in reversed(self._children(folder)):
                if child.name.startswith(".") or not _is_folder(child):
                    continue
                if child.is_symlink():
                    heapq.heappush(links, Path(child))
                else:
                    waiting.append(Path(child))

    def _children(self, folder: Path) -> list[os.DirEntry[str]]:
        """Returns what is in a folder, by name; nothing if the folder isn't input."""
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unreadable(folder, error, "listed") from error
        if self._is_own_folder(folder) or (folder.is_symlink() and self.is_own(folder)):
            self.left_out[folder] = "the program writes to it"
        elif is_dataset(folder):
            self.left_out[folder] = "it is a dataset"
        return [] if folder in self.left_out else found

    def _file(self, child: os.DirEntry[str]) -> Iterator[Path]:
        """Yields the path of a file, and nothing for a pipe, socket or device in a folder."""
        path = Path(child)
        if child.is_symlink() and self.is_own(path):
            self.left_out[path] = "the program writes to it"
        elif child.is_symlink() or _is_file(child):
            yield path

    def _is_own_folder(self, folder: Path) -> bool:
        return bool(self._own) and _identity_of(folder) in self._own


def identity(status: os.stat_result) -> Identity:
    """Returns what tells a file or folder from all others of this machine."""
    return status.st_dev, status.st_ino


def is_dataset(folder: Path) -> bool:
    """Tells whether a folder is a dataset of this program."""
    names = _DATASET_NAMES if os.path.isfile(folder / "format.json") else ()  # noqa: PTH113
    return any(os.path.isdir(folder / name) for name in names)  # noqa: PTH112


def unreadable(path: Path, error: OSError, what: str = "read") -> DatapipeError:
    """Returns the error that says why `path` can't be read or listed."""
    if error.errno == errno.ELOOP:
        return InputError(f"{path} is a link that leads back to itself; remove it or mend it.")
    if error.errno == errno.ENOTDIR:
        return InputError(f"{path} isn't a folder; check the path.")
    if error.errno == errno.ENAMETOOLONG:
        return InputError(
            f"{path} can't be {what}: its path has {len(os.fsencode(path)):,} bytes, more than "
            "this system allows; move it to a shorter path or leave it out."
        )
    return FailedError(
        f"{path} can't be {what}: {error.strerror}; nothing was built. Make it readable or leave "
        "it out."
    )


def _identity_of(folder: Path) -> Identity:
    try:
        return identity(folder.stat())
    except FileNotFoundError:
        return (0, 0)  # gone meanwhile, as `_children` finds too
    except OSError as error:
        raise unreadable(folder, error) from error


def _is_folder(child: os.DirEntry[str]) -> bool:
    try:
        return child.is_dir()
    except OSError:
        return False


def _is_file(child: os.DirEntry[str]) -> bool:
    try:
        return child.is_file()
    except OSError:
        return True  # opening it tells what is wrong
