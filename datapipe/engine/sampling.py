"""A fair share of the documents of every file, in the files' order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.engine.sources import SourceInputs, list_sources
from datapipe.read import plan_ranges, read_range
from datapipe.recipe import Fields, Input, refusing

__all__ = ["list_samples", "sample_batches"]

_RANGE_BYTES = 32 << 20


def list_samples(
    paths: Sequence[str], *, text_field: str, language_field: str = "language"
) -> SourceInputs:
    """Returns what lies at files, folders and patterns as one source."""
    with refusing({"text": "the text field", "language": "the language field"}):
        fields = Fields(text=text_field, language=language_field)
        entry = Input(source="sample", paths=list(paths), fields=fields)
    (source,) = list_sources([entry])
    return source


def sample_batches(source: SourceInputs, *, max_bytes: int) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yields (file, documents) from the start of every file, its part by its size.

    Args:
        source: the files.
        max_bytes: UTF-8 bytes of text in all; the last document of a file may go over its part.
    """
    total = sum(file.size_bytes for file, _ in source.files)
    for file, format in source.files:
        left = -(-max_bytes * file.size_bytes // max(total, 1))
        for piece in plan_ranges(file, format, target_bytes=_RANGE_BYTES):
            for result in read_range(piece, source=source.source, fields=source.fields):
                if result.batch is None or not result.batch.num_rows or left <= 0:
                    continue
                ends = np.cumsum(pc.binary_length(result.batch.column("text")).to_numpy())
                taken = result.batch.slice(0, int(np.searchsorted(ends, left)) + 1)
                yield file.relative, taken
                left -= int(ends[taken.num_rows - 1])
            if left <= 0:
                break
