from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.read import list_inputs
from datapipe.testing import Reading, read_all

Read = Callable[..., Reading]
SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "warc"


def record(url: str, block: bytes, kind: str = "text/html", length: int | None = None) -> bytes:
    size = len(block) if length is None else length
    return f"{url} 93.184.216.119 20140402000000 {kind} {size}\n".encode() + block + b"\n"


def http(body: bytes, status: str = "200 OK", kind: str = "text/html") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n\r\n".encode() + body


HEAD = record(
    "filedesc://a.arc",
    b"1 0 X\nURL IP-address Archive-date Content-type Archive-length\n",
    "text/plain",
)
ONE = record("http://a.example/one two", http(b"<p>one\n"))
TWO = record("http://a.example/2", http(b"<p>two"))


@pytest.mark.parametrize(
    "data",
    [
        HEAD + ONE + TWO,
        gzip.compress(HEAD + ONE + TWO, mtime=0),
        b"".join(gzip.compress(part, mtime=0) for part in (HEAD, ONE, TWO)),
        HEAD + b"\n" + ONE + b"\n\n" + TWO,
        HEAD + ONE + TWO[:-1],
    ],
)
def test_a_response_is_a_document(read: Read, data: bytes) -> None:
    reading = read("a", data)
    assert reading.texts == ["<p>one\n", "<p>two"]
    assert (reading.errors, reading.truncated, reading.blank_lines) == ([], False, 1)
    first = reading.documents[0]
    assert first["url"] == "http://a.example/one two"
    assert first["crawled_at"] == datetime(2014, 4, 2, tzinfo=UTC)
    assert first["media_type"] == "text/html"
    assert first["source_offset"] in (len(HEAD), len(HEAD) + 1)


@pytest.mark.parametrize(
    ("block", "rule"),
    [(http(b"x", "404 Gone"), "http_status"), (http(b"x", kind="image/png"), "media_type")],
)
def test_other_responses_are_dropped_with_a_rule(read: Read, block: bytes, rule: str) -> None:
    reading = read("a.arc", HEAD + record("http://a.example/", block) + TWO)
    assert ([row["rule"] for row in reading.dropped], reading.texts) == ([rule], ["<p>two"])


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (b"something that is no record\n", "invalid_arc"),
        (b"http://a.example/ 1.2.3.4 20140402000000 text/html -1\n", "invalid_arc"),
        (record("http://a.example/", b"<p>" * 999), "record_too_large"),
    ],
)
def test_a_bad_record_is_quarantined_and_its_neighbours_survive(
    read: Read, bad: bytes, error: str
) -> None:
    reading = read("a.arc", HEAD + ONE + bad + TWO, max_record_bytes=1000)
    assert (reading.texts, reading.errors) == (["<p>one\n", "<p>two"], [error])


def test_every_cut_gives_the_whole_records_before_it(read: Read) -> None:
    data = HEAD + ONE + TWO
    for cut in range(len(HEAD), len(data)):
        reading = read("a.arc", data[:cut])
        whole = (cut >= len(HEAD + ONE) - 1) + (cut >= len(data) - 1)
        assert len(reading.texts) == whole, cut
        assert set(reading.errors) <= {"truncated_arc", "invalid_arc"}, cut


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_wherever_bits_flip_nothing_raises(read: Read, data: st.DataObject) -> None:
    broken = bytearray(HEAD + ONE + TWO)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(broken) - 1))
        broken[place] ^= 1 << data.draw(st.integers(0, 7))
    read("a.arc", bytes(broken), declared="arc")


@pytest.mark.shared_data
@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data")
def test_a_real_archive_gives_the_pages_that_its_warc_gives() -> None:
    arc = read_all(list_inputs([SHARED / "aut/example.arc.gz"]))
    warc = read_all(list_inputs([SHARED / "aut/example.warc.gz"]))
    assert (arc.errors, arc.truncated) == ([], False)
    assert sorted(arc.texts) == sorted(warc.texts)
