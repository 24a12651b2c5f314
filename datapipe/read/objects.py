"""Which objects of a store an input entry means, and what each is called.

A URL is of an object, of a folder (what begins so), or a pattern, as a path is. Names are relative
to the folder that the URLs have in common before any wildcard.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from datapipe.errors import FailedError, InputError
from datapipe.read.input_file import InputFile
from tiering.errors import ObjectNotFoundError, StoreError, StoreURLError
from tiering.store import BlockingStore, ObjectInfo, has_secret, open_store, printable_url

__all__ = ["list_objects", "store_and_name"]

_URL = re.compile(r"((?:.*::)?[^:/]*://[^/]*)/*(.*)", re.DOTALL)
_CLOUD = ("s3://", "s3a://", "gs://", "az://")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """One given URL, taken apart at its first wildcard."""

    given: str
    top: str
    """Scheme and bucket, host or name."""
    folder: tuple[str, ...]
    pattern: tuple[str, ...]
    """Behind the folder; empty: it is meant whole."""
    is_file: bool = False


def list_objects(
    urls: Sequence[str],
    *,
    root: str | None,
    own: Iterable[str],
    note: Callable[[str], None],
) -> list[InputFile]:
    """Returns the objects that `urls` mean, ascending by relative name.

    Args:
        urls: of objects, folders or patterns.
        root: URL of the folder that names are relative to; default: see the module.
        own: URLs of the folders that the program writes to; they and datasets are left out.
        note: told, a line each, what was left out.

    Raises:
        InputError: a URL means nothing, can't be used, or is the program's own folder.
        FailedError: a store can't be listed.
    """
    entries = [_parse(url) for url in urls]
    top, folder = _root(entries, root)
    own_folders = [_split(url) for url in own]
    found = [file for entry in entries for file in _files(entry, top, folder, own_folders, note)]
    return sorted(found, key=lambda file: file.relative)


def store_and_name(url: str) -> tuple[BlockingStore, str]:
    """Returns the store that an object is in, opened once a process, and its path there."""
    top, path = _split(url)
    return _opened("/".join((top, *path[:-1]))), path[-1]


@lru_cache(maxsize=256)
def _opened(url: str) -> BlockingStore:
    return open_store(url).blocking()


def _split(url: str) -> tuple[str, tuple[str, ...]]:
    found = _URL.fullmatch(url)
    if found is None:
        raise InputError(f"{printable_url(url)} isn't a URL that inputs can be read from.")
    return found[1], tuple(part for part in found[2].split("/") if part)


def _parse(given: str) -> _Entry:
    if has_secret(given):
        raise InputError(
            f"{printable_url(given)} was given with a password or token in its URL, which would "
            "stand in the dataset; give credentials by environment or profile."
        )
    top, parts = _split(given)
    wildcards = "*?[" if given.startswith(_CLOUD) else "*["  # of others `?` begins a query
    wild = next((i for i, part in enumerate(parts) if set(part) & set(wildcards)), None)
    if wild is not None:
        return _Entry(given=given, top=top, folder=parts[:wild], pattern=parts[wild:])
    if parts and not given.endswith("/") and _exists(top, parts):
        return _Entry(given=given, top=top, folder=parts[:-1], pattern=parts[-1:], is_file=True)
    return _Entry(given=given, top=top, folder=parts, pattern=())


def _exists(top: str, parts: tuple[str, ...]) -> bool:
    url = "/".join((top, *parts))
    with _reading(url):
        try:
            store, name = store_and_name(url)
            store.head(name)
        except (ObjectNotFoundError, IsADirectoryError):
            return False
    return True


def _root(entries: Sequence[_Entry], root: str | None) -> tuple[str, tuple[str, ...]]:
    if root is not None:
        return _split(root)
    if len({entry.top for entry in entries}) > 1:
        one, other = sorted({entry.top for entry in entries})[:2]
        raise InputError(
            f"{printable_url(one)} and {printable_url(other)} have no folder in common that names "
            "could be relative to; give each an input entry of its own."
        )
    common = entries[0].folder
    for entry in entries[1:]:
        same = sum(1 for _ in _agreeing(common, entry.folder))
        common = common[:same]
    return entries[0].top, common


def _agreeing(one: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    for a, b in zip(one, other, strict=False):
        if a != b:
            return
        yield a


def _files(
    entry: _Entry,
    top: str,
    root: tuple[str, ...],
    own: Sequence[tuple[str, tuple[str, ...]]],
    note: Callable[[str], None],
) -> Iterator[InputFile]:
    for place, folder in own:
        if place == entry.top and entry.folder[: len(folder)] == folder:
            raise InputError(
                f"{printable_url(entry.given)} is, or lies in, a folder that this command writes "
                "to, so it can't be its input. Give --out (and --work) another folder, or leave "
                "this URL out."
            )
    if entry.top != top or entry.folder[: len(root)] != root:
        raise InputError(
            f"{printable_url(entry.given)} doesn't lie below the root; change `root:` or the URL."
        )
    is_any = False
    for info, parts in _without_written(entry, _matching(entry), own, note):
        is_any = True
        path = (*entry.folder, *parts)
        yield InputFile(
            path="/".join((entry.top, *path)),
            relative="/".join(path[len(root) :]),
            size_bytes=info.size,
            etag=info.etag,
            given=entry.given,
            named=entry.is_file,
        )
    if not is_any:
        what = "matches no object" if entry.pattern else "doesn't exist, and nothing is below it"
        raise InputError(f"{printable_url(entry.given)} {what}; check the URL.")


def _matching(entry: _Entry) -> list[tuple[ObjectInfo, tuple[str, ...]]]:
    """Returns the objects that an entry means, and their names below its folder."""
    url = "/".join((entry.top, *entry.folder))
    with _reading(url):
        store = _opened(url)
        if entry.is_file:
            return [(store.head(entry.pattern[0]), entry.pattern)]
        literal = re.split(r"[*?\[]", entry.pattern[0])[0] if entry.pattern else ""
        listed = [(info, tuple(info.path.split("/"))) for info in store.list(literal)]
    return [
        (info, parts)
        for info, parts in listed
        if info.path and not info.path.endswith("/") and _fits(entry.pattern, parts)
    ]


def _fits(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """Tells whether a pattern means an object, or a folder that it is in; none hidden."""
    if not pattern:
        return not any(part.startswith(".") for part in parts)
    if pattern[0] == "**":
        hidden = bool(parts) and parts[0].startswith(".")
        return _fits(pattern[1:], parts) or (
            bool(parts) and not hidden and _fits(pattern, parts[1:])
        )
    if not parts or (parts[0].startswith(".") and not pattern[0].startswith(".")):
        return False
    return fnmatchcase(parts[0], pattern[0]) and _fits(pattern[1:], parts[1:])


def _without_written(
    entry: _Entry,
    found: Sequence[tuple[ObjectInfo, tuple[str, ...]]],
    own: Sequence[tuple[str, tuple[str, ...]]],
    note: Callable[[str], None],
) -> Iterator[tuple[ObjectInfo, tuple[str, ...]]]:
    """Yields the objects that this program hasn't written, and says which folders it left out."""
    folders = {parts[:-2] for _, parts in found if len(parts) > 1 and parts[-2] == "_log"}
    notes = {parts[:-1] for _, parts in found if parts[-1] == "format.json"}
    written = {folder: "it is a dataset" for folder in folders & notes}
    for place, path in own:
        if place == entry.top and path[: len(entry.folder)] == entry.folder:
            written[path[len(entry.folder) :]] = "this command writes to it"
    told: set[tuple[str, ...]] = set()
    for info, parts in found:
        inside = next((f for f in written if parts[: len(f)] == f), None)
        if inside is None:
            yield info, parts
        elif inside not in told:
            told.add(inside)
            url = "/".join((entry.top, *entry.folder, *inside))
            note(f"{printable_url(url)} was left out of the inputs: {written[inside]}")


@contextmanager
def _reading(url: str) -> Iterator[None]:
    try:
        yield
    except StoreURLError as error:
        raise InputError(str(error)) from error
    except (StoreError, OSError) as error:
        raise FailedError(
            f"{printable_url(url)} can't be listed: {error}; nothing was taken from it."
        ) from error
