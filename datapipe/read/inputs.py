"""Which files an input entry means, and what each is called.

A name is relative to the entry's root: the deepest folder common to its paths before any wildcard,
unless the entry gives one. Names go into every document's identity, so they must not depend on
where the data lies.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from datapipe.errors import InputError
from datapipe.observe import NO_PROGRESS
from datapipe.read.input_file import UNKNOWN, InputFile
from datapipe.read.objects import list_objects
from datapipe.read.walk import Identity, Walker, identity, is_dataset, unreadable
from tiering.store import is_url, meant_url, printable_url

__all__ = ["InputFile", "ensure_distinct", "list_inputs"]

_WILDCARDS = frozenset("*?[")
_DATASETS_NOTES = {"dataset_dict.json", "dataset_info.json", "state.json"}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """One given path, as it stands and taken apart at its first wildcard."""

    given: str
    base: Path
    pattern: tuple[str, ...]


def list_inputs(
    paths: str | Path | Sequence[str | Path],
    *,
    root: str | Path | None = None,
    own: Iterable[str] = (),
    note: Callable[[str], None] = NO_PROGRESS.note,
) -> list[InputFile]:
    """Returns the files that `paths` mean, ascending by relative name; each file once.

    A path is a file, a folder (everything below it) or a pattern with `*`, `?`, `[...]` and `**`;
    or a URL of these (see `objects`).
    Hidden files and folders are left out unless named, and so is what the program writes itself:
    the folders of `own` and any dataset. Links are followed; what has several names below one path
    is read once, under a name that isn't a link if there is one, else under the first.

    Args:
        paths: where the data is; relative ones are relative to the current folder.
        root: the folder that names are relative to; default: see the module.
        own: paths or URLs of the folders that the program writes to.
        note: told, a line each, what was left out or has several names.

    Raises:
        InputError: a path doesn't exist, means no file or is the program's own folder, or two
            files have the same name, or two paths mean the same file.
        FailedError: a folder can't be listed.
    """
    given = [paths] if isinstance(paths, str | Path) else paths
    places = [str(path) for path in given]
    if not places:
        raise InputError("no input path is given; name files, folders or patterns to read.")
    remote = [place for place in places if not _is_local(place)]
    if remote:
        if len(remote) < len(places):
            raise InputError(
                f"{printable_url(remote[0])} is in a store and {_first_local(places)} on this "
                "machine; give each an input entry of its own, of the same source if you like."
            )
        found = list_objects(
            remote,
            root=None if root is None else str(root),
            own=[folder for folder in own if not _is_local(folder)],
            note=note,
        )
        ensure_distinct(found)
        return found
    entries = [_parse(place) for place in places]
    top = _root(str(root)) if root is not None else _common_root(entries)
    walker = Walker(_local(folder) for folder in own if _is_local(folder))
    found = [file for entry in entries for file in _files(entry, top, walker, note)]
    _tell(walker, note)
    files = sorted(found, key=lambda file: file.relative)
    ensure_distinct(files)
    return files


def _first_local(places: Sequence[str]) -> str:
    return next(place for place in places if _is_local(place))


def ensure_distinct(files: Iterable[InputFile]) -> None:
    """Raises InputError if two of one source's files are the same, or have the same name."""
    by_identity: dict[Identity, InputFile] = {}
    by_name: dict[str, InputFile] = {}
    for file in files:
        other = by_identity.setdefault(file.identity, file)
        if other is not file and file.identity != UNKNOWN:
            raise InputError(_same_file(other, file))
        other = by_name.setdefault(file.relative, file)
        if other is not file and other.path == file.path:
            raise InputError(_same_file(other, file))
        if other is not file:
            raise InputError(
                f"{other.path} and {file.path} have the same name, {file.relative}, in one source; "
                "their documents could not be told apart. Give them different sources, or a "
                "`root:` above both."
            )


def _same_file(one: InputFile, other: InputFile) -> str:
    if one.path == other.path:
        what = f"{one.path} is given twice, by {one.given} and by {other.given}"
    else:
        what = f"{one.path} and {other.path} are the same file, through a link"
    return f"{what}; its documents would count twice. Leave one of them out."


def _parse(given: str) -> _Entry:
    path = _local(given)
    if _exists(path):
        return _Entry(given=given, base=path, pattern=())
    meant = meant_url(given)
    if meant is not None:
        raise InputError(
            f"what begins with {given.partition(':')[0]}: and isn't there is likely meant as "
            f"{meant}, and inputs are read from local folders only; check the path, or copy what "
            "is there."
        )
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
        raise unreadable(path, error) from error
    return True


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises where permission is missing


def _is_local(given: str) -> bool:
    return not is_url(given) or given.startswith("file://")


def _local(given: str) -> Path:
    url = urlsplit(given)
    if not is_url(given):
        path = given
    elif url.scheme == "file" and url.netloc in ("", "localhost") and "?" not in given:
        path = unquote(url.path)
    else:
        raise InputError(
            f"{printable_url(given)} isn't the URL of a file on this machine, as file:///path is; "
            "give its path."
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
    folders = [e.base if e.pattern or _is_folder(e.base) else e.base.parent for e in entries]
    return Path(os.path.commonpath(folders))


def _root(given: str) -> Path:
    root = _local(given)
    if not _is_folder(root):
        raise InputError(
            f"the root {root} isn't a folder; `root:` is the folder that file names are relative "
            "to. Change it or leave it out."
        )
    return root


def _files(
    entry: _Entry, root: Path, walker: Walker, note: Callable[[str], None]
) -> list[InputFile]:
    """Returns the files that one given path means, each under one of its names."""
    names: dict[Identity, list[InputFile]] = {}
    for path in _expand(entry, walker):
        file = _input(entry, path, root)
        names.setdefault(file.identity, []).append(file)
    chosen = [min(same, key=_link_last) if len(same) > 1 else same[0] for same in names.values()]
    twice = [(file, same) for file, same in zip(chosen, names.values(), strict=True) if same[1:]]
    if twice:
        file, same = twice[0]
        other = next(name for name in same if name is not file)
        more = f", and {len(twice) - 1:,} more such files" if twice[1:] else ""
        note(f"{other.path} is {file.path} under another name{more}; each was read once")
    return chosen


def _link_last(file: InputFile) -> tuple[bool, str]:
    return os.path.realpath(file.path) != file.path, file.relative


def _tell(walker: Walker, note: Callable[[str], None]) -> None:
    for path, why in walker.left_out.items():
        note(f"{path} was left out of the inputs: {why}")
    if walker.linked:
        folder, other = next(iter(walker.linked.items()))
        more = f", and {len(walker.linked) - 1:,} more such" if len(walker.linked) > 1 else ""
        note(f"{folder} is {other} under another name{more}; each folder was read once")


def _expand(entry: _Entry, walker: Walker) -> list[Path]:
    if walker.is_own(entry.base):
        raise InputError(
            f"{entry.given} is, or lies in, a folder that this command writes to, so it can't be "
            "its input. Give --out (and --work) another folder, or leave this path out."
        )
    if entry.pattern:
        found = sorted(set(walker.matches(entry.base, entry.pattern)))
    elif _is_folder(entry.base):
        _refuse_dataset(entry)
        found = sorted(walker.below(entry.base))
    else:
        return [entry.base]
    found = _without_notes_of_datasets(found)
    if not found:
        what = "matches no file" if entry.pattern else "holds no file that isn't hidden"
        passed = ", ".join(f"{path} ({why})" for path, why in walker.left_out.items())
        left_out = f"; left out: {passed}" if passed else ""
        raise InputError(f"{entry.given} {what}{left_out}; check the path.")
    return found


def _without_notes_of_datasets(paths: list[Path]) -> list[Path]:
    """Leaves out what Hugging Face `datasets` writes beside its Arrow files."""
    arrow = {path.parent for path in paths if path.suffix == ".arrow"}
    folders = arrow | {folder.parent for folder in arrow}
    return [
        path for path in paths if path.name not in _DATASETS_NOTES or path.parent not in folders
    ]


def _refuse_dataset(entry: _Entry) -> None:
    if is_dataset(entry.base):
        raise InputError(
            f"{entry.given} is a dataset, not raw data: it holds tokens and tables. Name the files "
            "that it was built from."
        )


def _input(entry: _Entry, path: Path, root: Path) -> InputFile:
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise InputError(f"{path} is a broken link, or is gone; remove it or mend it.") from error
    except OSError as error:
        raise unreadable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} isn't a regular file; write its contents to one first.")
    return InputFile(
        path=str(path),
        relative=_relative(path, root),
        size_bytes=status.st_size,
        modified_ns=status.st_mtime_ns,
        changed_ns=status.st_ctime_ns,
        identity=identity(status),
        given=entry.given,
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
