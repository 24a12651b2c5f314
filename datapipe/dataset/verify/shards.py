"""One shard: the docmap that covers it, and its bytes, blocks and ids.

The tokens are read once, 1 MiB at a time: SHA-256, block checksum, largest id and ends of documents
are taken while a block is in the processor's cache (benchmarks/repository has the rate).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.dataset import layout
from datapipe.dataset.parquet import decode_table
from datapipe.dataset.reader import Dataset, DetailsTable
from datapipe.dataset.rows import rows_sha256
from datapipe.dataset.tables import DOCMAP
from datapipe.dataset.verify.report import Findings
from datapipe.dataset.verify.tables import ID_FIELDS, wrong_ids
from tiering.checksums import BLOCK_BYTES, block_checksum
from tiering.errors import ObjectNotFoundError, StoreError
from tiering.store import View

__all__ = ["BlockIds", "Shard", "check_shard", "look_at_block", "shard_at"]

_IDS_LOOKED_AT = 512
"""Rows of a docmap whose doc_id is computed anew; its own digests cover all of them.

Computing them all would take as long as SHA-256 of the tokens does.
"""

_Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """One shard as the version's tables describe it; digests in hex."""

    dataset: Dataset
    source: str
    number: int
    num_tokens: int
    num_documents: int
    text_bytes: int
    raw_sha256: str
    stored_sha256: str
    stored_bytes: int
    docmap_sha256: str
    docmap_logical_sha256: str

    @property
    def tokens_path(self) -> str:
        """Where its tokens are."""
        return layout.tokens_path(self.stored_sha256)

    @property
    def docmap_path(self) -> str:
        """Where its docmap is."""
        return layout.docmap_path(self.docmap_sha256)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Content:
    """What a shard's bytes turned out to be."""

    sha256: str
    checksums: list[int]
    max_id: int
    num_ends: int
    """How often the end-of-document token stands there."""
    num_closed: int
    """How many documents have it as their last token."""


def shard_at(dataset: Dataset, details: DetailsTable, source: str, number: int) -> Shard:
    """Returns a shard's description; `details` are those of its source."""
    table = dataset.shards(source)
    return Shard(
        dataset=dataset,
        source=source,
        number=number,
        num_tokens=int(table.num_tokens[number]),
        num_documents=int(table.num_documents[number]),
        text_bytes=int(details.text_bytes[number]),
        raw_sha256=table.raw_sha256[number],
        stored_sha256=table.stored_sha256[number],
        stored_bytes=int(table.stored_bytes[number]),
        docmap_sha256=table.docmap_sha256[number],
        docmap_logical_sha256=details.docmap_logical_sha256[number],
    )


def check_shard(findings: Findings, shard: Shard) -> Findings:
    """Checks a shard and its docmap. Safe from threads, each with findings of its own."""
    ends = _check_docmap(findings, shard)
    if not _appends_eos(shard.dataset):
        ends = None
    content = _read_tokens(findings, shard, ends)
    if content is not None:
        _check_content(findings, shard, content, ends)
    return findings


# -- docmap


def _check_docmap(findings: Findings, shard: Shard) -> _Positions | None:
    """Returns the position of each document's last token, None where the docmap is damaged."""
    path = shard.docmap_path
    data = findings.read(path, shard.docmap_sha256)
    if data is None:
        return None
    with findings.attempt(path):
        docmap = decode_table(data, DOCMAP, path=path)
        expected: dict[str, tuple[object, object]] = {
            "its number of rows": (shard.num_documents, docmap.num_rows),
            "the digest of its rows": (shard.docmap_logical_sha256, rows_sha256(docmap)),
            "the sum of its text_bytes": (shard.text_bytes, _sum(docmap, "text_bytes")),
        }
        for what, (stated, found) in expected.items():
            findings.expect(path, what, expected=stated, found=found)
        if wrong := wrong_ids(_some_rows(docmap, source=shard.source)):
            findings.add(path, f"{wrong} rows have a doc_id that isn't the hash of their origin")
        return _check_cover(findings, path, docmap, num_tokens=shard.num_tokens)
    return None


def _check_cover(
    findings: Findings, path: str, docmap: pa.Table, *, num_tokens: int
) -> _Positions | None:
    starts = docmap.column("token_start").to_numpy()
    counts = docmap.column("num_tokens").to_numpy()
    ends: _Positions = np.cumsum(counts)
    wrong = np.flatnonzero((counts < 0) | (starts != ends - counts))
    if len(wrong):
        row = int(wrong[0])
        findings.add(path, f"row {row} starts at token {starts[row]}: a gap or an overlap")
    covered = int(ends[-1]) if len(ends) else 0
    findings.expect(path, "the tokens it covers", expected=num_tokens, found=covered)
    return ends - 1 if covered == num_tokens and not len(wrong) else None


def _some_rows(docmap: pa.Table, *, source: str) -> pa.Table:
    """Returns up to _IDS_LOOKED_AT rows from all over a docmap, with their source."""
    docmap = docmap.select([name for name in ("doc_id", *ID_FIELDS) if name != "source"])
    if docmap.num_rows > _IDS_LOOKED_AT:
        docmap = docmap.take(np.linspace(0, docmap.num_rows - 1, _IDS_LOOKED_AT, dtype=np.int64))
    column = pa.DictionaryArray.from_arrays(np.zeros(docmap.num_rows, np.int32), pa.array([source]))
    return docmap.append_column("source", column)


def _sum(table: pa.Table, column: str) -> int:
    return int(table.column(column).to_numpy().sum())


# -- tokens


def _read_tokens(findings: Findings, shard: Shard, ends: _Positions | None) -> _Content | None:
    """Returns what the tokens are, restored before if need be; None, with a problem: damaged."""
    content, problem = _read_once(findings, shard, ends)
    if problem and findings.restore(shard.tokens_path, shard.stored_sha256, problem=problem):
        content, problem = _read_once(findings, shard, ends)
        if problem:
            findings.add(
                shard.tokens_path, f"{problem}, although it was just fetched from the copy"
            )
    if content is not None:
        findings.objects += 1
        findings.num_bytes += shard.stored_bytes
    return None if problem else content


def _read_once(
    findings: Findings, shard: Shard, ends: _Positions | None
) -> tuple[_Content | None, str]:
    """Returns what the tokens are, and what is wrong with their bytes, "" for nothing."""
    where = f"(shard {shard.number} of {shard.source})"
    try:
        with findings.store.open(shard.tokens_path) as view:
            if view.size != shard.stored_bytes:
                return None, f"it has {view.size} bytes, {shard.stored_bytes} expected {where}"
            content = _read_content(view, shard.dataset, ends)
    except ObjectNotFoundError:
        return None, f"it is missing {where}"
    except StoreError as error:
        return None, f"it can't be read: {error} {where}"
    if content.sha256 == shard.raw_sha256:
        return content, ""
    return content, (
        f"SHA-256 {shard.raw_sha256} expected, {content.sha256} read; "
        f"{_blocks_that_differ(findings, shard, content)} {where}"
    )


def _read_content(view: View, dataset: Dataset, ends: _Positions | None) -> _Content:
    digest, checksums = hashlib.sha256(), []
    dtype, eos_id = dataset.token_dtype, dataset.eos_id
    max_id = num_ends = num_closed = first = 0
    for block in _blocks(view):
        digest.update(block)
        checksums.append(block_checksum(block))
        whole = block[: len(block) // dtype.itemsize * dtype.itemsize]
        tokens: npt.NDArray[Any] = np.frombuffer(whole, dtype=dtype)
        if ends is None:
            max_id = max(max_id, int(tokens.max(initial=0)))
        else:
            here = ends[slice(*np.searchsorted(ends, [first, first + len(tokens)]))] - first
            found = look_at_block(tokens, here, eos_id=eos_id)
            max_id = max(max_id, found.max_id)
            num_ends += found.num_ends
            num_closed += found.num_closed
        first += len(tokens)
    return _Content(
        sha256=digest.hexdigest(),
        checksums=checksums,
        max_id=max_id,
        num_ends=num_ends,
        num_closed=num_closed,
    )


class BlockIds(NamedTuple):
    """What the ids of a block turned out to be; as in `_Content`."""

    max_id: int
    num_ends: int
    num_closed: int


def look_at_block(tokens: npt.NDArray[Any], ends: _Positions, *, eos_id: int) -> BlockIds:
    """Returns the largest id, and how often the end-of-document token stands in a block, and where.

    Counting it takes several times as long as the smallest and the largest id do, and isn't needed
    where it is below or above all others, as it is with most tokenizers.

    Args:
        tokens: the block; changed and put back.
        ends: positions of the documents' last tokens in it, ascending.
        eos_id: the end-of-document token.
    """
    if not len(tokens):
        return BlockIds(0, 0, 0)
    last = tokens[ends]
    tokens[ends] = tokens[0]
    least, largest = int(tokens.min()), int(tokens.max())
    tokens[ends] = last
    num_closed = int(np.count_nonzero(last == eos_id))
    is_elsewhere = least <= eos_id <= largest or bool((ends[1:] == ends[:-1]).any())
    num_ends = int(np.count_nonzero(tokens == eos_id)) if is_elsewhere else num_closed
    return BlockIds(max(largest, int(last.max(initial=0))), num_ends, num_closed)


def _blocks(view: View) -> Iterator[memoryview]:
    """Yields the blocks of a view in one buffer; each is valid until the next."""
    buffer = memoryview(bytearray(min(BLOCK_BYTES, view.size)))
    for offset in range(0, view.size, BLOCK_BYTES):
        count = view.read_into(buffer, offset)
        yield buffer[:count]


def _check_content(
    findings: Findings, shard: Shard, content: _Content, ends: _Positions | None
) -> None:
    path, dataset = shard.tokens_path, shard.dataset
    size = shard.num_tokens * dataset.token_dtype.itemsize
    findings.expect(path, "its size", expected=size, found=shard.stored_bytes)
    with findings.attempt(path):
        expected = dataset.block_checksums(shard.source, shard.number).tolist()
        if wrong := _differing(expected, content.checksums):
            findings.add(path, f"the details table has other checksums for blocks {_shown(wrong)}")
    largest = dataset.manifest.tokenizer.max_id
    if content.max_id > largest:
        findings.add(path, f"it holds id {content.max_id}, the tokenizer's largest is {largest}")
    if ends is not None and not content.num_ends == content.num_closed == len(ends):
        findings.add(
            path,
            f"end-of-document token {dataset.eos_id} stands {content.num_ends} times, it must "
            f"close each of {len(ends)} documents exactly once",
        )


def _blocks_that_differ(findings: Findings, shard: Shard, content: _Content) -> str:
    with findings.attempt(shard.tokens_path):
        expected = shard.dataset.block_checksums(shard.source, shard.number).tolist()
        wrong = _differing(expected, content.checksums)
        return f"blocks of 1 MiB that differ: {_shown(wrong)}" if wrong else "no block differs"
    return "which blocks differ can't be told"


def _differing(expected: list[int], found: list[int]) -> list[int]:
    return [i for i, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b]


def _appends_eos(dataset: Dataset) -> bool:
    tokenize = dataset.manifest.recipe.get("tokenize")
    return isinstance(tokenize, dict) and tokenize.get("append_eos") is True


def _shown(blocks: list[int]) -> str:
    text = ", ".join(map(str, blocks[:8]))
    return f"{text}, ... ({len(blocks)})" if len(blocks) > 8 else text
