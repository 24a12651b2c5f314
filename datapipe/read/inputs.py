"""Which files an input entry means, and what each is called.

A name is relative to the entry's root: the deepest folder common to its paths before any wildcard,
unless the entry gives one. Names go into every document's identity, so they must not depend on
where the data lies.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote, urlsplit

from datapipe.errors import FailedError, InputError

__all__ = ["InputFile", "ensure_distinct", "list_inputs"]

_WILDCARDS = frozenset("*?[")


@dataclass(frozen=True, kw_only=True, slots=True)
class InputFile:
    """One file to read."""

    path: str
    """Where it is: absolute, on this machine."""
    relative: str
    """What it is called in the dataset: below the entry's root, `/`-separated."""
    size_bytes: int
    """Its size when it was listed."""
    modified_ns: int = 0
    """When it was last written, nanoseconds since the epoch, as of the listing; 0: not known."""
    named: bool = False
    """Given by its own path, rather than found in a folder or by a wildcard."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """One given path, as it stands and taken apart at its first wildcard."""

    given: str
    base: Path
    pattern: tuple[str, ...]


def list_inputs(
    paths: str | Path | Sequence[str | Path], *, root: str | Path | None = None
) -> list[InputFile]:
    """Returns the files that `paths` mean, ascending by relative name.

    A path is a file, a folder (everything below it) or a pattern with `*`, `?`, `[...]` and `**`.
    Hidden files and folders are left out unless named. Links are followed; a link into a folder
    that contains it isn't.

    Args:
        paths: where the data is; relative ones are relative to the current folder.
        root: the folder that names are relative to; default: see the module.

    Raises:
        InputError: a path doesn't exist or means no file, or two files have the same name.
        FailedError: a folder can't be listed.
    """
    given = [paths] if isinstance(paths, str | Path) else paths
    entries = [_parse(str(path)) for path in given]
    if not entries:
        raise InputError("no input path is given; name files, folders or patterns to read.")
    top = _local(str(root)) if root is not None else _common_root(entries)
    found = [(entry, path) for entry in entries for path in _expand(entry)]
    files = sorted((_input(entry, path, top) for entry, path in found), key=lambda f: f.relative)
    _refuse_twice_given(found)
    ensure_distinct(files)
    return files


def ensure_distinct(files: Iterable[InputFile]) -> None:
    """Raises InputError if two of one source's files have the same relative name."""
    seen: dict[str, InputFile] = {}
    for file in files:
        other = seen.setdefault(file.relative, file)
        if other is not file:
            raise InputError(
                f"{other.path} and {file.path} have the same name, {file.relative}, in one source; "
                "their documents could not be told apart. Give them different sources, or a "
                "`root:` above both."
            )


def _parse(given: str) -> _Entry:
    path = _local(given)
    if _exists(path):
        return _Entry(given=given, base=path, pattern=())
    parts = path.parts
    wild = next((i for i, part in enumerate(parts) if _WILDCARDS & set(part)), None)
    if wild is None:
        raise InputError(f"{given} doesn't exist; check the path.")
    return _Entry(given=given, base=Path(*parts[:wild]), pattern=parts[wild:])


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise FailedError(f"{path} can't be read: {error.strerror}.") from error
    return True


def _local(given: str) -> Path:
    url = urlsplit(given)
    if "://" not in given:
        path = given
    elif url.scheme == "file" and url.netloc in ("", "localhost"):
        path = unquote(url.path)
    else:
        raise InputError(
            f"inputs at {url.scheme}:// can't be read by this version; copy them to a local folder."
        )
    if "\0" in path or not path:
        raise InputError(f"{given!r} isn't a path; name a file, folder or pattern.")
    return Path(os.path.abspath(_home_expanded(Path(path))))  # noqa: PTH100 - keeps links as they are


def _home_expanded(path: Path) -> Path:
    """Returns a path whose `~` or `~user` is the home; a file that is called so is meant itself."""
    if os.path.lexists(path):
        return path
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise InputError(
            f"{path} doesn't exist, and {path.parts[0]} names no user of this machine; check the "
            "path."
        ) from error


def _common_root(entries: Sequence[_Entry]) -> Path:
    folders = [e.base if e.pattern or e.base.is_dir() else e.base.parent for e in entries]
    return Path(os.path.commonpath(folders))


def _expand(entry: _Entry) -> list[Path]:
    if entry.pattern:
        found = sorted(set(_matches(entry.base, entry.pattern, ())))
    elif entry.base.is_dir():
        found = sorted(_walk(entry.base, ()))
    else:
        return [entry.base]
    if not found:
        what = "matches no file" if entry.pattern else "holds no file that isn't hidden"
        raise InputError(f"{entry.given} {what}; check the path.")
    return found


def _matches(folder: Path, pattern: tuple[str, ...], above: tuple[object, ...]) -> Iterator[Path]:
    """Yields the files that `pattern` means below `folder`; a folder it means counts whole."""
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        yield from _matches(folder, rest, above) if rest else _walk(folder, above)
        for inner, inside in _subfolders(folder, above) if rest else ():
            yield from _matches(inner, pattern, inside)
        return
    for child in _children(folder):
        if child.name.startswith(".") and not first.startswith("."):
            continue
        if not fnmatchcase(child.name, first):
            continue
        if rest:
            yield from _matches(Path(child), rest, above) if child.is_dir() else ()
        else:
            yield from _walk(Path(child), above) if child.is_dir() else _regular(child)


def _walk(folder: Path, above: tuple[object, ...]) -> Iterator[Path]:
    for child in _children(folder):
        if not child.name.startswith(".") and not child.is_dir():
            yield from _regular(child)
    for child_folder, inside in _subfolders(folder, above):
        yield from _walk(child_folder, inside)


def _subfolders(
    folder: Path, above: tuple[object, ...]
) -> Iterator[tuple[Path, tuple[object, ...]]]:
    """Yields the folders in `folder` that don't contain it, each with the folders it lies in."""
    inside = (*above, _identity(folder))
    for child in _children(folder):
        if child.name.startswith(".") or not child.is_dir():
            continue
        if _identity(Path(child)) not in inside:
            yield Path(child), inside


def _identity(folder: Path) -> object:
    status = folder.stat()
    return (status.st_dev, status.st_ino)


def _children(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise FailedError(f"the folder {folder} can't be listed: {error.strerror}.") from error


def _regular(child: os.DirEntry[str]) -> Iterator[Path]:
    """Yields the path of a file, and nothing for a pipe, socket or device in a folder."""
    if child.is_file() or child.is_symlink():
        yield Path(child)


def _input(entry: _Entry, path: Path, root: Path) -> InputFile:
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise InputError(f"{path} is a broken link, or is gone; remove it or mend it.") from error
    except OSError as error:
        raise FailedError(f"{path} can't be read: {error.strerror}.") from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} isn't a regular file; write its contents to one first.")
    return InputFile(
        path=str(path),
        relative=_relative(path, root),
        size_bytes=status.st_size,
        modified_ns=status.st_mtime_ns,
        named=path == entry.base,
    )


def _relative(path: Path, root: Path) -> str:
    if not path.is_relative_to(root):
        raise InputError(f"{path} doesn't lie below the root {root}; change `root:` or the path.")
    relative = path.relative_to(root).as_posix()
    try:
        relative.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"the name of {os.fsencode(path)!r} isn't UTF-8, so it can't be recorded; rename it."
        ) from error
    return relative


def _refuse_twice_given(found: Sequence[tuple[_Entry, Path]]) -> None:
    givers: dict[Path, _Entry] = {}
    for entry, path in found:
        other = givers.setdefault(path, entry)
        if other is not entry:
            raise InputError(
                f"{path} is given twice, by {other.given} and by {entry.given}; its documents "
                "would count twice. Leave one of them out."
            )
