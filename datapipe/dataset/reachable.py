"""Which objects the versions of a dataset consist of."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from datapipe.dataset import layout
from datapipe.dataset.layout import TABLE_KINDS
from datapipe.dataset.manifest import decode_manifest
from datapipe.dataset.objects import read_object
from datapipe.dataset.parquet import decode_table
from datapipe.dataset.tables import SHARDS
from tiering.store import BlockingStore

__all__ = ["Reachable"]


class Reachable:
    """The paths of all objects that manifests name; each object is read once."""

    def __init__(self, store: BlockingStore) -> None:
        self._store = store
        self._manifests: dict[str, frozenset[str]] = {}
        self._tables: dict[str, frozenset[str]] = {}

    def of(self, manifests: Collection[str]) -> set[str]:
        """Returns the paths that these manifests need, their own among them.

        Raises:
            DamagedError: one of them can't be read: what it needs can't be known.
        """
        paths: set[str] = set()
        for sha256 in manifests:
            if sha256 not in self._manifests:
                self._manifests[sha256] = self._named_by(sha256)
            paths |= self._manifests[sha256]
        return paths

    def _named_by(self, sha256: str) -> frozenset[str]:
        path = layout.manifest_path(sha256)
        manifest = decode_manifest(
            read_object(self._store, path, sha256=sha256, json=True), path=path
        )
        paths = {path}
        for name, kind in TABLE_KINDS.items():
            paths |= {kind.path(file.sha256) for file in manifest.files(name)}
        for index, indexed in manifest.indexes.items():
            paths |= {layout.index_path(index, file.sha256) for file in indexed}
        tokenizer = manifest.tokenizer
        paths |= {layout.tokenizer_path(tokenizer.sha256, name) for name in tokenizer.files}
        for file in manifest.files("shards"):
            if file.sha256 not in self._tables:
                self._tables[file.sha256] = self._shards(file.sha256)
            paths |= self._tables[file.sha256]
        return frozenset(paths)

    def _shards(self, sha256: str) -> frozenset[str]:
        path = TABLE_KINDS["shards"].path(sha256)
        data = read_object(self._store, path, sha256=sha256)
        table = decode_table(data, SHARDS, path=path, of=f"table shards of {self._store.url}")
        tokens = {layout.tokens_path(digest) for digest in _hex(table["stored_sha256"])}
        return frozenset(tokens | {layout.docmap_path(d) for d in _hex(table["docmap_sha256"])})


def _hex(column: pa.ChunkedArray) -> list[str]:
    return [digest.hex() for digest in column.to_pylist()]
