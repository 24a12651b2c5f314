"""A sample of the inputs: pieces spread over all files, the same whenever it is taken."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from datapipe.engine.preview.estimate import num_text_bytes
from datapipe.engine.sources import SourceInputs
from datapipe.engine.units import unpacked_bytes
from datapipe.read import FileRange, plan_ranges, read_range

__all__ = ["Sample", "sample_source", "source_bytes"]

PIECE_BYTES = 1 << 20
"""Text that is taken from one place of a file, more where there are few places.

Pages of one site stand together in crawls, so a sample is better taken from many places.
"""

_RANGE_BYTES = 4 << 20
_MOST_FILES = 1_000
"""Files that a sample is taken from, at most: each has to be opened."""


@dataclass(slots=True)
class Sample:
    """Documents of one source, and what else was met on the way to them."""

    source: str
    batches: list[pa.RecordBatch] = field(default_factory=list)
    quarantined: Counter[str] = field(default_factory=Counter)
    """Records by error."""
    num_bytes: int = 0
    """UTF-8 bytes of the documents' texts."""
    input_bytes: int = 0
    """What the records take in the unpacked input; of Parquet their texts alone."""
    is_whole: bool = True
    """Whether it holds every document of the source."""

    @property
    def num_documents(self) -> int:
        """Documents in it."""
        return sum(batch.num_rows for batch in self.batches)


def sample_source(entries: Sequence[SourceInputs], *, max_bytes: int) -> Sample:
    """Returns about `max_bytes` of text of one source.

    Args:
        entries: all inputs of the source.
        max_bytes: UTF-8 bytes of text at most, but for the last document's.

    Raises:
        FailedError: a file can't be read.
    """
    sample = Sample(entries[0].source)
    places = _places(entries)
    most = max(PIECE_BYTES, max_bytes // max(len(places), 1))
    for entry, piece in places:
        if sample.num_bytes >= max_bytes:
            sample.is_whole = False
            break
        _take(sample, entry, piece, most=min(most, max_bytes - sample.num_bytes))
    return sample


def source_bytes(entries: Sequence[SourceInputs]) -> int:
    """Returns about how many bytes the inputs have unpacked, from their sizes alone."""
    return sum(
        unpacked_bytes(format, file.size_bytes) for entry in entries for file, format in entry.files
    )


def _places(entries: Sequence[SourceInputs]) -> list[tuple[SourceInputs, FileRange]]:
    """Returns ranges of the files in an order that is their own, whatever order they are listed in.

    Every file comes once before any comes again.
    """
    files = [(entry, file, format) for entry in entries for file, format in entry.files]
    chosen = sorted(files, key=lambda item: _mixed(item[1].relative))[:_MOST_FILES]
    found = []
    for place, (entry, file, format) in enumerate(chosen):
        ranges = plan_ranges(file, format, target_bytes=_RANGE_BYTES)
        ranges.sort(key=lambda piece: _mixed(f"{piece.file.relative}:{piece.start}"))
        found += [(turn, place, entry, piece) for turn, piece in enumerate(ranges)]
    found.sort(key=lambda item: item[:2])
    return [(entry, piece) for _, _, entry, piece in found]


def _mixed(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


def _take(sample: Sample, entry: SourceInputs, piece: FileRange, *, most: int) -> None:
    taken = 0
    is_parquet = piece.format.kind == "parquet"
    for result in read_range(
        piece,
        source=entry.source,
        fields=entry.fields,
        licence=entry.licence,
        batch_bytes=PIECE_BYTES,
    ):
        if taken >= most:
            sample.is_whole = False
            break
        sample.quarantined.update(result.quarantined["error"].to_pylist())
        if result.batch is not None:
            sample.batches.append(result.batch)
            size = num_text_bytes(result.batch)
            taken += size
            lengths = result.batch.column("source_length")
            sample.input_bytes += size if is_parquet else pc.sum(lengths).as_py() or 0
    sample.num_bytes += taken
