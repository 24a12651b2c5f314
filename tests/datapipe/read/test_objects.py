from __future__ import annotations

import gzip
import json
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datapipe.errors import FailedError, InputError
from datapipe.read import InputFile, input_sha256, list_inputs
from datapipe.testing import read_all
from tiering.store import Mode, open_store
from tiering.testing import S3Server

pytest.importorskip("obstore", reason="obstore isn't installed")
pytest.importorskip("fsspec", reason="fsspec isn't installed")

NAMES = ["a.jsonl", "b/c.jsonl.gz", "b/d.parquet", "b/.hidden", "b/e/f.txt", ".git/x", "g.warc.gz"]


def contents(name: str, folder: Path) -> bytes:
    line = json.dumps({"text": name}).encode() + b"\n"
    if name.endswith("parquet"):
        pq.write_table(pa.table({"text": [name]}), folder / "p")
        return (folder / "p").read_bytes()
    if name.endswith("warc.gz"):
        block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + name.encode()
        head = (
            "WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\n"
            f"Content-Length: {len(block)}\r\n\r\n"
        )
        return gzip.compress(head.encode() + block + b"\r\n\r\n", mtime=0)
    if name.endswith("txt"):
        return name.encode()
    return gzip.compress(line, mtime=0) if name.endswith("gz") else line


@pytest.fixture(params=["fsspec", pytest.param("s3", marks=pytest.mark.s3)])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder of inputs in a store: one that fsspec knows, or S3."""
    place = f"local://{tmp_path}/in"
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        place = f"s3://bucket/{uuid.uuid4().hex}"
    store = open_store(place).blocking()
    for name in NAMES:
        store.put(f"raw/{name}", contents(name, tmp_path), mode=Mode.OVERWRITE)
    return f"{place}/raw"


def names(files: list[InputFile]) -> list[str]:
    return [file.relative for file in files]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", ["a.jsonl", "b/c.jsonl.gz", "b/d.parquet", "b/e/f.txt", "g.warc.gz"]),
        ("/", ["a.jsonl", "b/c.jsonl.gz", "b/d.parquet", "b/e/f.txt", "g.warc.gz"]),
        ("/a.jsonl", ["a.jsonl"]),
        ("/b", ["c.jsonl.gz", "d.parquet", "e/f.txt"]),
        ("/*.jsonl", ["a.jsonl"]),
        ("/*", ["a.jsonl", "b/c.jsonl.gz", "b/d.parquet", "b/e/f.txt", "g.warc.gz"]),
        ("/b/[cd]*", ["c.jsonl.gz", "d.parquet"]),
        ("/**/*.txt", ["b/e/f.txt"]),
        ("/b/**", ["c.jsonl.gz", "d.parquet", "e/f.txt"]),
        ("/*/e", ["b/e/f.txt"]),
        ("/b/.*", [".hidden"]),
    ],
)
def test_urls_name_objects_folders_and_patterns(
    url: str, pattern: str, expected: list[str]
) -> None:
    assert names(list_inputs([url + pattern])) == expected


def test_objects_are_read_like_files(url: str) -> None:
    files = list_inputs([url])
    assert sorted(read_all(files).texts) == sorted(
        n for n in NAMES if not n.startswith((".", "b/."))
    )
    assert {file.named for file in files} == {False}
    (named,) = list_inputs([url + "/a.jsonl"])
    assert (named.path, named.named) == (url + "/a.jsonl", True)
    assert len(input_sha256(named)) == 32


def test_names_are_relative_to_what_urls_have_in_common_or_the_root(url: str) -> None:
    both = [url + "/b/e/*.txt", url + "/b/*.gz"]
    assert names(list_inputs(both)) == ["c.jsonl.gz", "e/f.txt"]
    assert names(list_inputs(both, root=url)) == ["b/c.jsonl.gz", "b/e/f.txt"]


@pytest.mark.parametrize(
    ("path", "message"),
    [("/nothing", "doesn't exist, and nothing"), ("/*.zip", "matches no object")],
)
def test_a_url_that_means_nothing_is_an_error(url: str, path: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list_inputs([url + path])


def test_an_object_given_twice_is_an_error_naming_both_givers(url: str) -> None:
    with pytest.raises(InputError, match=r"a\.jsonl is given twice, by .*raw and by .*/\*\.jsonl"):
        list_inputs([url, url + "/*.jsonl"])


def test_urls_that_cant_be_used_are_errors(url: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a")
    with pytest.raises(InputError, match="give each an input entry of its own"):
        list_inputs([url, str(tmp_path / "a.txt")])
    with pytest.raises(InputError, match="no folder in common"):
        list_inputs([url, "s3://other/a*"])
    with pytest.raises(InputError, match="is, or lies in, a folder that this command writes to"):
        list_inputs([url + "/b"], own=[url])
    with pytest.raises(InputError, match="no store is known for URLs that start with nope://"):
        list_inputs(["nope://a/b"])
    with pytest.raises(InputError, match="password or token"):
        list_inputs(["s3://user:secret@bucket/a"])


def test_what_the_program_writes_is_left_out_and_said(url: str) -> None:
    store = open_store(url).blocking()
    for name in ("ds/format.json", "ds/_log/0.json", "ds/tokens/a", "out/x"):
        store.put(name, b"{}", mode=Mode.OVERWRITE)
    notes: list[str] = []
    found = names(list_inputs([url], own=[url + "/out"], note=notes.append))
    assert found == names(list_inputs([url + "/[abg]*"]))
    assert [note.split(" was left out")[1] for note in notes] == [
        " of the inputs: it is a dataset",
        " of the inputs: this command writes to it",
    ]


def test_an_object_that_changes_after_the_listing_fails_by_name(url: str) -> None:
    (file,) = list_inputs([url + "/a.jsonl"])
    open_store(url).blocking().put("a.jsonl", b'{"text": "other"}\n', mode=Mode.OVERWRITE)
    with pytest.raises(FailedError, match=r"a\.jsonl was changed or replaced"):
        read_all([file])
    open_store(url).blocking().delete("a.jsonl")
    with pytest.raises(FailedError, match=r"a\.jsonl can't be read"):
        input_sha256(file)
