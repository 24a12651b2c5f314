from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from tiering.errors import AccessDeniedError, ObjectNotFoundError, StoreError
from tiering.store import BlockingStore, open_store
from tiering.store.arrow import arrow_filesystem
from tiering.testing import FaultyStore, S3Server

TABLE = pa.table({"n": pa.array(range(50_000)), "text": [f"row {n}" for n in range(50_000)]})


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlockingStore:
    """A store with a Parquet file at a/b/table.parquet and a short object at a/short."""
    if request.param == "local":
        opened = open_store(str(tmp_path)).blocking()
    else:
        server: S3Server = request.getfixturevalue("s3_server")
        url = f"s3://bucket/{uuid.uuid4().hex}"
        opened = open_store(url, **server.options()).blocking()
    sink = pa.BufferOutputStream()
    pq.write_table(TABLE, sink, row_group_size=10_000)
    opened.put("a/b/table.parquet", memoryview(sink.getvalue()))
    opened.put("a/short", b"short")
    return opened


def test_parquet_is_read_through_a_store(store: BlockingStore) -> None:
    filesystem = arrow_filesystem(store)
    assert pq.read_table("a/b/table.parquet", filesystem=filesystem).equals(TABLE)
    dataset = pads.dataset("a/b", filesystem=filesystem, format="parquet")
    assert dataset.to_table(filter=pads.field("n") == 41_234)["text"].to_pylist() == ["row 41234"]


def test_a_file_is_read_at_any_place(store: BlockingStore) -> None:
    with arrow_filesystem(store).open_input_file("a/short") as file:
        assert (file.size(), file.read(), file.read_at(3, 1)) == (5, b"short", b"hor")
    with arrow_filesystem(store).open_input_stream("a/short") as stream:
        assert stream.read(2) == b"sh"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a/short", fs.FileType.File),
        ("a/b", fs.FileType.Directory),
        ("a/sho", fs.FileType.NotFound),
        ("none", fs.FileType.NotFound),
    ],
)
def test_paths_are_files_folders_or_nothing(
    store: BlockingStore, path: str, kind: fs.FileType
) -> None:
    info = arrow_filesystem(store).get_file_info(path)
    assert info.type == kind
    assert info.size == (5 if path == "a/short" else None)


def test_folders_are_listed(store: BlockingStore) -> None:
    filesystem = arrow_filesystem(store)

    def listed(folder: str, *, recursive: bool) -> list[str]:
        selector = fs.FileSelector(folder, recursive=recursive)
        return sorted(info.path for info in filesystem.get_file_info(selector))

    assert listed("a", recursive=False) == ["a/b", "a/short"]
    assert listed("", recursive=True) == ["a", "a/b", "a/b/table.parquet", "a/short"]
    with pytest.raises(ObjectNotFoundError, match="nothing lies below none"):
        listed("none", recursive=True)
    assert filesystem.get_file_info(fs.FileSelector("none", allow_not_found=True)) == []


@pytest.mark.parametrize(
    "write",
    [
        lambda filesystem: filesystem.open_output_stream("a/new"),
        lambda filesystem: filesystem.open_append_stream("a/short"),
        lambda filesystem: filesystem.delete_file("a/short"),
        lambda filesystem: filesystem.delete_dir("a"),
        lambda filesystem: filesystem.delete_dir_contents("a"),
        lambda filesystem: filesystem.move("a/short", "b"),
        lambda filesystem: filesystem.copy_file("a/short", "b"),
        lambda filesystem: filesystem.create_dir("c"),
    ],
    ids=["write", "append", "delete", "delete folder", "empty", "move", "copy", "make folder"],
)
def test_nothing_is_changed(store: BlockingStore, write: object) -> None:
    assert callable(write)
    with pytest.raises(AccessDeniedError, match="read only"):
        write(arrow_filesystem(store))
    assert [info.path for info in store.list()] == ["a/b/table.parquet", "a/short"]


def test_what_is_missing_or_fails_is_named(tmp_path: Path) -> None:
    store = open_store(str(tmp_path)).blocking()
    with pytest.raises(ObjectNotFoundError, match="no object nowhere"):
        arrow_filesystem(store).open_input_file("nowhere")
    store.put("there", b"bytes")
    faulty = FaultyStore(store, fault=lambda *_: StoreError("the cable is out"))
    with pytest.raises(StoreError, match="the cable is out"):
        arrow_filesystem(faulty).open_input_file("there")


def test_one_store_is_one_filesystem(tmp_path: Path) -> None:
    store = open_store(str(tmp_path)).blocking()
    other = open_store(str(tmp_path)).blocking()
    assert arrow_filesystem(store) == arrow_filesystem(store)
    assert arrow_filesystem(store) != arrow_filesystem(other)
