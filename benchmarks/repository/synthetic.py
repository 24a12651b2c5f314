"""Versions with up to a million shards, made of tables alone: their tokens were never written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from datapipe.dataset import Repository, canonical_json, layout, sha256_hex
from datapipe.dataset.digests import content_digest, logical_digest, order_digest
from datapipe.dataset.log import LogEntry, publish_entry, seal_entry
from datapipe.dataset.manifest import (
    ConservationRow,
    Digests,
    Manifest,
    SourceSummary,
    TableFile,
    TokenizerInfo,
    encode_manifest,
)
from datapipe.dataset.objects import put_object
from datapipe.dataset.parquet import DEFAULT_GROUP_ROWS, GROUP_ROWS, conform, encode_table
from datapipe.dataset.plan import sum_totals, tokenizer_info
from datapipe.dataset.repository import read_format
from datapipe.dataset.tables import DOCMAP
from datapipe.testing import small_docmap, small_tokenizer
from tiering.store import open_store
from tiering.testing import S3Server

__all__ = ["Made", "made_versions", "write_version"]

SHARD_BYTES = 64 << 20
DOCUMENTS = 33_000  # of a shard: about 1,000 tokens each
RECIPE: dict[str, Any] = {"name": "synthetic", "tokenize": {"append_eos": True}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """A dataset of one synthetic version."""

    store: str
    url: str
    options: dict[str, Any]
    """Of the store."""
    num_shards: int
    repository: Repository


def made_versions(folder: str, server: S3Server, *, sizes: list[int], what: str) -> Iterator[Made]:
    """Yields a dataset a size and store, made when it is asked for and named after `what`."""
    for num_shards in sizes:
        for store in ("folder", "S3"):
            print(f"{what}: {num_shards:,} shards on {store}", flush=True)
            name = f"{what}-{num_shards}"
            url = f"{folder}/{name}" if store == "folder" else f"s3://bucket/{name}"
            options = {} if store == "folder" else server.options()
            repository = Repository.over(open_store(url, **options).blocking())
            repository.create()
            write_version(repository, num_shards)
            yield Made(
                store=store,
                url=url,
                options=options,
                num_shards=num_shards,
                repository=repository,
            )


def write_version(repository: Repository, num_shards: int, *, seed: int = 0) -> None:
    """Commits version 1 of an empty dataset: `num_shards` shards of one source."""
    rng = np.random.default_rng(seed)
    tokens = SHARD_BYTES // 2 - rng.integers(0, 5_000, num_shards, dtype=np.int64)
    raw, docmap, logical = (rng.bytes(32 * num_shards) for _ in range(3))
    docmap = _real_docmap(repository) + docmap[32:]  # an append looks into the first
    common = {
        "source": pa.array(["web"] * num_shards, pa.string()),
        "number": pa.array(np.arange(num_shards, dtype=np.int32)),
    }
    shards = {
        **common,
        "num_tokens": pa.array(tokens),
        "num_documents": pa.array(np.full(num_shards, DOCUMENTS, dtype=np.int64)),
        "raw_sha256": _digests(raw),
        "stored_sha256": _digests(raw),
        "stored_bytes": pa.array(2 * tokens),
        "docmap_sha256": _digests(docmap),
    }
    checksums = rng.integers(0, 1 << 63, num_shards, dtype=np.uint64)
    details = {
        **common,
        "birth_sha256": _digests(raw),
        "docmap_logical_sha256": _digests(logical),
        "text_bytes": pa.array(np.full(num_shards, 4 * DOCUMENTS * 1_000, dtype=np.int64)),
        "block_checksums": pa.ListArray.from_arrays(  # one of 64: they aren't read here
            np.arange(num_shards + 1, dtype=np.int32), pa.array(checksums)
        ),
    }
    files = {
        "shards": _write_table(repository, "shards", shards),
        "details": _write_table(repository, "details", details),
    }
    _commit(
        repository,
        files,
        num_tokens=tokens,
        raw=np.frombuffer(raw, np.uint8).reshape(-1, 32),
        docmaps=np.frombuffer(logical, np.uint8).reshape(-1, 32),
    )


def _digests(data: bytes) -> pa.Array:
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(32), len(data) // 32, [None, pa.py_buffer(data)]
    )


def _real_docmap(repository: Repository) -> bytes:
    plain = conform(small_docmap([3, 4], source="web"), DOCMAP)
    data = encode_table(plain)
    sha256 = sha256_hex(data)
    put_object(repository.store, layout.docmap_path(sha256), data)
    return bytes.fromhex(sha256)


def _write_table(repository: Repository, name: str, columns: Mapping[str, Any]) -> TableFile:
    kind = layout.TABLE_KINDS[name]
    plain = conform(pa.table(dict(columns)), kind.schema)
    data = encode_table(plain, group_rows=GROUP_ROWS.get(name, DEFAULT_GROUP_ROWS))
    sha256 = sha256_hex(data)
    put_object(repository.store, layout.object_path(kind.prefix, sha256, kind.suffix), data)
    return TableFile(sha256=sha256, rows=plain.num_rows, bytes=len(data), logical_sha256=None)


def _commit(
    repository: Repository,
    files: Mapping[str, TableFile],
    *,
    num_tokens: np.ndarray[tuple[int], np.dtype[np.int64]],
    raw: np.ndarray[tuple[int, int], np.dtype[np.uint8]],
    docmaps: np.ndarray[tuple[int, int], np.dtype[np.uint8]],
) -> None:
    count = len(num_tokens)
    source = SourceSummary(
        name="web",
        order_digest=order_digest(num_tokens, raw),
        num_shards=count,
        num_documents=DOCUMENTS * count,
        num_tokens=int(num_tokens.sum()),
        text_bytes=4 * DOCUMENTS * 1_000 * count,
    )
    kept = ConservationRow(
        source="web",
        kept=source.num_documents,
        text_bytes=source.text_bytes,
        bytes_in=0,
        blank_lines=0,
        dropped={},
        quarantined={},
    )
    content = content_digest([("web", raw)])
    logical = logical_digest(
        content=content,
        docmaps=[("web", docmaps)],
        dropped=[],
        quarantine=[],
        conservation=[kept],
    )
    manifest = Manifest(
        format=layout.FORMAT_VERSION,
        operation="build",
        parents=(),
        recipe=RECIPE,
        recipe_sha256=sha256_hex(canonical_json(RECIPE)),
        environment={},
        tokenizer=_tokenizer(repository),
        token_dtype="uint16",
        codec="raw",
        licences={},
        sources=(source,),
        conservation=(kept,),
        totals=sum_totals([source], [kept]),
        digests=Digests(content=content, logical=logical),
        tables={
            **{name: (file,) for name, file in files.items()},
            **{name: () for name in ("inputs", "dropped", "quarantine")},
        },
    )
    data = encode_manifest(manifest)
    sha256 = sha256_hex(data)
    put_object(repository.store, layout.manifest_path(sha256), data)
    _publish(repository, sha256)


def _tokenizer(repository: Repository) -> TokenizerInfo:
    record = small_tokenizer()
    for name, data in record.files.items():
        repository.store.put(layout.tokenizer_path(record.sha256, name), data)
    return tokenizer_info(record)


def _publish(repository: Repository, manifest: str) -> None:
    entry = LogEntry(
        format=layout.FORMAT_VERSION,
        dataset=read_format(repository.store).id,
        version=1,
        previous_sha256=None,
        manifest=manifest,
        transaction="synthetic",
        operation="build",
        author="benchmark",
        reason="",
        time_seconds=0.0,
        input_roots=(),
        entry_sha256="",
    )
    assert publish_entry(repository.store, seal_entry(entry))
