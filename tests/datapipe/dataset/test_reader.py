from __future__ import annotations

import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from datapipe.dataset import Dataset, Repository, layout
from datapipe.dataset.tables import DOCMAP, DROPPED, INPUTS, QUARANTINE, SIGNATURES
from datapipe.errors import DamagedError, UnknownReferenceError
from datapipe.testing import commit_small, small_docmap, small_draft, small_tokenizer, small_tokens
from tiering.checksums import block_checksums
from tiering.store import Mode


def tokens_of(dataset: Dataset, source: str, number: int) -> list[int]:
    with dataset.open_shard(source, number) as view:
        buffer = bytearray(view.size)
        assert view.read_into(memoryview(buffer), 0) == view.size
    ids: list[int] = np.frombuffer(buffer, dataset.token_dtype).tolist()
    return ids


def test_sources_are_summed_up_in_recipe_order(dataset: Dataset) -> None:
    found = [(s.name, s.num_shards, s.num_documents, s.num_tokens) for s in dataset.sources]
    assert found == [("web", 2, 3, 12), ("books", 1, 1, 9)]
    assert [source.text_bytes for source in dataset.sources] == [30, 10]


def test_shard_columns_are_indexed_by_number(appended: Dataset) -> None:
    table = appended.shards("web")
    assert table.num_tokens.tolist() == [7, 5, 9]
    assert table.num_documents.tolist() == [2, 1, 3]
    assert table.stored_bytes.tolist() == [14, 10, 18]
    assert table.num_tokens.dtype == table.stored_bytes.dtype == np.dtype(np.int64)
    assert list(table.raw_sha256) == list(table.stored_sha256)
    assert len(table.docmap_sha256[0]) == 64


def test_tokens_come_back(appended: Dataset) -> None:
    assert tokens_of(appended, "web", 1) == small_tokens([5], seed=1).tolist()
    assert tokens_of(appended, "web", 2) == small_tokens([3, 4, 2], seed=7).tolist()
    assert tokens_of(appended, "code", 0) == small_tokens([9, 1], seed=7).tolist()


def test_docmaps_come_back(appended: Dataset) -> None:
    table = appended.docmap("web", 1)
    assert table.schema.equals(DOCMAP)
    expected = small_docmap([5], source="web", file="part0.jsonl", first=2)
    assert table.to_pylist() == expected.to_pylist()


def test_block_checksums_come_back(appended: Dataset) -> None:
    for source, number in (("web", 0), ("web", 2), ("books", 0), ("code", 0)):
        data = np.array(tokens_of(appended, source, number), "<u2").data
        assert np.array_equal(appended.block_checksums(source, number), block_checksums(data))


def test_block_checksums_beyond_a_row_group(repo: Repository) -> None:
    record = small_draft(repo, {"web": [[1]]}).shards[0]
    shards = [dataclasses.replace(record, number=n, block_checksums=(n,)) for n in range(2500)]
    draft = small_draft(repo, {"web": [[1]]})
    counts = [dataclasses.replace(draft.counts[0], kept=2500, text_bytes=25_000)]
    commit_small(repo, dataclasses.replace(draft, shards=shards, counts=counts))
    dataset = repo.open()
    for number in (0, 999, 1000, 2499):
        assert dataset.block_checksums("web", number).tolist() == [number]


def test_a_details_table_that_is_another_ones_is_damage(repo: Repository) -> None:
    commit_small(repo, small_draft(repo, {"web": [[3], [4], [5]]}))
    three = repo.open().manifest.files("details")[0]
    draft = small_draft(repo, {"web": [[3]]})
    commit_small(repo, dataclasses.replace(draft, parent=repo.latest()))
    other = repo.open().manifest.files("details")[0]
    data = repo.store.get(f"_manifests/details/{other.sha256}.parquet")
    repo.store.put(f"_manifests/details/{three.sha256}.parquet", data, mode=Mode.OVERWRITE)
    with pytest.raises(DamagedError, match="doesn't have shard 2 of web"):
        repo.open(1).block_checksums("web", 2)


def test_tables_come_back_in_their_types(appended: Dataset) -> None:
    assert appended.dropped().schema.equals(DROPPED)
    assert appended.inputs().schema.equals(INPUTS)
    assert appended.quarantine().schema.equals(QUARANTINE)
    signatures = appended.signatures()
    assert signatures is not None
    assert signatures.schema.equals(SIGNATURES)
    rows = (appended.dropped(), appended.inputs(), appended.quarantine(), signatures)
    assert [table.num_rows for table in rows] == [3, 4, 3, 9]
    assert appended.quarantine()["raw"].to_pylist() == [b"{\xff"] * 3


def test_tables_without_rows_have_their_schema(repo: Repository) -> None:
    draft = dataclasses.replace(small_draft(repo, {"web": [[3]]}), signatures=None)
    commit_small(repo, draft)
    dataset = repo.open()
    assert dataset.dropped().schema.equals(DROPPED)
    assert dataset.quarantine().num_rows == 0
    assert dataset.signatures() is None


def test_the_tokenizer_comes_back(dataset: Dataset) -> None:
    assert dataset.tokenizer_files() == small_tokenizer().files
    assert (dataset.eos_id, dataset.vocab_size) == (0, 1000)
    assert dataset.token_dtype == np.dtype("<u2")


def test_wide_ids_have_a_wide_dtype(repo: Repository) -> None:
    commit_small(repo, small_draft(repo, {"web": [[5, 6]]}, max_id=100_000))
    dataset = repo.open()
    assert dataset.token_dtype == np.dtype("<u4")
    assert tokens_of(dataset, "web", 0) == small_tokens([5, 6], max_id=100_000).tolist()


def test_a_version_stays_what_it_was(dataset: Dataset, appended: Dataset) -> None:
    assert (dataset.version, len(dataset.shards("web"))) == (1, 2)
    assert (appended.version, len(appended.shards("web"))) == (2, 3)


def test_datasets_can_be_pickled_and_shared(appended: Dataset) -> None:
    copy = pickle.loads(pickle.dumps(appended))
    assert repr(copy) == f"Dataset({appended.url!r}, version=2)"
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: copy.block_checksums("web", 2).tolist(), range(32)))
    assert found == [appended.block_checksums("web", 2).tolist()] * 32


def test_unknown_sources_and_shards_are_named(dataset: Dataset) -> None:
    with pytest.raises(UnknownReferenceError, match="no source 'wob'; it has web, books"):
        dataset.shards("wob")
    for number in (2, -1):
        with pytest.raises(UnknownReferenceError, match=f"no shard {number}; it has 2"):
            dataset.open_shard("web", number)


def damaged(dataset: Dataset, path: str, data: bytes | None) -> Dataset:
    """The same version, opened anew over one changed object."""
    file = Path(dataset.url) / path
    if data is None:
        file.unlink()
    else:
        file.write_bytes(data)
    return Repository(dataset.url).open()


@pytest.mark.parametrize("data", [None, b"1", bytes(100)], ids=["missing", "short", "long"])
def test_a_damaged_shard_is_not_opened(dataset: Dataset, data: bytes | None) -> None:
    path = layout.tokens_path(dataset.shards("web").stored_sha256[1])
    with pytest.raises(DamagedError, match=path):
        damaged(dataset, path, data).open_shard("web", 1)


@pytest.mark.parametrize("data", [None, b"1"], ids=["missing", "changed"])
def test_damaged_tables_are_not_read(dataset: Dataset, data: bytes | None) -> None:
    for name in ("shards", "dropped", "quarantine"):
        path = layout.TABLE_KINDS[name].path(dataset.manifest.files(name)[0].sha256)
        bad = damaged(dataset, path, data)
        with pytest.raises(DamagedError, match=path):
            bad.shards("web") if name == "shards" else getattr(bad, name)()


def test_a_damaged_docmap_is_not_read(dataset: Dataset) -> None:
    path = layout.docmap_path(dataset.shards("web").docmap_sha256[0])
    with pytest.raises(DamagedError, match=rf"{path} in .* SHA-256 \w+ expected, \w+ read"):
        damaged(dataset, path, b"x").docmap("web", 0)
