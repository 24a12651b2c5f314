"""Reads a dataset with json, pyarrow, numpy and zstandard alone, following docs/format.md."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
import zstandard

from datapipe.dataset import Dataset, Repository, hold_version, set_tag
from datapipe.testing import commit_small, small_draft

PAGE = Path(__file__).resolve().parents[3] / "docs" / "format.md"


class PlainReader:
    """A reader that imports nothing of this project."""

    def __init__(self, root: Path) -> None:
        self.root = root
        number = int((root / "_log/HINT").read_text())
        while (root / f"_log/{number + 1:020d}.json").exists():
            number += 1
        self.entry = json.loads((root / f"_log/{number:020d}.json").read_bytes())
        self.manifest = json.loads(self.read("_manifests/{}.json", self.entry["manifest"]))
        assert self.manifest["format"] == 1

    def read(self, form: str, sha256: str) -> bytes:
        path = form.replace("<aa>", sha256[:2]).format(sha256)
        data = (self.root / path).read_bytes()
        assert hashlib.sha256(data).hexdigest() == sha256
        return data

    def table(self, name: str, form: str) -> list[dict[str, Any]]:
        rows = []
        for file in self.manifest["tables"][name]:
            part = pq.read_table(pa.BufferReader(self.read(form, file["sha256"])))
            assert part.num_rows == file["rows"]
            rows += part.to_pylist()
        return rows

    def quarantine(self) -> list[dict[str, Any]]:
        rows = []
        for file in self.manifest["tables"]["quarantine"]:
            data = self.read("private/quarantine/{}.jsonl.zst", file["sha256"])
            text = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
            rows += [json.loads(line) for line in text.splitlines()]
        return rows

    def tokens(self, shard: dict[str, Any]) -> np.ndarray[Any, Any]:
        data = self.read("tokens/<aa>/{}.bin", shard["stored_sha256"].hex())
        return np.frombuffer(data, dtype={"uint16": "<u2", "uint32": "<u4"}[self.dtype])

    def docmap(self, shard: dict[str, Any]) -> list[dict[str, Any]]:
        data = self.read("docmap/<aa>/{}.parquet", shard["docmap_sha256"].hex())
        rows: list[dict[str, Any]] = pq.read_table(pa.BufferReader(data)).to_pylist()
        return rows

    @property
    def dtype(self) -> str:
        return str(self.manifest["token_dtype"])


def hashed_tuple(*fields: Any) -> bytes:
    data = b""
    for field in fields:
        if field is None:
            data += b"\xff" * 8
            continue
        if isinstance(field, str):
            field = field.encode()
        elif isinstance(field, int):
            field = struct.pack("<Q", field % (1 << 64))
        elif isinstance(field, float):
            field = struct.pack("<d", field)
        data += struct.pack("<Q", len(field)) + field
    return data


def row_digest(rows: list[tuple[Any, ...]]) -> bytes:
    return hashlib.sha256(b"".join(hashed_tuple(*row) for row in rows)).digest()


def canonical(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def docmap_fields(row: dict[str, Any]) -> tuple[Any, ...]:
    crawled = row["crawled_at"]
    return (*list(row.values())[:-1], None if crawled is None else int(crawled.timestamp()))


@pytest.fixture
def reader(appended: Dataset) -> PlainReader:
    return PlainReader(Path(appended.url))


@pytest.fixture
def shards(reader: PlainReader) -> list[dict[str, Any]]:
    return reader.table("shards", "_manifests/shards/{}.parquet")


def by_source(reader: PlainReader, rows: list[dict[str, Any]], key: str) -> list[tuple[str, bytes]]:
    ordered = sorted(rows, key=lambda row: row["number"])
    return [
        (source["name"], b"".join(r[key] for r in ordered if r["source"] == source["name"]))
        for source in reader.manifest["sources"]
    ]


def test_the_log_is_a_chain(reader: PlainReader) -> None:
    entry = dict(reader.entry)
    stated = entry.pop("entry_sha256")
    assert stated == hashlib.sha256(canonical(entry)).hexdigest()
    before = (reader.root / "_log/00000000000000000001.json").read_bytes()
    assert entry["previous_sha256"] == hashlib.sha256(before).hexdigest()
    identity = json.loads((reader.root / "format.json").read_bytes())
    assert identity["id"] == entry["dataset"]


def test_documents_cover_the_tokens_and_end_with_eos(
    reader: PlainReader, shards: list[dict[str, Any]], appended: Dataset
) -> None:
    eos = reader.manifest["tokenizer"]["eos_id"]
    assert reader.manifest["recipe"]["tokenize"]["append_eos"] is True
    assert len(shards) == 5
    for shard in shards:
        tokens, position = reader.tokens(shard), 0
        for row in reader.docmap(shard):
            assert row["token_start"] == position
            position += row["num_tokens"]
            assert tokens[position - 1] == eos
        assert position == len(tokens) == shard["num_tokens"]
        with appended.open_shard(shard["source"], shard["number"]) as view:
            buffer = bytearray(view.size)
            view.read_into(memoryview(buffer), 0)
        assert bytes(buffer) == tokens.tobytes()


def test_ids_are_hashes_of_origins(reader: PlainReader, shards: list[dict[str, Any]]) -> None:
    rows = [{"source": shard["source"], **row} for shard in shards for row in reader.docmap(shard)]
    rows += reader.table("dropped", "dropped/{}.parquet")
    names = ("source", "source_file", "source_offset", "source_length", "content_hash")
    assert len(rows) == 12
    for row in rows:
        data = hashed_tuple(*(row[name] for name in names))
        assert hashlib.blake2b(data, digest_size=16).digest() == row["doc_id"]


def test_digests_follow_from_their_definitions(
    reader: PlainReader, shards: list[dict[str, Any]]
) -> None:
    manifest = reader.manifest
    details = reader.table("details", "_manifests/details/{}.parquet")
    raw = by_source(reader, shards, "raw_sha256")
    content = hashlib.sha256(b"".join(hashed_tuple(*pair) for pair in raw))
    assert content.hexdigest() == manifest["digests"]["content"]
    logical = hashed_tuple("content", content.digest())
    for name, digests in by_source(reader, details, "docmap_logical_sha256"):
        logical += hashed_tuple("docmap", name, digests)
    for name in ("dropped", "quarantine"):
        files = "".join(file["logical_sha256"] for file in manifest["tables"][name])
        logical += hashed_tuple(name, bytes.fromhex(files))
    keys = ("source", "kept", "dropped", "quarantined")
    counts = [{key: row[key] for key in keys} for row in manifest["conservation"]]
    logical += hashed_tuple("conservation", canonical(counts))
    assert hashlib.sha256(logical).hexdigest() == manifest["digests"]["logical"]


def test_order_digests_follow_from_their_definition(
    reader: PlainReader, shards: list[dict[str, Any]]
) -> None:
    details = reader.table("details", "_manifests/details/{}.parquet")
    birth = {(row["source"], row["number"]): row["birth_sha256"] for row in details}
    for source in reader.manifest["sources"]:
        own = sorted((s["number"], s) for s in shards if s["source"] == source["name"])
        data = b"".join(
            struct.pack("<q", shard["num_tokens"]) + birth[source["name"], number]
            for number, shard in own
        )
        assert hashlib.sha256(data).hexdigest() == source["order_digest"]


def test_row_digests_follow_from_the_rows(
    reader: PlainReader, shards: list[dict[str, Any]]
) -> None:
    details = reader.table("details", "_manifests/details/{}.parquet")
    for shard, detail in zip(shards, details, strict=True):
        rows = [docmap_fields(row) for row in reader.docmap(shard)]
        assert row_digest(rows) == detail["docmap_logical_sha256"]
    for name, form in (("dropped", "dropped/{}.parquet"), ("signatures", "signatures/{}.parquet")):
        rows = [tuple(row.values()) for row in reader.table(name, form)]
        for file in reader.manifest["tables"][name]:
            part, rows = rows[: file["rows"]], rows[file["rows"] :]
            assert row_digest(part).hex() == file["logical_sha256"]


def test_block_checksums_are_of_raw_bytes(
    reader: PlainReader, shards: list[dict[str, Any]]
) -> None:
    details = reader.table("details", "_manifests/details/{}.parquet")
    for shard, detail in zip(shards, details, strict=True):
        digest = xxhash.xxh3_64_intdigest(reader.tokens(shard).tobytes())
        assert detail["block_checksums"] == [digest]


def test_quarantined_bytes_come_back(reader: PlainReader) -> None:
    rows = reader.quarantine()
    assert [base64.b64decode(row["raw"]) for row in rows] == [b"{\xff"] * 3
    names = ("source", "source_file", "source_offset", "source_length", "error", "detail")
    first = reader.manifest["tables"]["quarantine"][0]
    fields = [(*(row[n] for n in names), base64.b64decode(row["raw"])) for row in rows[:1]]
    assert row_digest(fields).hex() == first["logical_sha256"]


def test_the_tokenizer_is_inside(reader: PlainReader) -> None:
    tokenizer = reader.manifest["tokenizer"]
    assert hashlib.sha256(canonical(tokenizer["files"])).hexdigest() == tokenizer["sha256"]
    for name, sha256 in tokenizer["files"].items():
        reader.read(f"tokenizer/{tokenizer['sha256']}/{name}".replace("{}", ""), sha256)


def test_wide_ids_are_read_as_such(repo: Repository) -> None:
    commit_small(repo, small_draft(repo, {"web": [[5, 6]]}, max_id=100_000))
    reader = PlainReader(Path(repo.url))
    (shard,) = reader.table("shards", "_manifests/shards/{}.parquet")
    assert reader.dtype == "uint32"
    assert reader.tokens(shard).tolist().count(0) == 2


def test_the_page_names_every_column_and_key(
    reader: PlainReader, shards: list[dict[str, Any]]
) -> None:
    page = PAGE.read_text()
    names = [*reader.manifest, *reader.entry, *reader.docmap(shards[0])[0], *shards[0]]
    names += json.loads((reader.root / "format.json").read_bytes())
    names += reader.manifest["tables"]
    for key in ("sources", "conservation"):
        names += reader.manifest[key][0]
    for key in ("totals", "tokenizer", "digests"):
        names += reader.manifest[key]
    for table in ("details", "inputs", "dropped", "signatures"):
        folder = f"_manifests/{table}" if table in ("details", "inputs") else table
        names += reader.table(table, folder + "/{}.parquet")[0]
    missing = {name for name in names if f"`{name}`" not in page and f"**{name}**" not in page}
    assert missing == set()


def test_what_is_registered_is_there(appended: Dataset) -> None:
    set_tag(appended, "release-2", author="ada", reason="", time_seconds=1.0)
    hold_version(appended, author="ada", reason="why", time_seconds=1.0)
    root = Path(appended.url)
    register = json.loads((root / "_refs/register.json").read_bytes())
    seal = register.pop("register_sha256")
    assert hashlib.sha256(canonical(register)).hexdigest() == seal
    assert register["format"] == 1
    paths = {str(path.relative_to(root)) for path in (root / "_refs").rglob("*.json")}
    assert paths - {"_refs/register.json"} == register["objects"].keys()
    for path, found in register["objects"].items():
        assert hashlib.sha256((root / path).read_bytes()).hexdigest() == found["sha256"]
        assert (found["version"], found["manifest"]) == (2, appended.manifest_sha256)
        assert found["final"] == path.endswith("release-2.json")
