"""Objects of a dataset in a store: checked reads, content-addressed writes, errors by meaning."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from datapipe.dataset.hashing import sha256_hex
from datapipe.errors import DamagedError, DatasetError, SpaceError
from tiering.checksums import Buffer
from tiering.errors import (
    NoSpaceError,
    NotAFileError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
    UndecidedError,
)
from tiering.store import BlockingStore, Mode, ObjectInfo, View

__all__ = [
    "MOST_JSON_BYTES",
    "check_digest",
    "check_digest_of",
    "get_json",
    "get_json_together",
    "put_again",
    "put_object",
    "read_object",
    "reading",
    "stream_sha256",
    "to_repair",
    "writing",
]

MOST_JSON_BYTES = 64 << 20
"""Larger JSON is refused before it is parsed, and isn't written. Parsing takes up to some 50 times
its size in memory. A manifest grows by about 1 kB an append and by the paths of its recipe, so
this is some 50,000 appends, or a recipe of 500,000 paths."""

_JSON_AT_FIRST_BYTES = 1 << 20
"""Nearly all JSON is smaller, and is read by one request."""

_ATTEMPTS = 5
_PIECE_BYTES = 8 << 20


def put_object(
    store: BlockingStore, path: str, data: Buffer, *, since_seconds: float | None = None
) -> None:
    """Writes an object that its digest names; one that is there already is fine.

    What is there with another size can only be damage, and is replaced. A lost answer is asked
    for again: the same bytes under the same name do no harm.

    Args:
        store: where.
        path: the object's path.
        data: its bytes.
        since_seconds: begin of the writer's transaction by the store's clock; what is older is
            written again, so that no garbage collection takes it.

    Raises:
        SpaceError: the disk is full.
        DatasetError: the store refuses.
    """
    with writing(store):
        for attempt in range(_ATTEMPTS):
            try:
                return _put(store, path, data, since_seconds=since_seconds)
            except (UndecidedError, ObjectNotFoundError):
                if attempt == _ATTEMPTS - 1:
                    raise


def _put(store: BlockingStore, path: str, data: Buffer, *, since_seconds: float | None) -> None:
    try:
        store.put(path, data)
    except (ObjectExistsError, UndecidedError):
        # Not found: the request was lost, or it was deleted in between; then it is put again.
        try:
            found = store.head(path)
        except NotAFileError:
            store.put(path, data, mode=Mode.OVERWRITE)
            return
        is_old = since_seconds is not None and found.modified_seconds < since_seconds
        if is_old or found.size != memoryview(data).nbytes:
            store.put(path, data, mode=Mode.OVERWRITE)


def put_again(store: BlockingStore, path: str, data: Buffer) -> ObjectInfo:
    """Overwrites an object that only this writer writes, asking again where no answer came."""
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(UndecidedError):
            return store.put(path, data, mode=Mode.OVERWRITE)
    return store.put(path, data, mode=Mode.OVERWRITE)


def get_json(store: BlockingStore, path: str) -> bytes:
    """Returns the bytes of an object that holds JSON, however large it claims to be.

    Raises:
        DamagedError: it has more than MOST_JSON_BYTES.
        ObjectNotFoundError, StoreError: as the store says.
    """
    beginning = store.get_range(path, 0, _JSON_AT_FIRST_BYTES)
    if len(beginning) < _JSON_AT_FIRST_BYTES:
        return beginning
    size = store.head(path).size
    if size > MOST_JSON_BYTES:
        raise DamagedError(
            f"{path} in {store.url} has {size:,} bytes, no such JSON has more than "
            f"{MOST_JSON_BYTES:,}; it wasn't read; restore it from a copy"
        )
    return store.get(path)


def read_object(store: BlockingStore, path: str, *, sha256: str, json: bool = False) -> bytes:
    """Returns an object's bytes. Raises: DamagedError: missing, or not what the digest says."""
    with reading(store, path):
        data = get_json(store, path) if json else store.get(path)
    check_digest(store, path, data, sha256=sha256)
    return data


def get_json_together(store: BlockingStore, paths: Sequence[str]) -> list[bytes | None]:
    """Returns objects that hold JSON, asked for at once, None where there is none."""

    def get(path: str) -> bytes | None:
        try:
            return get_json(store, path)
        except ObjectNotFoundError:
            return None

    with ThreadPoolExecutor(len(paths)) as threads:
        return list(threads.map(get, paths))


def to_repair(url: str, version: int | str = "VERSION") -> str:
    """Returns what to do about damage, the end of a message."""
    return (
        f"run `datapipe verify {url}@{version} --repair-from COPY` to fetch what is damaged from "
        "another copy of the dataset, or without --repair-from to see all damage"
    )


def check_digest(store: BlockingStore, path: str, data: Buffer, *, sha256: str) -> None:
    """Returns if bytes are what their digest says. Raises: DamagedError: they aren't."""
    found = sha256_hex(data)
    if found != sha256:
        raise _damaged(store, path, memoryview(data).nbytes, expected=sha256, found=found)


def check_digest_of(store: BlockingStore, path: str, view: View, *, sha256: str) -> None:
    """Returns if an open object, which may be larger than memory, is what its digest says.

    Raises:
        DamagedError: it isn't.
    """
    found, size = stream_sha256(view)
    if found != sha256:
        raise _damaged(store, path, size, expected=sha256, found=found)


def stream_sha256(view: View) -> tuple[str, int]:
    """Returns the SHA-256 of an open object in hex, and its size; reads it in pieces."""
    digest, piece, offset = hashlib.sha256(), bytearray(_PIECE_BYTES), 0
    while count := view.read_into(memoryview(piece), offset):
        digest.update(memoryview(piece)[:count])
        offset += count
    return digest.hexdigest(), offset


def _damaged(
    store: BlockingStore, path: str, size: int, *, expected: str, found: str
) -> DamagedError:
    return DamagedError(
        f"{path} in {store.url} is damaged: SHA-256 {expected} expected, {found} read "
        f"({size} bytes); what it describes can't be used; {to_repair(store.url)}"
    )


@contextlib.contextmanager
def reading(store: BlockingStore, path: str) -> Iterator[None]:
    """Turns a store's errors about an object that must be there into the dataset's."""
    try:
        yield
    except ObjectNotFoundError as error:
        raise DamagedError(
            f"{path} is missing in {store.url}; what it describes can't be used; "
            f"{to_repair(store.url)}"
        ) from error
    except NotAFileError as error:
        raise DamagedError(f"{store.url} is damaged: {error}") from error
    except StoreError as error:
        what = f"{path} in {store.url}" if path else store.url
        raise DatasetError(f"{what} can't be read: {error}") from error


@contextlib.contextmanager
def writing(store: BlockingStore) -> Iterator[None]:
    """Turns a store's errors about writing into the dataset's."""
    try:
        yield
    except NoSpaceError as error:
        raise SpaceError(
            f"no space left in {store.url}: {error}. Nothing is lost and nothing half-written is "
            "visible; run the same command again when there is space"
        ) from error
    except StoreError as error:
        raise DatasetError(f"{store.url} can't be written: {error}") from error
