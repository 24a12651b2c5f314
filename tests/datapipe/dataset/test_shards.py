from __future__ import annotations

import hashlib
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from datapipe.dataset import Repository, ShardRecord, token_dtype
from datapipe.dataset.shards import Tokens
from datapipe.errors import SpaceError
from datapipe.testing import small_docmap, small_tokens
from tiering.errors import NoSpaceError
from tiering.testing import FaultyStore

LENGTHS = [3, 4, 1]


def write(repo: Repository, tokens: Tokens, docmap: pa.Table | None = None) -> ShardRecord:
    docmap = docmap if docmap is not None else small_docmap(LENGTHS, source="web")
    return repo.write_shard(
        tokens, source="web", number=0, docmap=docmap, text_bytes=10 * docmap.num_rows
    )


def test_a_shard_is_its_ids_and_nothing_else(repo: Repository) -> None:
    tokens = np.array([1, 258, 0, 3, 4, 5, 0, 0], dtype=np.uint16)
    record = write(repo, tokens)
    data = bytes.fromhex("0100 0201 0000 0300 0400 0500 0000 0000")
    digest = hashlib.sha256(data).hexdigest()
    assert repo.store.get(f"tokens/{digest[:2]}/{digest}.bin") == data
    assert (record.raw_sha256, record.stored_sha256, record.stored_bytes) == (digest, digest, 16)
    assert (record.num_tokens, record.num_documents, record.text_bytes) == (8, 3, 30)
    assert record.block_checksums == (xxhash.xxh3_64_intdigest(data),)


@pytest.mark.parametrize("dtype", [">u2", ">u4", "<u4"])
def test_tokens_are_stored_little_endian(repo: Repository, dtype: str) -> None:
    tokens = np.arange(8).astype(dtype)
    record = write(repo, tokens)
    data = repo.store.get(f"tokens/{record.raw_sha256[:2]}/{record.raw_sha256}.bin")
    assert np.frombuffer(data, dtype=dtype.replace(">", "<")).tolist() == list(range(8))


def test_each_mebibyte_has_a_checksum(repo: Repository) -> None:
    lengths = [(1 << 19) + 7]
    record = write(repo, small_tokens(lengths), small_docmap(lengths, source="web"))
    assert len(record.block_checksums) == 2


def test_a_slice_of_tokens_is_written_as_it_stands(repo: Repository) -> None:
    tokens = small_tokens([16])
    assert write(repo, tokens[::2]).raw_sha256 == write(repo, tokens[::2].copy()).raw_sha256


def test_records_survive_json_and_pickling(repo: Repository) -> None:
    record = write(repo, small_tokens(LENGTHS))
    assert ShardRecord.from_json(record.to_json()) == record
    assert pickle.loads(pickle.dumps(record)) == record
    assert record.to_json()["block_checksums"] == [f"{record.block_checksums[0]:016x}"]


def test_writing_again_or_at_once_is_fine(repo: Repository) -> None:
    tokens = small_tokens(LENGTHS)
    with ThreadPoolExecutor(4) as threads:
        records = list(threads.map(lambda _: write(repo, tokens), range(8)))
    assert records == [records[0]] * 8
    assert len(list(repo.store.list("tokens/"))) == 1


def test_a_truncated_leftover_is_replaced(repo: Repository) -> None:
    record = write(repo, small_tokens(LENGTHS))
    path = Path(repo.url) / f"tokens/{record.raw_sha256[:2]}/{record.raw_sha256}.bin"
    path.write_bytes(path.read_bytes()[:5])
    write(repo, small_tokens(LENGTHS))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == record.raw_sha256


@pytest.mark.parametrize(
    ("starts", "counts"),
    [([0, 3, 7], [3, 4, 2]), ([0, 3, 6], [3, 4, 1]), ([1, 4, 8], [3, 4, 1]), ([], [])],
    ids=["too long", "overlap", "gap", "no documents"],
)
def test_a_docmap_that_does_not_cover_the_tokens_is_refused(
    repo: Repository, starts: list[int], counts: list[int]
) -> None:
    docmap = small_docmap(LENGTHS, source="web").slice(0, len(starts))
    docmap = docmap.set_column(2, "token_start", pa.array(starts, pa.int64()))
    docmap = docmap.set_column(3, "num_tokens", pa.array(counts, pa.int64()))
    with pytest.raises(ValueError, match=r"the docmap of shard 0 of web covers \d+ tokens"):
        write(repo, small_tokens(LENGTHS), docmap)
    assert list(repo.store.list("tokens/")) == []


@pytest.mark.parametrize(
    "tokens",
    [np.zeros(8, np.int64), np.zeros((2, 4), np.uint16), np.zeros(8, np.uint8)],
    ids=["signed", "matrix", "bytes"],
)
def test_what_is_not_a_row_of_ids_is_refused(repo: Repository, tokens: Tokens) -> None:
    with pytest.raises(ValueError, match="give a 1-D array of uint16 or uint32"):
        write(repo, tokens)


def test_an_empty_shard_is_refused(repo: Repository) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        write(repo, np.zeros(0, np.uint16))


def test_a_full_disk_is_resumable(repo: Repository) -> None:
    full = FaultyStore(
        repo.store, fault=lambda verb, _: NoSpaceError("full") if verb == "put" else None
    )
    with pytest.raises(SpaceError, match="run the same command again") as caught:
        write(Repository.over(full), small_tokens(LENGTHS))
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(("max_id", "dtype"), [(0, "<u2"), (65_535, "<u2"), (65_536, "<u4")])
def test_dtype_follows_the_largest_id(max_id: int, dtype: str) -> None:
    assert token_dtype(max_id) == np.dtype(dtype)
