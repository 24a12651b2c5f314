"""Tags: names for versions, moved by compare-and-swap, each with the record of all its moves.

The record stands in the tag's own object, so a move and its record can't come apart. A deleted tag
keeps it too. A release tag is set once; the register knows it too, should its object be removed.
"""

from __future__ import annotations

import re
import uuid
from typing import Any

import msgspec

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.layout import FORMAT_VERSION, TAGS_PREFIX, tag_path
from datapipe.dataset.manifest import Digest, check_format
from datapipe.dataset.objects import get_json, reading, writing
from datapipe.dataset.reader import Dataset
from datapipe.dataset.register import Registered, read_register, register_object
from datapipe.errors import CommitConflictError, DamagedError, UnknownReferenceError, UsageError
from tiering.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    PreconditionError,
    UndecidedError,
)
from tiering.store import BlockingStore

__all__ = [
    "Tag",
    "TagMove",
    "delete_tag",
    "is_release",
    "is_tag_name",
    "list_tags",
    "read_tag",
    "set_tag",
]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
_TAKEN = re.compile(r"latest|v?\d+|[0-9a-f]{4,64}")
"""What a reference means already."""

_RELEASE = re.compile(r"release([._-].*)?")
_ATTEMPTS = 5


class TagMove(msgspec.Struct, frozen=True, kw_only=True):
    """One setting, moving or deleting of a tag."""

    id: str
    """Random: a writer that lost the answer finds its own move by it."""
    version: int | None
    """None: deleted."""
    manifest: Digest | None
    author: str
    reason: str
    time_seconds: float
    """Since the epoch."""


class Tag(msgspec.Struct, frozen=True, kw_only=True):
    """A name and where it was moved, first move first."""

    format: int
    name: str
    release: bool
    """Never moved nor deleted."""
    moves: tuple[TagMove, ...]

    @property
    def version(self) -> int | None:
        """The version that it names; None: it was deleted."""
        return self.moves[-1].version

    @property
    def manifest(self) -> str | None:
        """The manifest of that version."""
        return self.moves[-1].manifest

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        return {
            "name": self.name,
            "version": self.version,
            "manifest": self.manifest,
            "release": self.release,
            "moves": [msgspec.to_builtins(move) for move in self.moves],
        }


def is_release(name: str) -> bool:
    """Returns whether a tag of this name is a release without being asked for."""
    return _RELEASE.fullmatch(name) is not None


def is_tag_name(name: str) -> bool:
    """Returns whether a tag's object may have this name."""
    return _NAME.fullmatch(name) is not None


def read_tag(store: BlockingStore, name: str) -> Tag | None:
    """Returns a tag, also a deleted one; None: there never was one.

    Raises:
        DamagedError: it can't be read as a tag.
    """
    found = _read(store, name)
    return found[0] if found else None


def list_tags(store: BlockingStore) -> list[Tag]:
    """Returns the tags that name a version, ascending by name. Raises: DamagedError."""
    with reading(store, TAGS_PREFIX):
        paths = [info.path for info in store.list(TAGS_PREFIX)]
    names = [path.removeprefix(TAGS_PREFIX).removesuffix(".json") for path in paths]
    tags = [read_tag(store, name) for name in names if is_tag_name(name)]
    return [tag for tag in tags if tag is not None and tag.version is not None]


def set_tag(
    dataset: Dataset,
    name: str,
    *,
    author: str,
    reason: str,
    time_seconds: float,
    release: bool = False,
    dry_run: bool = False,
) -> Tag:
    """Makes a tag name a version; nothing to do where it names it already.

    Args:
        dataset: the version.
        name: letters, digits, '.', '_', '-', the first a letter.
        author: who moves it.
        reason: why.
        time_seconds: now, since the epoch.
        release: it shall never be moved again; so are tags `release` and `release-...`.
        dry_run: only say what it would be.

    Raises:
        UsageError: a name that can't be, or a release that would be moved.
        CommitConflictError: somebody else moved it at the same time.
    """
    _check_name(name)
    move = TagMove(
        id=uuid.uuid4().hex,
        version=dataset.version,
        manifest=dataset.manifest_sha256,
        author=author,
        reason=reason,
        time_seconds=float(time_seconds),
    )
    is_final = release or is_release(name)
    return _move(dataset.repository.store, name, move, release=is_final, dry_run=dry_run)


def delete_tag(
    store: BlockingStore,
    name: str,
    *,
    author: str,
    reason: str,
    time_seconds: float,
    dry_run: bool = False,
) -> Tag:
    """Makes a tag name nothing; its record stays.

    Raises:
        UnknownReferenceError: there is no such tag.
        UsageError: it is a release.
        CommitConflictError: somebody else moved it at the same time.
    """
    tag = read_tag(store, name) if is_tag_name(name) else None
    if tag is None or tag.version is None:
        known = ", ".join(tag.name for tag in list_tags(store)) or "none"
        raise UnknownReferenceError(
            f"{store.url} has no tag {name!r}; nothing was deleted; its tags: {known}"
        )
    move = TagMove(
        id=uuid.uuid4().hex,
        version=None,
        manifest=None,
        author=author,
        reason=reason,
        time_seconds=float(time_seconds),
    )
    return _move(store, name, move, release=False, dry_run=dry_run)


def _move(store: BlockingStore, name: str, move: TagMove, *, release: bool, dry_run: bool) -> Tag:
    found, path = _read(store, name), tag_path(name)
    before = found[0] if found else None
    known = (read_register(store) or {}).get(path)
    for other in (before, known):
        if other is not None and _is_final(other) and _target(other) != _target(move):
            raise _is_release_of(store, name, other.version)
    release = release or (known is not None and known.final)
    if before is None or _target(before) != _target(move) or (release and not before.release):
        moves = (*(before.moves if before else ()), move)
        tag = Tag(format=FORMAT_VERSION, name=name, release=release, moves=moves)
        if not dry_run:
            _swap(store, tag, match=found[1] if found else None)
    else:
        tag = before
    if not dry_run:
        register_object(store, path, lambda data: _names(_decode(store, name, data)))
    return tag


def _target(names: Tag | TagMove | Registered) -> tuple[int | None, str | None]:
    return names.version, names.manifest


def _is_final(names: Tag | Registered) -> bool:
    return names.release if isinstance(names, Tag) else names.final


def _names(tag: Tag) -> dict[str, Any]:
    """Returns what the register says of a tag beside its digest."""
    return {"version": tag.version, "manifest": tag.manifest, "final": tag.release}


def _swap(store: BlockingStore, tag: Tag, *, match: str | None) -> None:
    path, data = tag_path(tag.name), canonical_json(msgspec.to_builtins(tag))
    with writing(store):
        for attempt in range(_ATTEMPTS):
            try:
                store.put(path, data, match=match)
                return
            except (ObjectExistsError, PreconditionError) as error:
                theirs = read_tag(store, tag.name)
                if theirs == tag:  # ours, and the answer was lost
                    return
                raise _conflict(store, tag, theirs) from error
            except UndecidedError:
                if attempt == _ATTEMPTS - 1:
                    raise


def _read(store: BlockingStore, name: str) -> tuple[Tag, str] | None:
    """Returns a tag and the etag of its object, which isn't newer than what was read."""
    path = tag_path(name)
    with reading(store, path):
        try:
            etag = store.head(path).etag
            data = get_json(store, path)
        except ObjectNotFoundError:
            return None
    return _decode(store, name, data), etag


def _decode(store: BlockingStore, name: str, data: bytes) -> Tag:
    path = tag_path(name)
    check_format(data, path=path)
    try:
        tag = msgspec.json.decode(data, type=Tag)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _damaged(store, path, str(error)) from error
    if tag.name != name or not tag.moves:
        raise _damaged(store, path, f"it is the tag {tag.name!r} with {len(tag.moves)} moves")
    return tag


def _check_name(name: str) -> None:
    if not is_tag_name(name) or _TAKEN.fullmatch(name):
        raise UsageError(
            f"{name!r} can't name a tag: nothing was changed; take 1 to 64 letters, digits, '.', "
            "'_' and '-', the first a letter, not 'latest', a version number or a hexadecimal "
            "digest"
        )


def _is_release_of(store: BlockingStore, name: str, version: int | None) -> UsageError:
    return UsageError(
        f"tag {name} of {store.url} is a release: it names version {version} for good; "
        "nothing was changed; take another name"
    )


def _conflict(store: BlockingStore, tag: Tag, theirs: Tag | None) -> CommitConflictError:
    who = theirs.moves[-1].author if theirs else ""
    where = f"to version {theirs.version}" if theirs and theirs.version else "away"
    return CommitConflictError(
        f"tag {tag.name} of {store.url} was moved {where} by {who or 'another writer'} meanwhile; "
        "nothing was changed; look at it with `datapipe tag` and decide anew"
    )


def _damaged(store: BlockingStore, path: str, why: str) -> DamagedError:
    return DamagedError(
        f"{path} in {store.url} isn't what a tag has there: {why}; it names nothing; restore it "
        "from a copy, or delete the object and set the tag again"
    )
