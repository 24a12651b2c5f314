"""A dataset at one version: resolved once, immutable from then on."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset as pads

from datapipe.dataset import layout
from datapipe.dataset.documents import documents_of, dropped_of
from datapipe.dataset.index.lookup import Index
from datapipe.dataset.layout import TABLE_KINDS
from datapipe.dataset.manifest import Manifest, SourceSummary, TableFile
from datapipe.dataset.objects import read_object, reading, to_repair
from datapipe.dataset.parquet import GROUP_ROWS, decode_table, open_table, restore
from datapipe.dataset.shards import token_dtype
from datapipe.dataset.signals import join_signals
from datapipe.dataset.table_files import decode_file
from datapipe.dataset.tables import DETAILS, DOCMAP, SHARDS
from datapipe.errors import DamagedError, UnknownReferenceError
from tiering.checksums import BLOCK_BYTES
from tiering.store import View, ViewFile

if TYPE_CHECKING:
    from datapipe.dataset.repository import Repository

__all__ = ["Dataset", "DetailsTable", "HexDigests", "ShardTable"]

_CACHED_GROUPS = 16
_FILES_AT_ONCE = 16


class HexDigests(Sequence[str]):
    """A column of digests that reads as hex strings and holds 32 bytes each."""

    def __init__(self, raw: npt.NDArray[np.uint8]) -> None:
        self.raw = raw
        """uint8 [rows, 32]."""

    def __len__(self) -> int:
        return len(self.raw)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> HexDigests: ...

    def __getitem__(self, index: int | slice) -> str | HexDigests:
        if isinstance(index, slice):
            return HexDigests(self.raw[index])
        return bytes(self.raw[index]).hex()


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardTable:
    """A source's shards; every column is indexed by shard number."""

    num_tokens: npt.NDArray[np.int64]
    num_documents: npt.NDArray[np.int64]
    raw_sha256: HexDigests
    stored_sha256: HexDigests
    stored_bytes: npt.NDArray[np.int64]
    docmap_sha256: HexDigests

    def __len__(self) -> int:
        return len(self.num_tokens)


@dataclass(frozen=True, kw_only=True, slots=True)
class DetailsTable:
    """The rest about a source's shards, by number, without block checksums."""

    birth_sha256: HexDigests
    docmap_logical_sha256: HexDigests
    text_bytes: npt.NDArray[np.int64]


class Dataset:
    """One version of a dataset; safe to share between threads, and picklable.

    Args:
        repository: where its objects are.
        version: its number.
        manifest: what it consists of.
        manifest_sha256: the manifest's digest.
    """

    def __init__(
        self, *, repository: Repository, version: int, manifest: Manifest, manifest_sha256: str
    ) -> None:
        self.repository = repository
        self.version = version
        self.manifest = manifest
        self.manifest_sha256 = manifest_sha256
        self._lock = threading.Lock()
        self._index: _ShardIndex | None = None
        self._groups: OrderedDict[tuple[str, int], pa.Table] = OrderedDict()
        self._indexes: dict[str, Index] = {}

    def __repr__(self) -> str:
        return f"Dataset({self.url!r}, version={self.version})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.repository, self.version, self.manifest, self.manifest_sha256)

    @property
    def url(self) -> str:
        """Where the dataset is, without the version."""
        return self.repository.url

    @property
    def sources(self) -> tuple[SourceSummary, ...]:
        """The sources in manifest order."""
        return self.manifest.sources

    @property
    def token_dtype(self) -> np.dtype[Any]:
        """Of all shards, little-endian."""
        return token_dtype(self.manifest.tokenizer.max_id)

    @property
    def eos_id(self) -> int:
        """The token that closes documents."""
        return self.manifest.tokenizer.eos_id

    @property
    def vocab_size(self) -> int:
        """Of the tokenizer."""
        return self.manifest.tokenizer.vocab_size

    # -- shards

    def shards(self, source: str) -> ShardTable:
        """Returns a source's shards. Raises: UnknownReferenceError: no such source."""
        self._require_source(source)
        return self._shard_index().tables[source]

    def details(self, source: str) -> DetailsTable:
        """Returns the rest about a source's shards. Raises: UnknownReferenceError."""
        self._require_source(source)
        columns = ["source", "number", "birth_sha256", "docmap_logical_sha256", "text_bytes"]
        files = self.manifest.files("details")
        table = _concat([self._read_details(file, columns) for file in files], DETAILS, columns)
        rows = _rows_of(table, source, self._summary(source).num_shards, what="details")
        return DetailsTable(
            birth_sha256=HexDigests(_digests(table, "birth_sha256")[rows]),
            docmap_logical_sha256=HexDigests(_digests(table, "docmap_logical_sha256")[rows]),
            text_bytes=table.column("text_bytes").to_numpy()[rows],
        )

    def open_shard(self, source: str, number: int) -> View:
        """Opens a shard for reading tokens by ranges; `size` is checked, the digest isn't.

        Raises:
            UnknownReferenceError: no such source or shard.
            DamagedError: it is missing or has another size.
        """
        table = self._require_shard(source, number)
        path = layout.tokens_path(table.stored_sha256[number])
        store = self.repository.store
        with reading(store, path):
            view = store.open(path)
        expected = int(table.stored_bytes[number])
        if view.size != expected:
            found = view.size
            view.close()
            raise DamagedError(
                f"shard {number} of {source} in version {self.version} is damaged: {path} has "
                f"{found} bytes, {expected} expected; its tokens can't be read; "
                f"{to_repair(self.url, self.version)}"
            )
        return view

    def block_checksums(self, source: str, number: int) -> npt.NDArray[np.uint64]:
        """Returns the xxh3-64 of each 1 MiB of a shard's raw bytes, uint64 [blocks].

        Raises:
            UnknownReferenceError: no such source or shard.
            DamagedError: the details table isn't the version's.
        """
        shards = self._require_shard(source, number)
        file_number, row = self._shard_index().place(source, number)
        file = self.manifest.files("details")[file_number]
        group, row = divmod(row, GROUP_ROWS["details"])
        table = self._details_group(file, group)
        found = table.slice(row, 1).to_pylist()
        blocks = -(-int(shards.stored_bytes[number]) // BLOCK_BYTES)
        if not found or (found[0]["source"], found[0]["number"]) != (source, number):
            raise _no_details(file, source, number)
        if len(found[0]["block_checksums"]) != blocks:
            raise _no_details(file, source, number)
        return np.array(found[0]["block_checksums"], dtype=np.uint64)

    def docmap(self, source: str, number: int) -> pa.Table:
        """Returns the DOCMAP rows of a shard, in token order."""
        sha256 = self._require_shard(source, number).docmap_sha256[number]
        path = layout.docmap_path(sha256)
        data = read_object(self.repository.store, path, sha256=sha256)
        of = f"the docmap of shard {number} of {source} in {self._named}"
        return decode_table(data, DOCMAP, path=path, of=of)

    # -- tables

    def documents(self) -> pads.Dataset:
        """Returns all documents as a pyarrow dataset, whose docmaps are read when it is scanned.

        Columns of DOCMAP, and `source` and `shard`; in the order of sources, shards and tokens.
        Files are read by ranges, so their digests aren't checked.
        """
        return documents_of(self)

    def dropped_rows(self) -> pads.Dataset:
        """Returns the rows of `dropped()` as a pyarrow dataset, likewise."""
        return dropped_of(self)

    def dropped(self) -> pa.Table:
        """Returns one row a document that a stage removed."""
        return self._read_table("dropped")

    def quarantine(self) -> pa.Table:
        """Returns one row a record that couldn't be read."""
        return self._read_table("quarantine")

    def inputs(self) -> pa.Table:
        """Returns one row an input file."""
        return self._read_table("inputs")

    def signatures(self) -> pa.Table | None:
        """Returns what exact deduplication compared; None if it never did."""
        return self._read_table("signatures") if "signatures" in self.manifest.tables else None

    def signals(self) -> pa.Table:
        """Returns what stages measured, one row a document that a measuring stage saw.

        Columns: those of `tables.SIGNALS` and one a signal, "stage.signal"; null where a document
        didn't come to the stage, or was read by a build or append that didn't measure it.
        """
        return join_signals(self._read_files("signals"))

    def index(self, kind: str) -> Index | None:
        """Returns an index of "doc", "url" or "domain"; None: the version has none of that kind."""
        files = self.manifest.indexes.get(kind)
        if files is None:
            return None
        with self._lock:
            if kind not in self._indexes:
                self._indexes[kind] = Index(self.repository.store, kind, files)
            return self._indexes[kind]

    def rows_since(self, table: str, before: Dataset) -> pa.Table:
        """Returns the rows of a table that are in files which an earlier version doesn't have."""
        known = set(before.manifest.files(table))
        new = [file for file in self.manifest.files(table) if file not in known]
        return _concat([self._read_file(table, file) for file in new], TABLE_KINDS[table].schema)

    def tokenizer_files(self) -> dict[str, bytes]:
        """Returns the tokenizer's own files by name."""
        info = self.manifest.tokenizer
        store = self.repository.store
        return {
            name: read_object(store, layout.tokenizer_path(info.sha256, name), sha256=sha256)
            for name, sha256 in info.files.items()
        }

    # -- reading

    @property
    def _named(self) -> str:
        return f"version {self.version} of {self.url}"

    def _summary(self, source: str) -> SourceSummary:
        return next(summary for summary in self.sources if summary.name == source)

    def _require_source(self, source: str) -> None:
        names = [summary.name for summary in self.sources]
        if source not in names:
            raise UnknownReferenceError(
                f"version {self.version} of {self.url} has no source {source!r}; it has "
                f"{', '.join(names) or 'none'}"
            )

    def _require_shard(self, source: str, number: int) -> ShardTable:
        table = self.shards(source)
        if not 0 <= number < len(table):
            raise UnknownReferenceError(
                f"{source} in version {self.version} of {self.url} has no shard {number}; it has "
                f"{len(table)}, numbered from 0"
            )
        return table

    def _shard_index(self) -> _ShardIndex:
        with self._lock:
            if self._index is None:
                self._index = _ShardIndex(self._read_files("shards"), self.sources)
            return self._index

    def whole_table(self, name: str) -> pa.Table:
        """Returns all rows of a table, by its name in the manifest."""
        return self._read_table(name)

    def _read_table(self, name: str) -> pa.Table:
        return _concat(self._read_files(name), TABLE_KINDS[name].schema)

    def _read_files(self, name: str) -> list[pa.Table]:
        """Returns a table's files, asked for at once: there are few, and each is a round trip."""
        files = self.manifest.files(name)
        with ThreadPoolExecutor(_FILES_AT_ONCE) as threads:
            return list(threads.map(lambda file: self._read_file(name, file), files))

    def _read_file(self, name: str, file: TableFile) -> pa.Table:
        path = TABLE_KINDS[name].path(file.sha256)
        data = read_object(self.repository.store, path, sha256=file.sha256)
        of = f"table {name} of {self._named}"
        return decode_file(name, data, path=path, of=of, rows=file.rows)

    def _read_details(
        self, file: TableFile, columns: list[str], group: int | None = None
    ) -> pa.Table:
        path = TABLE_KINDS["details"].path(file.sha256)
        store = self.repository.store
        with reading(store, path):
            view = store.open(path)
        with ViewFile(view) as source:
            of = f"table details of {self._named}"
            opened = open_table(source, DETAILS, path=path, of=of)
            groups = None if group is None else [group]
            return restore(opened, DETAILS, path=path, of=of, groups=groups, columns=columns)

    def _details_group(self, file: TableFile, group: int) -> pa.Table:
        key = (file.sha256, group)
        with self._lock:
            if key in self._groups:
                self._groups.move_to_end(key)
                return self._groups[key]
        table = self._read_details(file, ["source", "number", "block_checksums"], group)
        table = table.combine_chunks()
        with self._lock:
            self._groups[key] = table
            if len(self._groups) > _CACHED_GROUPS:
                self._groups.popitem(last=False)
        return table


def _no_details(file: TableFile, source: str, number: int) -> DamagedError:
    path = TABLE_KINDS["details"].path(file.sha256)
    return DamagedError(
        f"{path} is damaged: it doesn't have shard {number} of {source} where it must be; blocks "
        "can't be checked; restore it from a copy, or run `datapipe verify` to see all damage"
    )


class _ShardIndex:
    """The shards table by source and number, and where each row stands in the files."""

    def __init__(self, files: list[pa.Table], sources: Sequence[SourceSummary]) -> None:
        self._bounds = np.cumsum([0] + [file.num_rows for file in files])
        table = _concat(files, SHARDS)
        self.tables: dict[str, ShardTable] = {}
        self._rows: dict[str, _Rows] = {}
        for summary in sources:
            rows = _rows_of(table, summary.name, summary.num_shards, what="shards")
            self._rows[summary.name] = rows
            self.tables[summary.name] = _shard_table(table, rows)

    def place(self, source: str, number: int) -> tuple[int, int]:
        """Returns the file and the row in it."""
        rows = self._rows[source]
        row = rows.start + number if isinstance(rows, slice) else int(rows[number])
        file = int(np.searchsorted(self._bounds, row, side="right")) - 1
        return file, row - int(self._bounds[file])


def _shard_table(table: pa.Table, rows: _Rows) -> ShardTable:
    return ShardTable(
        num_tokens=table.column("num_tokens").to_numpy()[rows],
        num_documents=table.column("num_documents").to_numpy()[rows],
        raw_sha256=HexDigests(_digests(table, "raw_sha256")[rows]),
        stored_sha256=HexDigests(_digests(table, "stored_sha256")[rows]),
        stored_bytes=table.column("stored_bytes").to_numpy()[rows],
        docmap_sha256=HexDigests(_digests(table, "docmap_sha256")[rows]),
    )


_Rows = slice | npt.NDArray[np.int64]
"""Which rows of a table, in the order wanted; a slice where they follow each other: no copy."""


def _rows_of(table: pa.Table, source: str, count: int, *, what: str) -> _Rows:
    """Returns which rows are a source's, by shard number."""
    names = _one_chunk(table.column("source"))
    wanted = names.dictionary.index(source).as_py()
    codes = names.indices.to_numpy()
    rows = np.flatnonzero(codes == wanted) if wanted >= 0 else np.zeros(0, dtype=np.int64)
    numbers = table.column("number").to_numpy()[rows]
    if not np.array_equal(numbers, np.arange(count)):
        order = np.argsort(numbers, kind="stable")
        rows, numbers = rows[order], numbers[order]
        if not np.array_equal(numbers, np.arange(count)):
            raise DamagedError(
                f"the table of {what} has {len(rows)} rows for {source}, the manifest {count} "
                "shards numbered from 0; the version can't be used; run `datapipe verify`"
            )
    if count and np.array_equal(rows, np.arange(rows[0], rows[0] + count)):
        return slice(int(rows[0]), int(rows[0]) + count)
    return rows


def _digests(table: pa.Table, name: str) -> npt.NDArray[np.uint8]:
    """Returns a column of digests as uint8 [rows, width], without copying it."""
    array = _one_chunk(table.column(name))
    width = array.type.byte_width
    data = np.frombuffer(array.buffers()[1] if len(array) else b"", dtype=np.uint8)
    stretch = data[array.offset * width : (array.offset + len(array)) * width]
    return stretch.reshape(-1, width)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _concat(
    files: list[pa.Table], schema: pa.Schema, columns: Sequence[str] | None = None
) -> pa.Table:
    wanted = pa.schema([schema.field(name) for name in columns or schema.names])
    if not files:
        return wanted.empty_table()
    return pa.concat_tables(files).unify_dictionaries().combine_chunks()


def _reopen(
    repository: Repository, version: int, manifest: Manifest, manifest_sha256: str
) -> Dataset:
    return Dataset(
        repository=repository, version=version, manifest=manifest, manifest_sha256=manifest_sha256
    )
