"""The whole way on a real S3 server: build, append, read, verify, stream."""

from __future__ import annotations

import gzip
import json
import uuid
from pathlib import Path

import numpy as np
import pytest

from datapipe.dataset import index_dataset, open_dataset, verify_dataset
from datapipe.engine import BuildOptions, Request, append_dataset, build_dataset
from datapipe.errors import DamagedError
from datapipe.lineage import open_sql, read_documents, why_document
from tiering.store import open_store
from tiering.testing import Fault, FaultProxy, S3Server

pytestmark = pytest.mark.s3


def write_texts(path: Path, texts: list[str]) -> str:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


def texts(count: int, *, word: str) -> list[str]:
    return [f"{number} {word} " + "lazy fox " * (number % 50) for number in range(count)]


@pytest.fixture
def url(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return f"s3://bucket/{uuid.uuid4().hex}/dataset"


def make(tmp_path: Path, tokenizer: Path, out: str, *, workers: int = 1) -> None:
    request = Request(
        inputs=(write_texts(tmp_path / "a.jsonl", texts(300, word="dog")),),
        tokenizer=str(tokenizer),
        source="web",
    )
    build_dataset(request, out=out, options=BuildOptions(workers=workers))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_dataset_on_s3_is_the_one_on_a_folder(
    tmp_path: Path, tokenizer_path: Path, url: str, workers: int
) -> None:
    make(tmp_path, tokenizer_path, url, workers=workers)
    make(tmp_path, tokenizer_path, str(tmp_path / "folder"))
    remote, local = open_dataset(url), open_dataset(str(tmp_path / "folder"))
    assert remote.manifest.digests == local.manifest.digests
    assert verify_dataset(remote).problems == []
    more = Request(inputs=(write_texts(tmp_path / "b.jsonl", texts(20, word="cat")),))
    append_dataset(url, more, options=BuildOptions(workers=1))
    assert open_dataset(url).version == 2
    assert open_dataset(f"{url}@1").version == 1
    assert read_documents(open_dataset(url), head=3)[0]["text"]


@pytest.mark.parametrize("workers", [1, 2])
def test_inputs_on_s3_give_what_they_give_in_a_folder(
    tmp_path: Path, tokenizer_path: Path, url: str, workers: int
) -> None:
    folder, remote = tmp_path / "raw", url.removesuffix("/dataset") + "/raw"
    (folder / "b").mkdir(parents=True)
    write_texts(folder / "a.jsonl", texts(300, word="dog"))
    (folder / "b" / "c.jsonl.gz").write_bytes(
        gzip.compress((folder / "a.jsonl").read_bytes(), mtime=0)
    )
    (folder / "b" / "d.txt").write_text("a text")
    store = open_store(remote).blocking()
    for name in ("a.jsonl", "b/c.jsonl.gz", "b/d.txt"):
        store.put(name, (folder / name).read_bytes())
    for given, out in ((str(folder), "local"), (remote, "remote")):
        request = Request(inputs=(given,), tokenizer=str(tokenizer_path))
        build_dataset(request, out=str(tmp_path / out), options=BuildOptions(workers=workers))
    local, there = open_dataset(str(tmp_path / "local")), open_dataset(str(tmp_path / "remote"))
    assert there.manifest.digests == local.manifest.digests
    assert there.inputs().to_pylist() == local.inputs().to_pylist()


@pytest.mark.parametrize(
    ("num_workers", "context"),
    [(0, None), (2, "fork")],
    ids=["here", "forked workers"],
)
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forking with threads
def test_a_stream_reads_from_s3(
    tmp_path: Path, tokenizer_path: Path, url: str, num_workers: int, context: str | None
) -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    from datapipe.load import TokenStream

    make(tmp_path, tokenizer_path, url)
    make(tmp_path, tokenizer_path, str(tmp_path / "folder"))

    def batches(ref: str, workers: int) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
        stream = TokenStream(ref, seq_len=64, batch_size=4, seed=7)
        loader = torch.utils.data.DataLoader(
            stream,
            batch_size=None,
            num_workers=workers,
            multiprocessing_context=context if workers else None,
        )
        return [batch["input_ids"].numpy().copy() for batch in loader]

    expected = batches(str(tmp_path / "folder"), 0)
    found = batches(url, num_workers)
    assert len(found) == len(expected) > 10
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_flipped_bytes_on_the_way_are_named(
    tmp_path: Path,
    tokenizer_path: Path,
    url: str,
    s3_server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make(tmp_path, tokenizer_path, url)
    with FaultProxy(s3_server.url) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        dataset = open_dataset(url)
        proxy.fail(Fault(method="GET", target="/docmap/", flip_byte=100))
        with pytest.raises(DamagedError, match="docmap/"):
            dataset.docmap("web", 0)
        assert verify_dataset(dataset).problems
        proxy.fail(Fault(status=503, share=0.2), Fault(method="GET", share=0.2, reset_at_byte=50))
        assert verify_dataset(dataset).problems == []


def test_documents_are_queried_on_s3(tmp_path: Path, tokenizer_path: Path, url: str) -> None:
    pytest.importorskip("duckdb", reason="duckdb isn't installed")
    make(tmp_path, tokenizer_path, url)
    make(tmp_path, tokenizer_path, str(tmp_path / "folder"))
    remote, local = open_dataset(url), open_dataset(str(tmp_path / "folder"))
    assert remote.documents().to_table().equals(local.documents().to_table())
    with open_sql(url, "select count(*) as n, min(doc_id) as first from documents") as rows:
        found = [row for batch in rows.batches() for row in batch.to_pylist()]
    first = min(local.documents().to_table()["doc_id"].to_pylist())
    assert found == [{"n": 300, "first": first.hex()}]
    expected = why_document(local, first.hex())
    assert why_document(remote, first.hex()) == expected
    index_dataset(remote.repository, time_seconds=1.0)
    more = Request(inputs=(write_texts(tmp_path / "b.jsonl", texts(20, word="cat")),))
    append_dataset(url, more, options=BuildOptions(workers=1))
    indexed = open_dataset(url)
    assert [len(files) for files in indexed.manifest.indexes.values()] == [2, 2, 2]
    (fate,) = why_document(indexed, first.hex())
    assert fate.values == expected[0].values
    assert verify_dataset(indexed).problems == []
