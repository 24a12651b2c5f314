"""From a sample to the whole: tokens, time, disk and memory of the build."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from datapipe.encode import encode_documents
from datapipe.engine.preview.report import Estimate, SourceReport, StageReport
from datapipe_tokenizers import Tokenizer

__all__ = ["Encoder", "estimate", "num_text_bytes"]

_DOCMAP_BYTES = 60
"""Of a document in a docmap, at most (docs/format.md)."""


class Encoder:
    """Counts tokens, and how long it takes; without a tokenizer it counts none."""

    def __init__(self, tokenizer: Tokenizer | None, *, append_eos: bool) -> None:
        self._tokenizer = tokenizer
        self._append_eos = append_eos
        self.seconds = 0.0

    @property
    def token_bytes(self) -> int:
        """Bytes of a token; 0: there is no tokenizer."""
        return self._tokenizer.token_dtype.itemsize if self._tokenizer is not None else 0

    def count_tokens(self, batches: Sequence[pa.RecordBatch]) -> int | None:
        """Returns the tokens of some documents; None: there is no tokenizer."""
        if self._tokenizer is None:
            return None
        started, tokens = time.process_time(), 0
        for batch in batches:
            ids, _ = encode_documents(batch, self._tokenizer, append_eos=self._append_eos)
            tokens += len(ids)
        self.seconds += time.process_time() - started
        return tokens


def estimate(
    sources: Sequence[SourceReport],
    *,
    stages: Sequence[StageReport],
    encoder: Encoder,
    workers: int,
) -> Estimate:
    """Returns what a build of everything would take, if the rest is like the sample.

    Reading and writing aren't in the time: they are small beside cleaning and tokenizing, unless
    storage is slow.
    """
    seconds = sum(stage.seconds for stage in stages) + encoder.seconds
    sampled = sum(source.text_bytes for source in sources) or 1
    whole = sum(source.text_bytes / source.fraction for source in sources if source.text_bytes)
    documents = sum(source.kept / source.fraction for source in sources)
    tokens = None
    if encoder.token_bytes:
        tokens = round(sum((source.tokens or 0) / source.fraction for source in sources))
    return Estimate(
        workers=workers,
        seconds=seconds * whole / sampled / workers,
        documents=round(documents),
        tokens=tokens,
        disk_bytes=None
        if tokens is None
        else round(tokens * encoder.token_bytes + documents * _DOCMAP_BYTES),
        memory_bytes=_peak_bytes() * workers,
    )


def _peak_bytes() -> int:
    """Returns the most memory that this process had; Linux counts it in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def num_text_bytes(batch: pa.RecordBatch) -> int:
    """Returns the UTF-8 bytes of the texts."""
    return int(pc.sum(pc.binary_length(batch.column("text"))).as_py() or 0)
