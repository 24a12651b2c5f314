"""Looking a hash up in an index: which rows of which tables may be meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from datapipe.dataset.index.covered import Covered, TableName, covered_by
from datapipe.dataset.index.files import IndexReader
from datapipe.dataset.layout import index_path
from datapipe.dataset.manifest import IndexFile
from datapipe.dataset.objects import to_repair
from datapipe.errors import DamagedError
from tiering.store import BlockingStore

__all__ = ["Index", "IndexedRow"]


class IndexedRow(NamedTuple):
    """A row that has the hash; another document may have it too, so the row is to be looked at."""

    hash: int
    table: TableName
    row: int


class Index:
    """The files of one index of a version, opened at first use; safe to share between threads.

    Args:
        store: of the dataset.
        kind: "doc", "url" or "domain".
        files: as the manifest lists them.
    """

    def __init__(self, store: BlockingStore, kind: str, files: Sequence[IndexFile]) -> None:
        self._paths = [index_path(kind, file.sha256) for file in files]
        self._covered = [covered_by(file) for file in files]
        self._store = store
        self._readers: dict[int, IndexReader] = {}

    def find(self, first: int, last: int | None = None) -> Iterator[IndexedRow]:
        """Yields the rows whose hash is `first`, or in [first, last]; by file, then by hash.

        Raises:
            DamagedError: a file is missing, or isn't what the manifest says.
        """
        for number, covered in enumerate(self._covered):
            for entries in self._reader(number).find(first, first if last is None else last):
                for hash_, table, row in entries.rows():
                    yield IndexedRow(hash_, self._name(covered, table, number), row)

    def _name(self, covered: Covered, table: int, number: int) -> TableName:
        try:
            return covered.name(table)
        except IndexError as error:
            raise DamagedError(
                f"{self._paths[number]} in {self._store.url} is damaged: it names {error}; nothing "
                f"can be looked up by it; {to_repair(self._store.url)}"
            ) from error

    def _reader(self, number: int) -> IndexReader:
        reader = self._readers.get(number)
        if reader is None:  # two threads may open it, which does no harm
            reader = self._readers[number] = IndexReader(self._store, self._paths[number])
        return reader
