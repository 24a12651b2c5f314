"""The work folder: finished pieces of a build under the digest of all that went into them.

A piece is some objects and, written last, one record. A piece with a record is finished and is
never done again; one without is done anew. So a build that was killed goes on where it was, and
results of another configuration, another input or other code can't be mixed in: their keys differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa

from datapipe.dataset import canonical_json, sha256_hex
from datapipe.dataset.objects import reading, writing
from datapipe.errors import ResumableError
from tiering.errors import ObjectNotFoundError
from tiering.store import BlockingStore, Mode, View, ViewFile, open_store

__all__ = ["ROWS_PER_BATCH", "Piece", "Work", "piece_key", "read_table", "table_bytes"]

ROWS_PER_BATCH = 4096
"""Rows of a record batch in a work table: what a range of rows is read in."""


_RECORD = "record.json"


def piece_key(**parts: Any) -> str:
    """Returns the key of a piece of work: SHA-256 of the canonical JSON of all that defines it."""
    return sha256_hex(canonical_json(parts))


def table_bytes(table: pa.Table) -> pa.Buffer:
    """Returns a table as an Arrow file of batches of ROWS_PER_BATCH rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=ROWS_PER_BATCH)
    return sink.getvalue()


def read_table(data: bytes) -> pa.Table:
    """Returns the table that `table_bytes` made, without copying its columns."""
    return pa.ipc.open_file(pa.BufferReader(data)).read_all()


@lru_cache
def _opened(url: str) -> BlockingStore:
    return open_store(url).blocking()


@dataclass(frozen=True, slots=True)
class Piece:
    """The names of one piece's objects."""

    stage: str
    key: str


@dataclass(frozen=True, slots=True)
class Work:
    """A work folder in any store; safe to share, picklable."""

    url: str
    """The store."""
    prefix: str = ""
    """What the paths of all pieces start with: empty, or ending in `/`."""

    @property
    def store(self) -> BlockingStore:
        """The store, opened once a process."""
        return _opened(self.url)

    def record(self, piece: Piece) -> dict[str, Any] | None:
        """Returns the record of a finished piece, or None where it isn't finished."""
        try:
            data = self.store.get(self._path(piece, _RECORD))
        except ObjectNotFoundError:
            return None
        try:
            found: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError):
            return None  # damaged: the piece is done anew
        return found

    def finish(self, piece: Piece, record: Mapping[str, Any]) -> None:
        """Marks a piece as finished; its objects are all written by now."""
        self.put_bytes(piece, _RECORD, memoryview(msgspec.json.encode(record)))

    def put_table(self, piece: Piece, name: str, table: pa.Table) -> None:
        """Writes a table as one of the piece's objects."""
        self.put_bytes(piece, name, memoryview(table_bytes(table)))

    def put_rows(self, piece: Piece, name: str, table: pa.Table) -> None:
        """Writes a table that is most often empty, if it isn't; the record tells that it's there.

        Each object costs several fsyncs, most of what a small unit costs.
        """
        if table.num_rows:
            self.put_table(piece, name, table)

    def put_bytes(self, piece: Piece, name: str, data: memoryview) -> None:
        """Writes bytes as one of the piece's objects.

        Raises:
            SpaceError: the disk is full.
            DatasetError: the store refuses.
        """
        with writing(self.store):
            self.store.put(self._path(piece, name), data, mode=Mode.OVERWRITE)

    @contextmanager
    def _expecting(self, piece: Piece) -> Iterator[None]:
        """Turns absence or damage of a finished piece into what it means, and forgets the piece."""
        try:
            yield
        except (ObjectNotFoundError, pa.ArrowException) as error:
            unit = piece.key.partition("-")[0]  # a part has no record of its own
            with writing(self.store):
                self.store.delete(self._path(Piece(piece.stage, unit), _RECORD))
            raise ResumableError(
                f"unfinished work is gone or damaged ({piece.stage} {piece.key[:12]}): another "
                "build on the same work folder finished and emptied it, or somebody changed it. "
                "Nothing was committed by this build; run the same command again"
            ) from error

    def get_bytes(self, piece: Piece, name: str) -> bytes:
        """Returns one of the piece's objects, whole. Raises: ResumableError: it is gone."""
        with self._expecting(piece):
            return self.store.get(self._path(piece, name))

    def get_table(self, piece: Piece, name: str) -> pa.Table:
        """Returns one of the piece's tables, whole."""
        data = self.get_bytes(piece, name)
        with self._expecting(piece):
            return read_table(data)

    def get_rows(self, piece: Piece, name: str, start: int, stop: int) -> pa.Table:
        """Returns rows [start, stop) of one of the piece's tables, reading only their batches."""
        with self.open(piece, name) as view, self._expecting(piece):
            reader = pa.ipc.open_file(pa.PythonFile(ViewFile(view), mode="r"))
            first, last = start // ROWS_PER_BATCH, -(-stop // ROWS_PER_BATCH)
            batches = [reader.get_batch(number) for number in range(first, last)]
            table = pa.Table.from_batches(batches, schema=reader.schema)
        return table.slice(start - first * ROWS_PER_BATCH, stop - start)

    def open(self, piece: Piece, name: str) -> View:
        """Opens one of the piece's objects for ranged reads. Raises: ResumableError."""
        with self._expecting(piece):
            return self.store.open(self._path(piece, name))

    def paths(self) -> list[str]:
        """Returns the paths of all objects of pieces, records first."""
        with reading(self.store, self.prefix):
            found = [info.path for info in self.store.list(self.prefix)]
        return sorted(
            (path for path in found if self.piece(path) is not None),
            key=lambda path: (not path.endswith(f"/{_RECORD}"), path),
        )

    def piece(self, path: str) -> Piece | None:
        """Returns the piece that an object belongs to, None if it is something else."""
        parts = path.removeprefix(self.prefix).split("/")
        return Piece(parts[0], parts[1]) if len(parts) == 3 else None

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes objects; with records first, none that is half deleted looks finished."""
        with writing(self.store):
            self.store.delete_many(paths)

    def _path(self, piece: Piece, name: str) -> str:
        return f"{self.prefix}{piece.stage}/{piece.key}/{name}"
