"""The tables of a version: digests of their files, rows against the manifest's numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from datapipe.dataset.conservation import count_rows, differences
from datapipe.dataset.digests import content_digest, logical_digest, order_digest
from datapipe.dataset.hashing import canonical_json, sha256_hex
from datapipe.dataset.layout import TABLE_KINDS, manifest_path, tokenizer_path
from datapipe.dataset.manifest import ConservationRow, Manifest, SourceSummary, TableFile
from datapipe.dataset.plan import sum_totals
from datapipe.dataset.reader import Dataset
from datapipe.dataset.rows import row_hashes, rows_sha256
from datapipe.dataset.table_files import decode_file
from datapipe.dataset.tables import HASH_BYTES
from datapipe.dataset.verify.report import Findings

__all__ = ["ID_FIELDS", "check_manifest", "check_tables", "check_tokenizer", "wrong_ids"]

ID_FIELDS = ["source", "source_file", "source_offset", "source_length", "content_hash"]
"""What a doc_id is the hash of."""


def check_manifest(findings: Findings, dataset: Dataset) -> None:
    """Checks the manifest's numbers and digests against each other and the shard tables."""
    path = manifest_path(dataset.manifest_sha256)
    manifest = dataset.manifest
    recipe = sha256_hex(canonical_json(manifest.recipe))
    findings.expect(path, "recipe_sha256", expected=recipe, found=manifest.recipe_sha256)
    totals = sum_totals(manifest.sources, manifest.conservation)
    findings.expect(path, "totals", expected=totals, found=manifest.totals)
    dtype = dataset.token_dtype.name
    findings.expect(path, "token_dtype", expected=dtype, found=manifest.token_dtype)
    names = [source.name for source in manifest.sources]
    counted = [row.source for row in manifest.conservation]
    findings.expect(path, "conservation's sources", expected=names, found=counted)
    for source, row in zip(manifest.sources, manifest.conservation, strict=False):
        _check_kept(findings, path, source, row)
    with findings.attempt(path):
        _check_digests(findings, path, dataset)


def check_tables(findings: Findings, dataset: Dataset) -> None:
    """Checks every file of every table, and what they hold against the conservation table."""
    manifest = dataset.manifest
    counts = {name: _count_files(findings, manifest, name) for name in ("dropped", "quarantine")}
    for name in TABLE_KINDS:
        if name not in counts:
            for _ in _files(findings, manifest, name):
                pass
    for name, attribute in (("dropped", "dropped"), ("quarantine", "quarantined")):
        stated = {
            f"{row.source}: {reason}": count
            for row in manifest.conservation
            for reason, count in getattr(row, attribute).items()
        }
        for problem in differences(f"rows in table {name}", stated, counts[name]):
            findings.add(manifest_path(dataset.manifest_sha256), problem)


def check_tokenizer(findings: Findings, dataset: Dataset) -> None:
    """Checks the tokenizer's files."""
    info = dataset.manifest.tokenizer
    findings.expect(
        manifest_path(dataset.manifest_sha256),
        "the digest of the tokenizer's files",
        expected=sha256_hex(canonical_json(info.files)),
        found=info.sha256,
    )
    for name, sha256 in info.files.items():
        path = tokenizer_path(info.sha256, name)
        with findings.attempt(path):
            findings.read(path, sha256)


def wrong_ids(table: pa.Table) -> int:
    """Returns how many rows have a doc_id that isn't the hash of their origin and content."""
    stated = table.column("doc_id").cast(pa.large_binary()).combine_chunks()
    data = stated.buffers()[2][: len(stated) * HASH_BYTES] if len(stated) else b""
    found = row_hashes(table.select(ID_FIELDS))
    return int((found != np.frombuffer(data, dtype=found.dtype)).sum())


def _check_kept(findings: Findings, path: str, source: SourceSummary, row: ConservationRow) -> None:
    for what, expected, found in (
        ("documents", row.kept, source.num_documents),
        ("text bytes", row.text_bytes, source.text_bytes),
    ):
        findings.expect(path, f"{what} of {source.name}", expected=expected, found=found)


def _check_digests(findings: Findings, path: str, dataset: Dataset) -> None:
    manifest = dataset.manifest
    tables = {source.name: dataset.shards(source.name) for source in manifest.sources}
    details = {source.name: dataset.details(source.name) for source in manifest.sources}
    for source in manifest.sources:
        table, detail = tables[source.name], details[source.name]
        found = SourceSummary(
            name=source.name,
            order_digest=order_digest(table.num_tokens, detail.birth_sha256.raw),
            num_shards=len(table),
            num_documents=int(table.num_documents.sum()),
            num_tokens=int(table.num_tokens.sum()),
            text_bytes=int(detail.text_bytes.sum()),
        )
        findings.expect(path, f"source {source.name}", expected=found, found=source)
    content = content_digest((name, table.raw_sha256.raw) for name, table in tables.items())
    findings.expect(path, "content digest", expected=content, found=manifest.digests.content)
    logical = logical_digest(
        content=content,
        docmaps=((name, d.docmap_logical_sha256.raw) for name, d in details.items()),
        dropped=[file.logical_sha256 or "" for file in manifest.files("dropped")],
        quarantine=[file.logical_sha256 or "" for file in manifest.files("quarantine")],
        conservation=manifest.conservation,
    )
    findings.expect(path, "logical digest", expected=logical, found=manifest.digests.logical)


def _count_files(findings: Findings, manifest: Manifest, name: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for path, table in _files(findings, manifest, name):
        counts.update(count_rows(table, name))
        if name == "dropped" and (wrong := wrong_ids(table)):
            findings.add(path, f"{wrong} rows have a doc_id that isn't the hash of their origin")
    return counts


def _files(findings: Findings, manifest: Manifest, name: str) -> Iterator[tuple[str, pa.Table]]:
    """Yields the files of a table that are what they should be."""
    for file in manifest.files(name):
        path = TABLE_KINDS[name].path(file.sha256)
        with findings.attempt(path):
            table = _check_file(findings, name, path, file)
            if table is not None:
                yield path, table


def _check_file(findings: Findings, name: str, path: str, file: TableFile) -> pa.Table | None:
    data = findings.read(path, file.sha256)
    if data is None:
        return None
    table = decode_file(name, data, path=path)
    findings.expect(path, "its size in bytes", expected=file.bytes, found=len(data))
    findings.expect(path, "its number of rows", expected=file.rows, found=table.num_rows)
    if TABLE_KINDS[name].logical:
        found = rows_sha256(table)
        findings.expect(path, "the digest of its rows", expected=file.logical_sha256, found=found)
    return table
