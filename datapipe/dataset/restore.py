"""Making a version whole again from a build that came to the same.

Objects are named by their bytes, so what the build made is written again whether it was damaged,
missing or well. What a version has and the build doesn't make, because an append made it or because
libraries of another version write other bytes, is only looked at.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from datapipe.dataset.layout import TABLE_KINDS, tokenizer_path
from datapipe.dataset.objects import put_object, read_object
from datapipe.dataset.reachable import Reachable
from datapipe.dataset.reader import Dataset
from datapipe.dataset.secure import NewObject, secure_objects
from datapipe.errors import DamagedError
from tiering.store import BlockingStore

__all__ = ["restore_version"]


def restore_version(version: Dataset, made: Iterable[NewObject], *, since_seconds: float) -> None:
    """Writes what `version` consists of again, as far as it is in `made`.

    Args:
        version: its manifest was read, so that is whole.
        made: the objects of a draft that equals it.
        since_seconds: begin of the writer's transaction, by the store's clock.

    Raises:
        DamagedError: other objects of the version are damaged or missing; those in `made` are
            whole again.
    """
    store = version.repository.store
    by_path = {item.path: item for item in made}
    tables = _tables(version)
    _write(store, [by_path[path] for path in tables if path in by_path], since_seconds)
    _require(version, {path: sha256 for path, sha256 in tables.items() if path not in by_path})
    rest = _rest(version, known=tables)
    _write(store, [by_path[path] for path in rest if path in by_path], since_seconds)
    _require(version, {path: sha256 for path, sha256 in rest.items() if path not in by_path})


def _tables(version: Dataset) -> dict[str, str]:
    """Returns the digests of what the manifest names, by path."""
    manifest = version.manifest
    paths = {
        kind.path(file.sha256): file.sha256
        for name, kind in TABLE_KINDS.items()
        for file in manifest.files(name)
    }
    tokenizer = manifest.tokenizer
    for name, sha256 in tokenizer.files.items():
        paths[tokenizer_path(tokenizer.sha256, name)] = sha256
    return paths


def _rest(version: Dataset, *, known: Iterable[str]) -> dict[str, str]:
    """Returns the digests of what the tables name, by path: the objects' own names."""
    needed = Reachable(version.repository.store).of({version.manifest_sha256})
    return {path: posixpath.basename(path).split(".")[0] for path in needed.difference(known)}


def _write(store: BlockingStore, objects: list[NewObject], since_seconds: float) -> None:
    for item in objects:
        if item.data is not None:
            put_object(store, item.path, item.data, since_seconds=since_seconds)
    secure_objects(store, objects, since_seconds=since_seconds)


def _require(version: Dataset, digests: dict[str, str]) -> None:
    """Raises: DamagedError: some of these objects aren't whole."""
    store, problems = version.repository.store, []
    for path, sha256 in sorted(digests.items()):
        try:
            read_object(store, path, sha256=sha256)
        except DamagedError as error:
            problems.append(str(error))
    if problems:
        raise DamagedError(
            f"this build equals version {version.version} of {version.url} and wrote what it makes "
            f"of it again, but {len(problems)} other objects of it are damaged still: {problems[0]}"
        )
