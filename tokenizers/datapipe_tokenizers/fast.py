"""The fast backend: `gigatoken`, on the tokenizer without its reserved tokens.

It is kept within bounds that it doesn't have itself:
- its cache of words grows as long as there are new ones (1.5 GB after 120 MB of random words), so
  the process's growth by `CACHE_BYTES` since an encoder was made has it thrown away for a new one;
- it finds special tokens in a text, so it never learns of them; a text in which the model itself
  finds one goes to the reference, and so does one with code points that it knows and the reference
  doesn't.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datapipe_tokenizers.disputed import disputed_rows
from datapipe_tokenizers.errors import MissingPackageError, TokenizerFormatError
from datapipe_tokenizers.groups import (
    Counts,
    Encoder,
    Ids,
    encode_in_groups,
    replace_documents,
    rows_with,
)
from datapipe_tokenizers.memory import release_free_memory, resident_bytes
from datapipe_tokenizers.model import FastSource
from datapipe_tokenizers.panics import leave_interruptions
from datapipe_tokenizers.windows import Windows, encode_long

__all__ = ["CACHE_BYTES", "FastEncoder"]

BATCH_BYTES = 16 << 20
"""Text given to the library at once; its results take up to four times as much memory."""

CACHE_BYTES = 256 << 20
"""Growth of the process after which an encoder is replaced. A new one costs 0.1-0.4 s."""

LONG_BYTES = 4 << 20
"""Bytes of a text from which on it is encoded in windows."""

WINDOWS = Windows(chars=1 << 19, most_chars=8 << 20)
"""Needs 20-60 bytes for each byte of a word (`benchmarks/tokenize`)."""

_MIN_BYTES = 16 << 20
"""Text that an encoder has had at least before it is replaced, whatever else the process does."""


class FastEncoder:
    """Encodes texts so that no text produces a reserved token. Threads may share one.

    Args:
        source: How the library gets the tokenizer.
        reserved: Ids of the tokens that are the caller's alone.
        reference: Encodes the texts in which the model finds a reserved token.
        threads: Threads that encode one batch.
        cache_bytes: Growth of the process after which the library's cache is dropped.

    Raises:
        MissingPackageError: gigatoken isn't installed.
        TokenizerFormatError: it can't use this tokenizer.
    """

    name = "gigatoken"

    def __init__(
        self,
        source: FastSource,
        *,
        reserved: Iterable[int],
        reference: Encoder,
        threads: int = 1,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._library = _import_library()
        self._source = source
        self._reserved = _runs(reserved)
        self._reference = reference
        self._threads = threads
        self._cache_bytes = cache_bytes
        self._lock = Lock()
        self._renew()
        numbers = source.numbers
        num_ids = self._tokenizer.vocab_size if numbers is None else int(numbers.max()) + 1
        self._ordinary = _widest_gap(self._reserved, num_ids=num_ids)

    def encode(self, texts: pa.LargeStringArray) -> tuple[Ids, Counts]:
        """Returns the ids of all texts, one after the other, and how many each has."""
        ids, counts = encode_in_groups(
            texts, self._encode_group, limit=BATCH_BYTES, threads=self._threads
        )
        rows = np.union1d(rows_with(self._find_reserved(ids), counts), disputed_rows(texts))
        if not len(rows):
            return ids, counts
        closed, closed_counts = self._reference.encode(texts.take(pa.array(rows)))
        return replace_documents(ids, counts, rows, np.split(closed, np.cumsum(closed_counts)[:-1]))

    def _find_reserved(self, ids: Ids) -> npt.NDArray[np.int64]:
        """Returns the places of reserved ids; a few ranges are quicker than a table by id."""
        low, high = self._ordinary
        if not len(ids) or (ids.max() <= high and (not low or ids.min() >= low)):
            return np.empty(0, dtype=np.int64)
        found = [np.flatnonzero(ids - first <= last - first) for first, last in self._reserved]
        return np.concatenate(found)

    def _encode_group(self, texts: pa.LargeStringArray) -> tuple[Ids, Counts]:
        if len(texts) > 1 and pc.max(pc.binary_length(texts)).as_py() > LONG_BYTES:
            return encode_in_groups(texts, self._encode_group, limit=LONG_BYTES, threads=1)
        if len(texts) == 1 and texts.nbytes > LONG_BYTES:
            ids = encode_long(texts[0].as_py(), self._encode_part, windows=WINDOWS, name=self.name)
            return ids, np.array([len(ids)], dtype=np.int64)
        return self._encode_some(texts)

    def _encode_part(self, text: str) -> Ids:
        return self._encode_some(pa.array([text], pa.large_string()))[0]

    def _encode_some(self, texts: pa.LargeStringArray) -> tuple[Ids, Counts]:
        column = _as_awkward(texts)
        with self._lock:
            tokenizer = self._tokenizer
        layout = tokenizer.encode_batch(column, parallel=False).layout
        ids = np.asarray(layout.content.data)
        if self._source.numbers is not None:
            ids = self._source.numbers[ids]
        counts = np.diff(np.asarray(layout.offsets.data))
        del tokenizer
        with self._lock:
            self._encoded += len(column.layout.content)
            grown = resident_bytes() - self._before
            if grown > self._cache_bytes and self._encoded > _MIN_BYTES:
                self._renew()
        return ids, counts

    def _renew(self) -> None:
        """Makes the encoder, or another one in place of it; never holds both."""
        self._tokenizer: Any = None
        release_free_memory()
        self._tokenizer = self._load()
        self._before = resident_bytes()
        self._encoded = 0

    def _load(self) -> Any:
        try:
            return self._source.load(self._library)
        except BaseException as error:
            leave_interruptions(error)
            reason = str(error).strip().split("\n", 1)[0]
            raise TokenizerFormatError(
                f"gigatoken {version('gigatoken')} can't use it: {reason}"
            ) from error


def _runs(numbers: Iterable[int]) -> list[tuple[np.uint32, np.uint32]]:
    """Returns first and last of the runs that the numbers form."""
    ordered = np.unique(np.array([*numbers], dtype=np.uint32))
    runs = np.split(ordered, np.flatnonzero(np.diff(ordered) != 1) + 1)
    return [(run[0], run[-1]) for run in runs]


def _widest_gap(runs: Sequence[tuple[np.uint32, np.uint32]], *, num_ids: int) -> tuple[int, int]:
    """Returns first and last of the most ids in a row, below `num_ids`, that no run has."""
    starts = [0, *(int(last) + 1 for _, last in runs)]
    stops = [*(int(first) for first, _ in runs), num_ids]
    width, start = max((stop - start, start) for start, stop in zip(starts, stops, strict=True))
    return start, start + width - 1


def _import_library() -> Any:
    try:
        import gigatoken
    except ImportError as error:
        raise MissingPackageError(
            "gigatoken isn't installed (pip install 'datapipe-train[build]')"
        ) from error
    return gigatoken


def _as_awkward(texts: pa.LargeStringArray) -> Any:
    """Returns the column as the library takes it, without a copy."""
    import awkward as ak

    _, offsets, characters = texts.buffers()
    starts = np.frombuffer(offsets, np.int64, count=len(texts) + 1, offset=8 * texts.offset)
    data = np.frombuffer(characters, np.uint8) if characters else np.empty(0, np.uint8)
    inside = data[starts[0] : starts[-1]]
    bytes_ = ak.contents.NumpyArray(inside, parameters={"__array__": "char"})
    index = ak.index.Index64(starts - starts[0])
    return ak.Array(ak.contents.ListOffsetArray(index, bytes_, parameters={"__array__": "string"}))
