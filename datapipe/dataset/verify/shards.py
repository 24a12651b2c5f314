"""One shard: its bytes, blocks and ids, and the docmap that covers it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.dataset import layout
from datapipe.dataset.parquet import decode_table
from datapipe.dataset.reader import Dataset
from datapipe.dataset.rows import rows_sha256
from datapipe.dataset.tables import DOCMAP
from datapipe.dataset.verify.report import Findings
from datapipe.dataset.verify.tables import wrong_ids
from tiering.checksums import BLOCK_BYTES, block_checksum
from tiering.errors import ObjectNotFoundError, StoreError
from tiering.store import View

__all__ = ["check_shard"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Content:
    """What a shard's bytes turned out to be."""

    sha256: str
    checksums: list[int]
    max_id: int
    eos_at: npt.NDArray[np.int64]
    """Positions of the end-of-document token."""


def check_shard(dataset: Dataset, source: str, number: int, docmap_logical: str) -> Findings:
    """Checks a shard and its docmap; reads the tokens once, in blocks. Safe from threads.

    Args:
        dataset: the version.
        source: the shard's source.
        number: its number.
        docmap_logical: the row digest that its docmap must have.
    """
    findings = Findings(store=dataset.repository.store)
    content = _check_tokens(findings, dataset, source, number)
    docmap = _check_docmap(findings, dataset, source, number, docmap_logical)
    if content is not None and docmap is not None and _appends_eos(dataset):
        _check_eos(findings, dataset, source, number, content, docmap)
    return findings


def _check_tokens(
    findings: Findings, dataset: Dataset, source: str, number: int
) -> _Content | None:
    table = dataset.shards(source)
    path = layout.tokens_path(table.stored_sha256[number])
    raw, size = table.raw_sha256[number], int(table.stored_bytes[number])
    try:
        with findings.store.open(path) as view:
            findings.objects += 1
            findings.num_bytes += view.size
            if view.size != size:
                findings.add(path, f"it has {view.size} bytes, {size} expected")
                return None
            content = _read_content(view, dataset)
    except ObjectNotFoundError:
        findings.add(path, f"it is missing (shard {number} of {source})")
        return None
    except StoreError as error:
        findings.add(path, f"it can't be read: {error}")
        return None
    _check_blocks(findings, dataset, source, number, content)
    if content.sha256 != raw:
        return None
    itemsize = dataset.token_dtype.itemsize
    findings.expect(path, "its size", expected=int(table.num_tokens[number]) * itemsize, found=size)
    largest = dataset.manifest.tokenizer.max_id
    if content.max_id > largest:
        findings.add(path, f"it holds id {content.max_id}, the tokenizer's largest is {largest}")
    return content


def _read_content(view: View, dataset: Dataset) -> _Content:
    digest = hashlib.sha256()
    checksums, ends, max_id, first = [], [], 0, 0
    itemsize = dataset.token_dtype.itemsize
    for block in _blocks(view):
        digest.update(block)
        checksums.append(block_checksum(block))
        whole = block[: len(block) // itemsize * itemsize]
        tokens: npt.NDArray[Any] = np.frombuffer(whole, dtype=dataset.token_dtype)
        max_id = max(max_id, int(tokens.max(initial=0)))
        ends.append(np.flatnonzero(tokens == dataset.eos_id) + first)
        first += len(tokens)
    eos_at = np.concatenate(ends) if ends else np.zeros(0, dtype=np.int64)
    return _Content(sha256=digest.hexdigest(), checksums=checksums, max_id=max_id, eos_at=eos_at)


def _blocks(view: View) -> Iterator[memoryview]:
    """Yields the blocks of a view in one buffer; each is valid until the next."""
    buffer = memoryview(bytearray(min(BLOCK_BYTES, view.size)))
    for offset in range(0, view.size, BLOCK_BYTES):
        count = view.read_into(buffer, offset)
        yield buffer[:count]


def _check_blocks(
    findings: Findings, dataset: Dataset, source: str, number: int, content: _Content
) -> None:
    table = dataset.shards(source)
    path = layout.tokens_path(table.stored_sha256[number])
    expected = dataset.block_checksums(source, number).tolist()
    wrong = [i for i, (a, b) in enumerate(zip(expected, content.checksums, strict=False)) if a != b]
    if content.sha256 != table.raw_sha256[number]:
        where = f"blocks of 1 MiB that differ: {_shown(wrong)}" if wrong else "no block differs"
        findings.add(
            path,
            f"SHA-256 {table.raw_sha256[number]} expected, {content.sha256} read; {where} "
            f"(shard {number} of {source})",
        )
    elif wrong or len(expected) != len(content.checksums):
        findings.add(path, f"the details table has other checksums for blocks {_shown(wrong)}")


def _check_docmap(
    findings: Findings, dataset: Dataset, source: str, number: int, docmap_logical: str
) -> pa.Table | None:
    table = dataset.shards(source)
    sha256 = table.docmap_sha256[number]
    path = layout.docmap_path(sha256)
    data = findings.read_checked(path, sha256)
    if data is None:
        return None
    with findings.attempt(path):
        docmap = decode_table(data, DOCMAP, path=path)
        rows = int(table.num_documents[number])
        findings.expect(path, "its number of rows", expected=rows, found=docmap.num_rows)
        digest = rows_sha256(docmap)
        findings.expect(path, "the digest of its rows", expected=docmap_logical, found=digest)
        _check_cover(findings, path, docmap, int(table.num_tokens[number]))
        findings.expect(
            path,
            "the sum of its text_bytes",
            expected=int(dataset.details(source).text_bytes[number]),
            found=int(docmap["text_bytes"].to_numpy().sum()),
        )
        if wrong := wrong_ids(_with_source(docmap, source)):
            findings.add(path, f"{wrong} rows have a doc_id that isn't the hash of their origin")
        return docmap
    return None


def _check_cover(findings: Findings, path: str, docmap: pa.Table, num_tokens: int) -> None:
    starts = docmap.column("token_start").to_numpy()
    counts = docmap.column("num_tokens").to_numpy()
    ends = np.cumsum(counts)
    wrong = np.flatnonzero((counts < 0) | (starts != ends - counts))
    if len(wrong):
        row = int(wrong[0])
        findings.add(path, f"row {row} starts at token {starts[row]}: a gap or an overlap")
    covered = int(ends[-1]) if len(ends) else 0
    findings.expect(path, "the tokens it covers", expected=num_tokens, found=covered)


def _check_eos(
    findings: Findings,
    dataset: Dataset,
    source: str,
    number: int,
    content: _Content,
    docmap: pa.Table,
) -> None:
    counts = docmap.column("num_tokens").to_numpy()
    last = docmap.column("token_start").to_numpy() + counts - 1
    if not np.array_equal(content.eos_at, last):
        path = layout.tokens_path(dataset.shards(source).stored_sha256[number])
        findings.add(
            path,
            f"end-of-document token {dataset.eos_id} stands {len(content.eos_at)} times, it must "
            f"close each of {len(last)} documents exactly once",
        )


def _appends_eos(dataset: Dataset) -> bool:
    tokenize = dataset.manifest.recipe.get("tokenize")
    return isinstance(tokenize, dict) and tokenize.get("append_eos") is True


def _with_source(docmap: pa.Table, source: str) -> pa.Table:
    column = pa.DictionaryArray.from_arrays(np.zeros(docmap.num_rows, np.int32), pa.array([source]))
    return docmap.append_column("source", column)


def _shown(blocks: list[int]) -> str:
    text = ", ".join(map(str, blocks[:8]))
    return f"{text}, ... ({len(blocks)})" if len(blocks) > 8 else text
