"""The second pass over a unit: what deduplication left becomes token ids, in shuffled order.

The documents are sorted as shards hold them, so each shard later reads one stretch of each unit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dataset.tables import DROPPED
from datapipe.documents import DOCUMENTS, domains, dropped_rows, url_hashes
from datapipe.encode import check_sample, count_special_text, encode_documents
from datapipe.engine.layout import document_order, shuffle_keys
from datapipe.engine.measured import join_measured
from datapipe.engine.scan import (
    DOCUMENTS_NAME,
    LEFT,
    MEASURED,
    apply_stages,
    concat,
    count_rules,
    plain,
)
from datapipe.engine.stages import StageCall
from datapipe.engine.work import Piece, Work
from datapipe_tokenizers import Facts, LimitError, Tokenizer, load_files

__all__ = [
    "ENCODED",
    "ORDER",
    "TOKENS",
    "EncodeTask",
    "TokenizerFiles",
    "encode_unit",
    "keep_tokenizer",
]

TOKENS = "tokens.bin"
ENCODED = "encoded.arrow"
ORDER = "order.arrow"
_ORDER_COLUMNS = [
    "oversize",
    "shuffle_key",
    "content_hash",
    "source_file",
    "source_offset",
    "source_length",
    "num_tokens",
]

_BATCH_ROWS = 4096


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """A tokenizer as a piece of the work folder, so that tasks stay small."""

    piece: Piece
    names: tuple[str, ...]
    eos: int
    backend: str
    """The library that encodes, in every process the same."""
    special_text: str
    """What the text of a special token is."""
    facts: Facts = field(compare=False)
    """What the build's own process found of it."""


@dataclass(frozen=True, slots=True)
class EncodeTask:
    """One scanned unit to encode, and all that its result depends on."""

    work: Work
    key: str
    scanned: Piece
    removed: bytes
    """One bit a document: 1 where deduplication removed it; empty: none."""
    stages: tuple[StageCall, ...]
    tokenizer: TokenizerFiles
    append_eos: bool
    check_one_in: int
    shard_tokens: int
    shuffle_seed: int

    @property
    def piece(self) -> Piece:
        """Where the result lies."""
        return Piece("encode", self.key)


def encode_unit(task: EncodeTask) -> dict[str, Any]:
    """Returns the unit's record, doing the work unless it is finished already."""
    record = task.work.record(task.piece)
    return record if record is not None else _encode(task)


def _encode(task: EncodeTask) -> dict[str, Any]:
    documents = _kept(task.work.get_table(task.scanned, DOCUMENTS_NAME), task.removed)
    stages = [stage.make() for stage in task.stages]
    tokenizer = _tokenizer(task.work, task.tokenizer)
    left: list[pa.Table] = []
    measured: list[pa.Table] = []
    batches: list[pa.RecordBatch] = []
    tokens: list[npt.NDArray[Any]] = [np.empty(0, dtype=tokenizer.token_dtype)]
    counts: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    special: Counter[str] = Counter()
    for whole in documents.to_batches(max_chunksize=_BATCH_ROWS):
        for batch in apply_stages(whole, stages, left, measured):
            special.update(count_special_text(batch, tokenizer))
            check_sample(batch, tokenizer, one_in=task.check_one_in)
            batch, ids, num_tokens = _tokens_of(batch, tokenizer, task.append_eos, left)
            tokens.append(ids)
            counts.append(num_tokens[num_tokens > 0])
            batches.append(_with_tokens(batch, num_tokens, left))
    kept = pa.Table.from_batches(batches, schema=plain(DOCUMENTS.empty_table()).schema)
    record = _store(task, kept, np.concatenate(tokens), np.concatenate(counts), left)
    if measured:
        task.work.put_table(task.piece, MEASURED, join_measured(measured))
    more = {"special_text": dict(sorted(special.items())), "measured": bool(measured)}
    return _finish(task, record | more)


def _tokens_of(
    batch: pa.RecordBatch, tokenizer: Tokenizer, append_eos: bool, left: list[pa.Table]
) -> tuple[pa.RecordBatch, npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Returns the documents that the tokenizer can encode, their tokens, and how many each has."""
    try:
        return batch, *encode_documents(batch, tokenizer, append_eos=append_eos)
    except LimitError:
        beyond = pa.array(tokenizer.beyond_limits(batch.column("text")))
    left.append(dropped_rows(batch.filter(beyond), stage="encode", rule="beyond_limits"))
    batch = batch.filter(pc.invert(beyond))
    return batch, *encode_documents(batch, tokenizer, append_eos=append_eos)


def _with_tokens(
    batch: pa.RecordBatch, num_tokens: npt.NDArray[np.int64], left: list[pa.Table]
) -> pa.RecordBatch:
    """Returns the documents that have a token: one without can't be part of a shard."""
    if num_tokens.all():
        return batch
    gone = batch.filter(pa.array(num_tokens == 0))
    left.append(dropped_rows(gone, stage="encode", rule="no_tokens"))
    return batch.filter(pa.array(num_tokens > 0))


def _kept(documents: pa.Table, removed: bytes) -> pa.Table:
    if not removed:
        return documents
    bits = np.unpackbits(np.frombuffer(removed, dtype=np.uint8), count=documents.num_rows)
    return documents.filter(pa.array(bits == 0))


_LOADED: dict[TokenizerFiles, Tokenizer] = {}  # the last one this process used


def keep_tokenizer(files: TokenizerFiles, tokenizer: Tokenizer) -> None:
    """Lets the tasks that run in this process use a tokenizer that is loaded already."""
    _LOADED.clear()
    _LOADED[files] = tokenizer


def _tokenizer(work: Work, files: TokenizerFiles) -> Tokenizer:
    if files not in _LOADED:
        contents = {name: work.get_bytes(files.piece, name) for name in files.names}
        tokenizer = load_files(
            contents,
            eos=files.eos,
            backend=files.backend,
            special_text=files.special_text,
            facts=files.facts,
        )
        keep_tokenizer(files, tokenizer)
    return _LOADED[files]


def _store(
    task: EncodeTask,
    kept: pa.Table,
    tokens: npt.NDArray[Any],
    num_tokens: npt.NDArray[np.int64],
    left: list[pa.Table],
) -> dict[str, Any]:
    encoded = _encoded_table(task, kept, num_tokens)
    order = document_order(encoded)
    starts = np.cumsum(num_tokens) - num_tokens
    tokens = gather_spans(tokens, starts[order], num_tokens[order])
    encoded = encoded.take(pa.array(order))
    gone = concat(left, DROPPED)
    task.work.put_bytes(task.piece, TOKENS, tokens.data.cast("B"))
    task.work.put_table(task.piece, ENCODED, encoded)
    task.work.put_table(task.piece, ORDER, encoded.select(_ORDER_COLUMNS))
    task.work.put_rows(task.piece, LEFT, plain(gone))
    return {
        "rows": encoded.num_rows,
        "tokens": int(num_tokens.sum()),
        "text_bytes": int(encoded["text_bytes"].to_numpy().sum()),
        "dropped": count_rules(gone),
    }


def _finish(task: EncodeTask, record: dict[str, Any]) -> dict[str, Any]:
    task.work.finish(task.piece, record)
    return record


def _encoded_table(task: EncodeTask, kept: pa.Table, num_tokens: npt.NDArray[np.int64]) -> pa.Table:
    hashes = kept["content_hash"].combine_chunks()
    columns = {
        "oversize": pa.array(num_tokens > task.shard_tokens),
        "shuffle_key": pa.array(shuffle_keys(hashes, seed=task.shuffle_seed)),
        "num_tokens": pa.array(num_tokens),
        "text_bytes": pc.binary_length(kept["text"]).cast(pa.int64()),
        "url_hash": url_hashes(kept["url"]),
        "domain": domains(kept["url"]),
    }
    table = kept.drop_columns(["text", "url", "source", "media_type"])
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def gather_spans(
    tokens: npt.NDArray[Any], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    """Returns the spans [start, start + length) of `tokens` one behind another."""
    spans = [
        tokens[start : start + length]
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    ]
    return np.concatenate([tokens[:0], *spans])
