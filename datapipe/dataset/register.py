"""The register: which tags, holds, retirements and signatures there are, and their bytes.

No manifest names these objects, so one that is removed would leave no trace. An object is written
first and registered then, by compare-and-swap; whoever is stopped in between runs the same command
again. So one removed or changed object shows in the register, and a removed register in them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from datapipe.dataset.hashing import canonical_json, sha256_hex
from datapipe.dataset.layout import (
    FORMAT_VERSION,
    REFERENCES_PREFIX,
    REGISTER_PATH,
    SIGNATURES_PREFIX,
)
from datapipe.dataset.manifest import Digest, check_format
from datapipe.dataset.objects import get_json, reading, writing
from datapipe.dataset.seals import check_seal, seal_of
from datapipe.errors import CommitConflictError, DamagedError
from tiering.errors import ObjectExistsError, ObjectNotFoundError, PreconditionError, UndecidedError
from tiering.store import BlockingStore

__all__ = ["Registered", "read_register", "register_object", "registered_paths"]

_ATTEMPTS = 100
_PAUSE_SECONDS = 0.002
_SEAL = "register_sha256"


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """One object as it must be."""

    sha256: Digest
    """Of its bytes."""
    version: int | None = None
    """What it names; None: no version."""
    manifest: Digest | None = None
    """Of that version."""
    final: bool = False
    """Whether it names that version for good."""


class _Register(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    objects: dict[str, Registered]
    register_sha256: Digest


def read_register(store: BlockingStore) -> dict[str, Registered] | None:
    """Returns the registered objects by path; None: there is no register.

    Raises:
        DamagedError: it can't be read.
    """
    return _read(store)[0]


def registered_paths(store: BlockingStore) -> set[str]:
    """Returns the paths of all objects that the register must have."""
    found = set[str]()
    for prefix in (REFERENCES_PREFIX, SIGNATURES_PREFIX):
        with reading(store, prefix):
            found |= {info.path for info in store.list(prefix)}
    return found - {REGISTER_PATH}


def register_object(
    store: BlockingStore, path: str, names: Callable[[bytes], Mapping[str, Any]]
) -> None:
    """Registers what is at a path now: its bytes, or that nothing is.

    Whoever writes an object at the same time registers it afterwards too, so the last word is about
    the last bytes.

    Args:
        store: the dataset's.
        path: of an object that was just written or removed.
        names: returns, of its bytes, what `Registered` has beside the digest.

    Raises:
        CommitConflictError: others changed the register all the time.
        DamagedError: it, or the object, can't be read.
        DatasetError: the store can't be read or written.
    """
    for attempt in range(_ATTEMPTS):
        before, etag = _read(store)
        data = _get(store, path)
        after = dict(before or {})
        if data is None:
            after.pop(path, None)
        else:
            after[path] = Registered(sha256=sha256_hex(data), **names(data))
        if after == (before or {}) or _swap(store, after, match=etag):
            return
        time.sleep(_PAUSE_SECONDS * attempt)
    raise CommitConflictError(
        f"{path} in {store.url} is as it should be, but isn't registered: others changed "
        f"{REGISTER_PATH} {_ATTEMPTS} times meanwhile; run the same command again"
    )


def _swap(store: BlockingStore, objects: Mapping[str, Registered], *, match: str | None) -> bool:
    """Returns whether the register was written; False: it is to be read again."""
    fields = {"format": FORMAT_VERSION, "objects": msgspec.to_builtins(objects)}
    data = canonical_json({**fields, _SEAL: seal_of(fields, name=_SEAL)})
    with writing(store):
        try:
            store.put(REGISTER_PATH, data, match=match)
        except (ObjectExistsError, PreconditionError, UndecidedError):
            return False
    return True


def _read(store: BlockingStore) -> tuple[dict[str, Registered] | None, str | None]:
    """Returns the register and its etag, which isn't newer than what was read."""
    with reading(store, REGISTER_PATH):
        try:
            etag = store.head(REGISTER_PATH).etag
            data = get_json(store, REGISTER_PATH)
        except ObjectNotFoundError:
            return None, None
    check_format(data, path=REGISTER_PATH)
    try:
        fields = msgspec.json.decode(data, type=dict[str, Any])
        check_seal(fields, name=_SEAL)
        found = msgspec.json.decode(data, type=_Register).objects
        if canonical_json(fields) != data:
            raise ValueError("its JSON isn't canonical (RFC 8785)")
        for path in found:
            if not path.startswith((REFERENCES_PREFIX, SIGNATURES_PREFIX)):
                raise ValueError(f"it has {path!r}, which isn't registered")
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamagedError(
            f"{REGISTER_PATH} in {store.url} is damaged: {error}; which tags, holds and signatures "
            "there must be can't be known; restore it from a copy"
        ) from error
    return found, etag


def _get(store: BlockingStore, path: str) -> bytes | None:
    with reading(store, path):
        try:
            return get_json(store, path)
        except ObjectNotFoundError:
            return None
