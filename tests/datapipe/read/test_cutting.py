from __future__ import annotations

import bz2
import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import zstandard
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from datapipe.read import (
    CutError,
    FileRange,
    InputFile,
    can_cut,
    cut_input,
    detect_format,
    read_range,
)
from datapipe.testing import Reading, read_all
from tiering.store import View, open_store


@dataclass(frozen=True, slots=True)
class Lying:
    """A stretch that lies in a file of its own."""

    path: Path

    def open(self) -> View:
        return open_store(str(self.path.parent)).blocking().open(self.path.name)


def record(number: int, body: bytes) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
    kind = "request" if number % 5 == 4 else "response"
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:{number}>\r\n"
        f"Content-Type: application/http\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


LINES = b"".join(json.dumps({"text": "x" * (n % 90)}).encode() + b"\n" for n in range(500))
LINES += b"bad\n\n   \n" + LINES[:-1]
WARC = b"".join(record(n, b"<p>WARC/1.0\r\n" * (n % 30)) for n in range(100))


VALUES = [{"text": "x, [{" * (n % 30) + '"\n', "id": n} for n in range(200)]
INDENTED = "\n".join(json.dumps(v, indent=1) for v in VALUES).encode()
CSV = b"id,text\n" + b"".join(
    b'%d,"%s"\n' % (n, b'a ""quoted""\n line' * (n % 9)) for n in range(300)
)
CSV += b'ragged\n\n7,"never closed\n8,b\n9,"c"\n'
DUMP = b"<mediawiki>\n<siteinfo><base>https://a.example/wiki/Main</base></siteinfo>\n" + b"".join(
    b"<page><title>%d</title><ns>%d</ns><id>%d</id><revision><text>%s</text></revision></page>\n"
    % (n, n % 7 == 3, n, b"t" * (n % 50))
    for n in range(200)
)
DUMP += b"<page>bad & page</page>\n</mediawiki>\n"


def input_file(path: Path, data: bytes) -> InputFile:
    path.write_bytes(data)
    return InputFile(path=str(path), relative=path.name, size_bytes=len(data))


def read_cut(file: InputFile, target_bytes: int, folder: Path) -> Reading:
    format = detect_format(file)
    reading = Reading()
    end = 0
    for stretch in cut_input(file, format, target_bytes=target_bytes):
        assert stretch.start == end
        end = stretch.end
        place = None
        if format.compression != "none":
            place = Lying(folder / f"{stretch.start}")
            place.path.write_bytes(stretch.data)
        part = FileRange(
            file=file,
            format=format,
            start=stretch.start,
            end=stretch.end,
            place=place,
            context=stretch.context,
        )
        for result in read_range(part, source="web"):
            reading.add(result)
    return reading


@pytest.mark.parametrize("target_bytes", [1, 1000, 7001, 1 << 30])
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl.gz", gzip.compress(LINES, mtime=0)),
        ("a.jsonl.zst", zstandard.ZstdCompressor().compress(LINES)),
        ("a.jsonl.bz2", bz2.compress(LINES.replace(b"\n", b"\r\n"))),
        ("a.jsonl.gz", gzip.compress(b"\xef\xbb\xbf" + LINES + b'{"text":', mtime=0)),
        ("a.jsonl.gz", gzip.compress(b"", mtime=0)),
        ("a.warc", WARC),
        ("a.warc.gz", gzip.compress(WARC, mtime=0)),
        ("b.warc.gz", b"".join(gzip.compress(record(n, b"<p>"), mtime=0) for n in range(9))),
        ("a.warc", WARC[:-4]),
        ("a.json", json.dumps(VALUES).encode()),
        ("a.json.gz", gzip.compress(json.dumps(VALUES, indent=1).encode() + b"\n", mtime=0)),
        ("a.json.gz", gzip.compress(INDENTED, mtime=0)),
        ("a.json", b'[{"text": "a"}, {"text": 1}, 7, {"text": "b"}] '),
        ("a.csv", CSV),
        ("a.csv.gz", gzip.compress(CSV.replace(b"\n", b"\r\n"), mtime=0)),
        ("a.tsv", CSV.replace(b",", b"\t")),
        ("a.csv", b"text,id\n"),
        ("a.xml.bz2", bz2.compress(DUMP)),
        ("a.xml", DUMP),
    ],
)
def test_stretches_give_what_the_whole_file_gives(
    tmp_path: Path, name: str, data: bytes, target_bytes: int
) -> None:
    file = input_file(tmp_path / name, data)
    assert can_cut(detect_format(file))
    assert read_cut(file, target_bytes, tmp_path) == read_all([file])


@settings(max_examples=50, deadline=None)
@given(
    lines=st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\r", b"")), max_size=30),
    target_bytes=st.integers(1, 200),
)
def test_any_lines_are_cut_between_records(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], target_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    file = input_file(folder / "a.jsonl.gz", gzip.compress(b"\n".join(lines), mtime=0))
    assume(can_cut(detect_format(file)))  # not what begins like UTF-16
    assert read_cut(file, target_bytes, folder) == read_all([file])


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl.gz", gzip.compress(LINES, mtime=0)[:-20]),
        ("a.jsonl.gz", gzip.compress(LINES, mtime=0)[:-8] + b"\1" * 8),
        ("a.jsonl.gz", gzip.compress(LINES, mtime=0) + b"garbage"),
        ("a.jsonl.gz", gzip.compress(b"x" * 3_000_000, mtime=0)),
        ("a.json", b'[{"text": "a"}, {"text": "b"}'),
        ("a.json", b'[{"text": "a"}, {"text": "b\n"}, {"text": "c"}]'),
        ("a.xml", DUMP[:-20]),
        ("a.csv.gz", gzip.compress(CSV, mtime=0)[:-20]),
        ("a.warc", WARC[:-30]),
        ("a.warc", WARC + b"garbage"),
        ("a.warc.gz", gzip.compress(WARC, mtime=0)[:-20]),
    ],
)
def test_what_isnt_whole_is_not_cut(tmp_path: Path, name: str, data: bytes) -> None:
    file = input_file(tmp_path / name, data)
    with pytest.raises(CutError):
        list(cut_input(file, detect_format(file), target_bytes=99, max_record_bytes=9999))


@pytest.mark.parametrize(
    ("name", "data"), [("a.jsonl", LINES), ("a.txt.gz", gzip.compress(b"a", mtime=0))]
)
def test_what_is_split_anyway_or_is_one_record_is_not_cut(
    tmp_path: Path, name: str, data: bytes
) -> None:
    assert not can_cut(detect_format(input_file(tmp_path / name, data)))
