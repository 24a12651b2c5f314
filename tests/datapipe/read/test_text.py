from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
import zstandard

from datapipe.testing import Reading

Read = Callable[..., Reading]


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.txt", b"one\r\ntwo\n", "one\r\ntwo\n"),
        ("a.md", b"# \xc3\xa9", "# é"),
        ("LICENSE", b"MIT", "MIT"),
        ("a.py", b'{"text": 1}\n{"text": 2}\n', '{"text": 1}\n{"text": 2}\n'),
        ("a.txt", b"\xef\xbb\xbfmarked", "marked"),
        ("a.txt", "\ufeffé".encode("utf-16-le"), "é"),
        ("a.txt", "\ufeffé".encode("utf-16-be"), "é"),
        ("a.txt", b"\n", "\n"),
        ("a.txt.gz", gzip.compress(b"packed", mtime=0), "packed"),
        ("a.3.gz", gzip.compress(b".TH A 3", mtime=0), ".TH A 3"),
        ("a.txt.zst", zstandard.ZstdCompressor().compress(b"packed"), "packed"),
        ("a.txt", b'{"not": "lines"}', '{"not": "lines"}'),
    ],
)
def test_a_file_is_one_document(read: Read, name: str, data: bytes, text: str) -> None:
    reading = read(name, data)
    assert reading.texts == [text]
    assert not reading.quarantined
    assert reading.places[0][0] == 0


def test_length_is_that_of_the_uncompressed_bytes(read: Read) -> None:
    assert read("a.txt.gz", gzip.compress(b"\xef\xbb\xbfx" * 100, mtime=0)).places == [(0, 400)]


def test_a_file_without_a_byte_is_no_record(read: Read) -> None:
    assert read("a.txt", b"") == Reading()


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("a.bin", b"\x7fELF\x00\x00", "binary_file"),
        ("a.txt", b"text\x00", "binary_file"),
        ("a.txt", b"caf\xe9", "invalid_utf8"),
        ("a.txt", b"\xff\xfea", "invalid_utf8"),
        ("a.txt", b"x" * 101, "record_too_large"),
        ("a.zip", b"PK\x03\x04....", "unsupported_format"),
        ("a.html", b"<p>\x00", "binary_file"),
        ("a.jsonl", '\ufeff{"text":"a"}'.encode("utf-16-le"), "unsupported_format"),
        ("a.txt.bz2", b"BZh91AY", "truncated_bz2"),
    ],
)
def test_a_file_that_isnt_text_is_one_quarantined_record(
    read: Read, name: str, data: bytes, error: str
) -> None:
    reading = read(name, data, max_record_bytes=100)
    (row,) = reading.quarantined
    assert (reading.texts, row["error"]) == ([], error)
    assert data.startswith(row["raw"]) or name.endswith(".gz")
    assert row["detail"]


def test_a_declared_format_is_believed(read: Read) -> None:
    assert read("a.csv", b"a,b\n", declared="text").texts == ["a,b\n"]
    assert read("a.txt", b'{"text":"a"}\n', declared="jsonl").texts == ["a"]


@pytest.mark.parametrize("name", ["a", "a.txt", "a.json", "a.data"])
def test_lines_of_json_are_seen_under_names_that_dont_tell(read: Read, name: str) -> None:
    assert read(name, b'{"text":"a"}\n{"text":"b"}\n').texts == ["a", "b"]


def test_a_long_first_line_of_json_is_seen(read: Read) -> None:
    assert len(read("a", b'{"text":"' + b"x" * 200_000 + b'"}\n').texts[0]) == 200_000


def test_a_truncated_text_isnt_half_a_document(read: Read) -> None:
    reading = read("a.txt.gz", gzip.compress(b"some text" * 100, mtime=0)[:-3])
    assert (reading.texts, reading.errors, reading.truncated) == ([], ["truncated_gzip"], True)


def test_garbage_behind_a_compressed_text_is_quarantined_beside_it(read: Read) -> None:
    reading = read("a.txt.gz", gzip.compress(b"some text", mtime=0) + b"garbage")
    assert (reading.texts, reading.errors) == (["some text"], ["trailing_garbage"])


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.html", "<p>é".encode(), "<p>é"),
        ("a.HTM", b"<meta charset=latin1><p>\xe9", "<meta charset=latin1><p>é"),
        ("a.xhtml", b'<?xml version="1.0" encoding="koi8-r"?>\xd1', None),
        ("a.html.gz", gzip.compress(b"<p>", mtime=0), "<p>"),
        ("index", b"<!DOCTYPE html>\n<p>", "<!DOCTYPE html>\n<p>"),
        ("a.html", b"no tag at all", "no tag at all"),
        ("a.html", "\ufeff<p>".encode("utf-16-le"), "<p>"),
    ],
)
def test_html_is_a_document_of_its_source(
    read: Read, name: str, data: bytes, text: str | None
) -> None:
    reading = read(name, data)
    assert [d["media_type"] for d in reading.documents] == ["text/html"]
    assert reading.texts == [text or '<?xml version="1.0" encoding="koi8-r"?>я']
    assert reading.places[0][0] == 0


def test_text_that_shows_html_stays_text(read: Read) -> None:
    reading = read("a.txt", b"<!DOCTYPE html>")
    assert [d["media_type"] for d in reading.documents] == [None]
