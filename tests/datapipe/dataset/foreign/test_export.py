from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from datapipe.dataset import Dataset, Repository
from datapipe.dataset.foreign import export_megatron, files
from datapipe.dataset.foreign.megatron import index_bytes, token_code
from datapipe.errors import DamagedError, FailedError, SpaceError, UnknownReferenceError, UsageError
from datapipe.testing import make_dataset
from tiering.testing import FaultyStore

Documents = list[list[int]]
CODES: dict[int, np.dtype[Any]] = {8: np.dtype("<u2"), 4: np.dtype("<i4")}


def read_prefix(prefix: Path) -> Documents:
    """Reads a pair of files by the description of the format alone."""
    index = prefix.with_name(prefix.name + ".idx").read_bytes()
    data = prefix.with_name(prefix.name + ".bin").read_bytes()
    assert index[:9] == b"MMIDIDX\0\0"
    version, code, sequences, documents = struct.unpack_from("<QBQQ", index, 9)
    assert (version, documents) == (1, sequences + 1)
    lengths = np.frombuffer(index, "<i4", sequences, 34)
    places = np.frombuffer(index, "<i8", sequences, 34 + 4 * sequences)
    starts = np.frombuffer(index, "<i8", documents, 34 + 12 * sequences)
    assert len(index) == 34 + 12 * sequences + 8 * documents
    assert starts.tolist() == list(range(sequences + 1))
    dtype = CODES[code]
    assert lengths.sum() * dtype.itemsize == len(data)
    return [
        np.frombuffer(data, dtype, count, place).tolist()
        for count, place in zip(lengths, places, strict=True)
    ]


def prefixes(listing: str) -> list[Path]:
    words = Path(listing).read_text().split()
    return [Path(word) for word in words[1::2]]


def documents_of(dataset: Dataset, source: str) -> Documents:
    found: Documents = []
    for number in range(len(dataset.shards(source))):
        with dataset.open_shard(source, number) as view:
            data = bytearray(view.size)
            view.read_into(memoryview(data), 0)
        ids = np.frombuffer(data, dataset.token_dtype)
        docmap = dataset.docmap(source, number)
        for start, count in zip(docmap["token_start"], docmap["num_tokens"], strict=True):
            found.append(ids[start.as_py() : start.as_py() + count.as_py()].tolist())
    return found


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Ids beyond 65,535, a document of one token, a source whose name needs care."""
    ids = [[70_000, 5, 0], [0], [2_000_000_000, 0]]
    return make_dataset(
        tmp_path_factory.mktemp("wide") / "ds",
        {"web pages/x": [ids, ids[:1]], "b": [[[1, 0]]]},
        max_id=2_000_000_001,
    )


@pytest.mark.parametrize("copy", [False, True], ids=["linked", "copied"])
def test_every_document_is_read_back(streamed: Dataset, tmp_path: Path, copy: bool) -> None:
    made = export_megatron(streamed, tmp_path / "out", copy=copy)
    for source in made.sources:
        found = [doc for prefix in prefixes(source.listing) for doc in read_prefix(prefix)]
        assert found == documents_of(streamed, source.source)
        assert (len(found), sum(map(len, found))) == (source.num_documents, source.num_tokens)
        assert source.num_files == (1 if copy else len(streamed.shards(source.source)))
        weights = Path(source.listing).read_text().split()[::2]
        assert sum(map(int, weights)) == source.num_tokens
    assert [s.source for s in made.sources] == ["crawl", "books", "crawl@validation"]
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert len(files) == made.written
    assert files[:2] == (
        ["books.bin", "books.idx"] if copy else ["books-00000.bin", "books-00000.idx"]
    )


@pytest.mark.parametrize("copy", [False, True], ids=["linked", "copied"])
def test_large_ids_are_int32(wide: Dataset, tmp_path: Path, copy: bool) -> None:
    made = export_megatron(wide, tmp_path, copy=copy, sources=["web pages/x"])
    (source,) = made.sources
    assert source.listing == f"{tmp_path}/web%20pages%2Fx.txt"
    found = [doc for prefix in prefixes(source.listing) for doc in read_prefix(prefix)]
    assert found == documents_of(wide, "web pages/x")
    assert found[2] == [2_000_000_000, 0]


def test_nothing_is_copied(streamed: Dataset, tmp_path: Path) -> None:
    export_megatron(streamed, tmp_path, sources=["books"])
    table = streamed.shards("books")
    for number, stored in enumerate(table.stored_sha256):
        shard = Path(streamed.url) / f"tokens/{stored[:2]}/{stored}.bin"
        assert (tmp_path / f"books-{number:05d}.bin").samefile(shard)


def test_elsewhere_links_are_symbolic(
    streamed: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr("os.link", refuse)
    for written in (True, False):
        made = export_megatron(streamed, tmp_path / "out", sources=["books"])
        assert (made.written > 0) is written
    assert (tmp_path / "out/books-00000.bin").is_symlink()
    assert len(read_prefix(tmp_path / "out/books-00000")) == 11


def test_a_dry_run_writes_nothing(streamed: Dataset, tmp_path: Path) -> None:
    made = export_megatron(streamed, tmp_path / "out", dry_run=True)
    assert (made.written, made.existing) == (9 * 2 + 3, 0)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("copy", [False, True], ids=["linked", "copied"])
def test_what_is_there_stays_and_what_is_missing_is_made(
    streamed: Dataset, tmp_path: Path, copy: bool
) -> None:
    first = export_megatron(streamed, tmp_path, copy=copy)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = export_megatron(streamed, tmp_path, copy=copy)
    assert (again.written, again.existing) == (0, first.written)
    name = "books.idx" if copy else "books-00001.idx"
    (tmp_path / name).unlink()
    assert export_megatron(streamed, tmp_path, copy=copy).written == 1
    del before[tmp_path / name]
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize("copy", [False, True], ids=["linked", "copied"])
@pytest.mark.parametrize("ending", ["bin", "idx", "txt"])
@pytest.mark.parametrize("data", [b"", None], ids=["empty", "a byte flipped"])
def test_another_file_is_left_alone(
    streamed: Dataset, tmp_path: Path, copy: bool, ending: str, data: bytes | None
) -> None:
    export_megatron(streamed, tmp_path / "good", copy=copy, sources=["books"])
    name = f"books.{ending}" if copy or ending == "txt" else f"books-00002.{ending}"
    wrong = bytearray((tmp_path / "good" / name).read_bytes()) if data is None else bytearray(data)
    if wrong:
        wrong[-1] ^= 1
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_bytes(wrong)
    with pytest.raises(UsageError, match=rf"{name} is there already and isn't what"):
        export_megatron(streamed, tmp_path / "out", copy=copy, sources=["books"])
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]
    assert (tmp_path / "out" / name).read_bytes() == wrong


def test_a_broken_link_is_in_the_way(streamed: Dataset, tmp_path: Path) -> None:
    (tmp_path / "books-00000.bin").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="is there already"):
        export_megatron(streamed, tmp_path)


def test_what_cant_be_exported(streamed: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UnknownReferenceError, match="has no source 'nosuch'"):
        export_megatron(streamed, tmp_path, sources=["nosuch"])
    with pytest.raises(UsageError, match=r"white space, which '.*a b' has"):
        export_megatron(streamed, tmp_path / "a b")
    remote = Repository.over(FaultyStore(streamed.repository.store)).open()
    with pytest.raises(UsageError, match="shards can't be linked; nothing was exported; give --co"):
        export_megatron(remote, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert export_megatron(remote, tmp_path, copy=True, sources=["books"]).written == 3
    with pytest.raises(UsageError, match="go up to 2147483648"):
        token_code(np.dtype(np.uint32), max_id=1 << 31)


@pytest.mark.parametrize("copy", [False, True], ids=["linked", "copied"])
def test_damage_is_named_and_no_half_file_is_left(own: Dataset, tmp_path: Path, copy: bool) -> None:
    stored = own.shards("books").stored_sha256[1]
    shard = Path(own.url) / f"tokens/{stored[:2]}/{stored}.bin"
    data = bytearray(shard.read_bytes())
    shard.chmod(0o644)
    data[4] ^= 1
    shard.write_bytes(bytes(data) if copy else bytes(data[:-2]))
    with pytest.raises(DamagedError, match=stored):
        export_megatron(own, tmp_path / "out", copy=copy, sources=["books"])
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert left == (set() if copy else {"books-00000.bin", "books-00000.idx"})


def test_a_docmap_that_doesnt_cover_its_shard_is_damage(
    streamed: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    docmap = streamed.docmap("books", 0)
    monkeypatch.setattr(Dataset, "docmap", lambda *_: docmap.slice(1))
    with pytest.raises(DamagedError, match=r"its documents have .* tokens, the shard"):
        files.document_lengths(streamed, "books", 0)


@pytest.mark.parametrize(
    ("number", "error", "message"),
    [
        (errno.ENOSPC, SpaceError, "what is finished stays; free some space"),
        (errno.EIO, FailedError, "nothing half-written is visible"),
    ],
)
def test_a_disk_that_fails(
    streamed: Dataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    error: type[Exception],
    message: str,
) -> None:
    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(error, match=message):
        export_megatron(streamed, tmp_path, copy=True)
    assert list(tmp_path.iterdir()) == []


def test_one_export_at_a_time(streamed: Dataset, tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(FailedError, match="another export is writing to"):
        export_megatron(streamed, tmp_path)
    os.close(descriptor)
    assert export_megatron(streamed, tmp_path).written > 0


def test_a_folder_that_cant_be_made_is_named(streamed: Dataset, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FailedError, match="file/out can't be written: Not a directory"):
        export_megatron(streamed, tmp_path / "file" / "out")


def test_the_bytes_of_an_index() -> None:
    lengths = [np.array([3, 1], np.int32), np.array([], np.int32), np.array([2], np.int32)]
    found = b"".join(index_bytes(lengths, np.dtype(np.uint16), max_id=999))
    assert found == bytes.fromhex(
        "4d4d49444944580000" "0100000000000000" "08" "0300000000000000" "0400000000000000"
        "03000000" "01000000" "02000000"
        "0000000000000000" "0600000000000000" "0800000000000000"
        "0000000000000000" "0100000000000000" "0200000000000000" "0300000000000000"
    )  # fmt: skip
