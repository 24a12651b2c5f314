"""Token shards: writing one, and the record of it that a commit needs.

A shard is nothing but little-endian token ids; all description is outside it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.dataset import layout
from datapipe.dataset.hashing import sha256_hex
from datapipe.dataset.objects import put_object
from datapipe.dataset.parquet import GROUP_ROWS, conform, encode_table
from datapipe.dataset.rows import rows_sha256
from datapipe.dataset.tables import DOCMAP
from tiering.checksums import BLOCK_BYTES, block_checksum
from tiering.store import BlockingStore

__all__ = ["ShardRecord", "Tokens", "token_dtype", "write_shard"]

Tokens = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
"""Token ids, 1-D."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardRecord:
    """What is known of a shard once its objects are written; digests in hex."""

    source: str
    number: int
    num_tokens: int
    num_documents: int
    raw_sha256: str
    stored_sha256: str
    stored_bytes: int
    docmap_sha256: str
    docmap_logical_sha256: str
    text_bytes: int
    """UTF-8 bytes of the documents' cleaned texts."""
    block_checksums: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values; checksums as hex, because JSON integers end at 2**53."""
        record = dataclasses.asdict(self)
        record["block_checksums"] = [f"{checksum:016x}" for checksum in self.block_checksums]
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> ShardRecord:
        """Returns what `to_json` gave. Raises: TypeError: other keys."""
        checksums = tuple(int(text, 16) for text in record["block_checksums"])
        return cls(**{**record, "block_checksums": checksums})


def token_dtype(max_id: int) -> np.dtype[Any]:
    """Returns the dtype of a dataset whose tokenizer's largest id is `max_id`."""
    return np.dtype("<u2" if max_id < 1 << 16 else "<u4")


def write_shard(
    store: BlockingStore,
    tokens: Tokens,
    *,
    source: str,
    number: int,
    docmap: pa.Table,
    text_bytes: int,
    since_seconds: float | None = None,
) -> ShardRecord:
    """Writes a shard and its docmap; the same ones again are written once.

    Safe from many threads and processes. The tokens are read once and not copied.

    Args:
        store: where.
        tokens: uint16 or uint32 [num_tokens], contiguous.
        source: the mixture component it belongs to.
        number: its number in the source, from 0.
        docmap: columns of DOCMAP, one row a document in token order.
        text_bytes: UTF-8 bytes of the documents' cleaned texts.
        since_seconds: as in `put_object`.

    Raises:
        ValueError: the docmap doesn't cover the tokens without gap or overlap, or has other sums.
        SpaceError: the disk is full.
    """
    data = _stored_bytes(tokens)
    _check_cover(docmap, len(tokens), text_bytes, shard=f"shard {number} of {source}")
    plain = conform(docmap, DOCMAP)
    raw_sha256, checksums = _raw_digests(data)
    encoded = encode_table(plain, group_rows=GROUP_ROWS["docmap"])
    docmap_sha256 = sha256_hex(encoded)
    put_object(store, layout.tokens_path(raw_sha256), data, since_seconds=since_seconds)
    put_object(store, layout.docmap_path(docmap_sha256), encoded, since_seconds=since_seconds)
    return ShardRecord(
        source=source,
        number=number,
        num_tokens=len(tokens),
        num_documents=docmap.num_rows,
        raw_sha256=raw_sha256,
        stored_sha256=raw_sha256,
        stored_bytes=len(data),
        docmap_sha256=docmap_sha256,
        docmap_logical_sha256=rows_sha256(plain),
        text_bytes=text_bytes,
        block_checksums=checksums,
    )


def _stored_bytes(tokens: Tokens) -> memoryview:
    if tokens.ndim != 1 or tokens.dtype.kind != "u" or tokens.dtype.itemsize not in (2, 4):
        raise ValueError(
            f"tokens are {tokens.dtype} {list(tokens.shape)}; nothing was written; give a 1-D "
            "array of uint16 or uint32"
        )
    if not len(tokens):
        raise ValueError("a shard needs at least one token; nothing was written")
    little = tokens.astype(tokens.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).data.cast("B")


def _raw_digests(data: memoryview) -> tuple[str, tuple[int, ...]]:
    """Returns SHA-256 and block checksums, both taken while a block is in the processor's cache."""
    digest = hashlib.sha256()
    checksums = []
    for start in range(0, len(data), BLOCK_BYTES):
        block = data[start : start + BLOCK_BYTES]
        digest.update(block)
        checksums.append(block_checksum(block))
    return digest.hexdigest(), tuple(checksums)


def _check_cover(docmap: pa.Table, num_tokens: int, text_bytes: int, *, shard: str) -> None:
    starts = docmap.column("token_start").to_numpy()
    counts = docmap.column("num_tokens").to_numpy()
    ends = np.cumsum(counts)
    covered = int(ends[-1]) if len(ends) else 0
    if covered != num_tokens or (counts < 0).any() or (starts != ends - counts).any():
        raise ValueError(
            f"the docmap of {shard} covers {covered} tokens in {len(ends)} documents, the shard "
            f"has {num_tokens}; nothing was written; documents must follow each other without "
            "gap or overlap"
        )
    counted = int(docmap.column("text_bytes").to_numpy().sum())
    if counted != text_bytes:
        raise ValueError(
            f"the documents of {shard} have {counted} text bytes, {text_bytes} were given; nothing "
            "was written; give their sum"
        )
