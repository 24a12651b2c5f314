"""The files of an export: what each holds, whether it is there already, and how it is made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from datapipe.dataset import layout
from datapipe.dataset.foreign.folder import holds_bytes, link_file, write_file
from datapipe.dataset.foreign.megatron import index_bytes
from datapipe.dataset.reader import Dataset
from datapipe.errors import DamagedError

__all__ = ["CopiedShards", "ExportFile", "Index", "LinkedShard", "Listing"]

_PIECE_BYTES = 1 << 20


class ExportFile(Protocol):
    """One file of an export."""

    @property
    def path(self) -> Path:
        """Where it goes."""

    @property
    def num_documents(self) -> int:
        """Documents whose export it completes, for progress."""

    def is_there(self) -> bool:
        """Returns whether the file that has the path is this one."""

    def write(self) -> None:
        """Writes it. Raises: DamagedError: what it is made of isn't what the version says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkedShard:
    """A data file that is another name of a shard."""

    path: Path
    dataset: Dataset
    source: str
    number: int
    num_documents: int = 0

    @property
    def _shard(self) -> Path:
        stored = self.dataset.shards(self.source).stored_sha256[self.number]
        return Path(self.dataset.url) / layout.tokens_path(stored)

    def is_there(self) -> bool:
        """See `ExportFile.is_there`."""
        return self.path.exists() and self.path.samefile(self._shard)

    def write(self) -> None:
        """See `ExportFile.write`."""
        self.dataset.open_shard(self.source, self.number).close()  # its size is checked
        link_file(self.path, self._shard)


@dataclass(frozen=True, kw_only=True, slots=True)
class CopiedShards:
    """A data file that holds copies of a source's shards, one behind the other."""

    path: Path
    dataset: Dataset
    source: str
    num_documents: int = 0

    def is_there(self) -> bool:
        """See `ExportFile.is_there`."""
        table = self.dataset.shards(self.source)
        if not self.path.is_file() or self.path.stat().st_size != int(table.stored_bytes.sum()):
            return False
        with self.path.open("rb") as file:
            return all(
                hashlib.sha256(file.read(int(size))).hexdigest() == raw
                for size, raw in zip(table.stored_bytes, table.raw_sha256, strict=True)
            )

    def write(self) -> None:
        """See `ExportFile.write`."""
        write_file(self.path, self._pieces())

    def _pieces(self) -> Iterator[memoryview]:
        buffer = memoryview(bytearray(_PIECE_BYTES))
        table = self.dataset.shards(self.source)
        for number in range(len(table)):
            digest = hashlib.sha256()
            with self.dataset.open_shard(self.source, number) as view:
                for offset in range(0, view.size, _PIECE_BYTES):
                    piece = buffer[: view.read_into(buffer, offset)]
                    digest.update(piece)
                    yield piece
            if digest.hexdigest() != table.raw_sha256[number]:
                raise _damaged(
                    self.dataset, layout.tokens_path(table.stored_sha256[number]),
                    f"SHA-256 {table.raw_sha256[number]} expected, {digest.hexdigest()} read",
                )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """The index of a data file that holds these shards of a source."""

    path: Path
    dataset: Dataset
    source: str
    shards: range
    num_documents: int

    def is_there(self) -> bool:
        """See `ExportFile.is_there`."""
        return self.path.is_file() and holds_bytes(self.path, self._pieces())

    def write(self) -> None:
        """See `ExportFile.write`."""
        write_file(self.path, self._pieces())

    def _pieces(self) -> Iterator[bytes]:
        dataset = self.dataset
        lengths = [document_lengths(dataset, self.source, number) for number in self.shards]
        max_id = dataset.manifest.tokenizer.max_id
        return index_bytes(lengths, dataset.token_dtype, max_id=max_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """A list of data files, each with its tokens as the weight, for `--data-args-path`."""

    path: Path
    weights: Sequence[tuple[int, Path]]
    num_documents: int = 0

    def is_there(self) -> bool:
        """See `ExportFile.is_there`."""
        return self.path.is_file() and holds_bytes(self.path, [self._bytes()])

    def write(self) -> None:
        """See `ExportFile.write`."""
        write_file(self.path, [self._bytes()])

    def _bytes(self) -> bytes:
        return "".join(f"{tokens} {prefix}\n" for tokens, prefix in self.weights).encode()


def document_lengths(dataset: Dataset, source: str, number: int) -> npt.NDArray[np.int32]:
    """Returns the tokens of each document of a shard, int32 [documents].

    Raises:
        DamagedError: its docmap doesn't cover it.
    """
    table = dataset.shards(source)
    counts: npt.NDArray[np.int64] = dataset.docmap(source, number)["num_tokens"].to_numpy()
    covered, expected = int(counts.sum()), int(table.num_tokens[number])
    if covered != expected or counts.min(initial=0) < 0 or counts.max(initial=0) >= 1 << 31:
        raise _damaged(
            dataset, layout.docmap_path(table.docmap_sha256[number]),
            f"its documents have {covered} tokens, the shard {expected}",
        )  # fmt: skip
    return counts.astype(np.int32)


def _damaged(dataset: Dataset, path: str, why: str) -> DamagedError:
    return DamagedError(
        f"{path} in {dataset.url} is damaged: {why}; it wasn't exported; restore it from a copy, "
        "or run `datapipe verify` to see all damage"
    )
