from __future__ import annotations

import base64
import gzip
import hashlib
import io
import itertools
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import zstandard
from fastwarc import ArchiveIterator
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.read import list_inputs
from datapipe.testing import Reading, read_all

Read = Callable[..., Reading]
SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"


def sha1(data: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


def record(
    block: bytes,
    *,
    kind: str = "response",
    number: int = 0,
    content_type: str = "application/http; msgtype=response",
    length: int | str | None = None,
    **headers: Any,
) -> bytes:
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: <urn:uuid:{number:08d}>",
        f"WARC-Target-URI: http://example.org/{number}",
        "WARC-Date: 2024-05-17T08:00:00Z",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(block) if length is None else length}",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def http(body: bytes, *, status: str = "200 OK", **headers: str) -> bytes:
    headers = {"Content_Type": "text/html; charset=utf-8", **headers}
    lines = [f"HTTP/1.1 {status}", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def with_lf(item: bytes) -> bytes:
    header, _, block = item.partition(b"\r\n\r\n")
    return header.replace(b"\r\n", b"\n") + b"\n\n" + block[:-4] + b"\n\n"


def page(number: int) -> bytes:
    return record(http(f"<p>page {number} é</p>".encode()), number=number)


INFO = record(b"software: x", kind="warcinfo", content_type="application/warc-fields")
REQUEST = record(b"GET / HTTP/1.1\r\n\r\n", kind="request", content_type="application/http")
PAGES = [page(number) for number in range(1, 5)]
TEXTS = [f"<p>page {number} é</p>" for number in range(1, 5)]
WARC = INFO + REQUEST + b"".join(PAGES)


def test_a_record_becomes_a_document_with_everything_known_of_it(read: Read) -> None:
    reading = read("a.warc", INFO + PAGES[0])
    (document,) = reading.documents
    assert document["text"] == TEXTS[0]
    assert document["media_type"] == "text/html"
    assert document["url"] == "http://example.org/1"
    assert document["record_id"] == "<urn:uuid:00000001>"
    assert document["crawled_at"] == datetime(2024, 5, 17, 8, tzinfo=UTC)
    assert reading.places == [(len(INFO), len(PAGES[0]) - 4)]
    assert (reading.blank_lines, reading.errors, reading.dropped) == (1, [], [])


@pytest.mark.parametrize(
    "pack",
    [
        lambda records: b"".join(records),
        lambda records: b"".join(gzip.compress(item, mtime=0) for item in records),
        lambda records: gzip.compress(b"".join(records), mtime=0),
        lambda records: (
            gzip.compress(b"".join(records[:3]), mtime=0) + gzip.compress(records[3], mtime=0)
        ),
        lambda records: b"".join(zstandard.ZstdCompressor().compress(item) for item in records),
        lambda records: b"".join(lz4.frame.compress(item) for item in records),
        lambda records: b"".join(map(with_lf, records)),
        lambda records: b"\r\n\r\n\r\n".join(records) + b"\r\n",
        lambda records: b"".join(item[:-4] + b"\r\n" for item in records),
        lambda records: b"".join(item.replace(b"WARC/1.0", b"WARC/0.18") for item in records),
    ],
    ids=[
        "plain",
        "gzip members",
        "one gzip member",
        "a member of several records",
        "zstd frames",
        "lz4 frames",
        "LF",
        "more line ends",
        "fewer line ends",
        "old version",
    ],
)
def test_every_legal_shape_is_read(read: Read, pack: Callable[[list[bytes]], bytes]) -> None:
    reading = read("a", pack(PAGES[:4]))
    assert (reading.texts, reading.errors, reading.truncated) == (TEXTS, [], False)
    assert [d["record_id"] for d in reading.documents] == [
        f"<urn:uuid:{number:08d}>" for number in range(1, 5)
    ]


def test_conversions_and_resources_are_documents_as_they_are(read: Read) -> None:
    wet = record(
        "Füße\n".encode(),
        kind="conversion",
        content_type="text/plain",
        WARC_Identified_Content_Language="deu,eng",
    )
    resource = record(b"<html>a", kind="resource", content_type="application/xhtml+xml")
    reading = read("a.wet", wet + resource)
    assert reading.texts == ["Füße\n", "<html>a"]
    assert [d["media_type"] for d in reading.documents] == ["text/plain", "text/html"]
    assert [d["language"] for d in reading.documents] == ["deu", None]


def test_what_isnt_content_is_no_record_but_counted(read: Read) -> None:
    others = [
        record(b"x", kind=kind, content_type="text/plain")
        for kind in ("warcinfo", "request", "metadata", "revisit", "continuation", "new")
    ]
    dns = record(b"1.2.3.4", kind="response", content_type="text/dns").replace(b"http://", b"dns:")
    reading = read("a.warc", b"".join(others) + dns)
    assert reading == Reading(blank_lines=7)


@pytest.mark.parametrize(
    ("block", "rule", "value"),
    [
        (http(b"<p>gone", status="404 Not Found"), "http_status", 404),
        (http(b"", status="301"), "http_status", 301),
        (http(b"\x89PNG", Content_Type="image/png"), "media_type", None),
        (http(b"\x89PNG", Content_Type=""), "media_type", None),
        (http(b"{}", Content_Type="application/json"), "media_type", None),
    ],
)
def test_other_responses_are_dropped_with_a_rule(
    read: Read, block: bytes, rule: str, value: float | None
) -> None:
    reading = read("a.warc", record(block) + PAGES[0])
    (row,) = reading.dropped
    assert (row["stage"], row["rule"], row["value"]) == ("read", rule, value)
    assert row["threshold"] == (200 if rule == "http_status" else None)
    assert row["record_id"] == "<urn:uuid:00000000>"
    assert reading.texts == TEXTS[:1]


@pytest.mark.parametrize(
    ("content_type", "identified", "body", "media_type"),
    [
        ("TEXT/HTML", None, b"x", "text/html"),
        ("application/xhtml+xml; charset=utf-8", None, b"x", "text/html"),
        ("text/plain", "text/html", b"<html>", "text/plain"),
        ("application/octet-stream", "text/html", b"x", "text/html"),
        ("", "application/xhtml+xml", b"x", "text/html"),
        ("", None, b"\r\n<!-- a --><!DOCTYPE html><p>", "text/html"),
        ("unknown/unknown", None, b"<HTML lang=en>", "text/html"),
    ],
)
def test_the_type_is_what_the_server_says_else_what_it_looks_like(
    read: Read, content_type: str, identified: str | None, body: bytes, media_type: str
) -> None:
    item = record(
        http(body, Content_Type=content_type), WARC_Identified_Payload_Type=identified or ""
    )
    reading = read("a.warc", item)
    assert [d["media_type"] for d in reading.documents] == [media_type]


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (record(b"nothing like HTTP"), "invalid_http"),
        (record(http(b"x"), length=3), "invalid_warc"),
        (record(http(b"x"), length=90), "invalid_warc"),
        (record(http(b"x"), length=1500), "invalid_warc"),
        (record(http(b"x"), length="many"), "invalid_warc"),
        (record(http(b"x")).replace(b"Content-Length", b"Content-Size"), "invalid_warc"),
        (b"something else\r\n\r\nthat isn't WARC\r\n\r\n", "invalid_warc"),
        (record(http(b"x"), WARC_Block_Digest=sha1(b"y")), "digest_mismatch"),
        (record(http(b"x"), WARC_Payload_Digest=sha1(b"y")), "digest_mismatch"),
        (record(http(b"x" * 5000)), "record_too_large"),
        (
            record(http(gzip.compress(b"x" * 9999, mtime=0), Content_Encoding="gzip")),
            "record_too_large",
        ),
        (
            record(http(gzip.compress(b"x", mtime=0)[:-9], Content_Encoding="gzip")),
            "invalid_payload",
        ),
        (record(http(b"\x1f\x8b\x08\0bad", Content_Encoding="gzip")), "invalid_payload"),
    ],
)
def test_a_bad_record_is_quarantined_and_its_neighbours_survive(
    read: Read, bad: bytes, error: str
) -> None:
    reading = read("a.warc", PAGES[0] + bad + PAGES[1], max_record_bytes=2000)
    assert (reading.texts, reading.errors) == (TEXTS[:2], [error])
    (row,) = reading.quarantined
    assert row["source_offset"] == len(PAGES[0])
    assert bad.startswith(row["raw"].rstrip(b"\r\n")[:500])
    assert row["source_length"] in range(len(bad) - 4, len(bad) + 1)
    assert not reading.truncated


@pytest.mark.parametrize(
    "headers",
    [
        {"WARC_Block_Digest": sha1(http(b"x"))},
        {"WARC_Block_Digest": "sha256:" + hashlib.sha256(http(b"x")).hexdigest()},
        {"WARC_Block_Digest": sha1(http(b"x")).lower(), "WARC_Payload_Digest": sha1(b"other")},
        {"WARC_Payload_Digest": sha1(b"x")},
        {"WARC_Payload_Digest": "xxh3:1234"},
        {"WARC_Payload_Digest": "sha1:no digest"},
        {"WARC_Payload_Digest": sha1(b"longer"), "WARC_Truncated": "length"},
    ],
)
def test_digests_that_are_right_or_unknown_are_no_fault(
    read: Read, headers: dict[str, Any]
) -> None:
    assert read("a.warc", record(http(b"x"), **headers)).texts == ["x"]


@pytest.mark.parametrize("ending", [b"", b"\r\n", b"\r\n\r\n", b"\n" * 9])
def test_line_ends_behind_the_last_record_dont_matter(read: Read, ending: bytes) -> None:
    reading = read("a.warc", PAGES[0][:-4] + ending)
    assert (reading.texts, reading.truncated) == (TEXTS[:1], False)


def test_zeros_behind_the_records_are_one_fault(read: Read) -> None:
    reading = read("a.warc", PAGES[0] + b"\0" * 3_000_000)
    assert (reading.texts, reading.errors) == (TEXTS[:1], ["invalid_warc"])
    assert reading.quarantined[0]["source_length"] == 3_000_000


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz", "a"])
def test_nothing_is_no_record(read: Read, name: str) -> None:
    assert read(name, b"", declared="warc") == Reading()
    assert read(name, gzip.compress(b"", mtime=0), declared="warc") == Reading()


def test_every_cut_of_a_plain_file_gives_the_whole_records_before_it(read: Read) -> None:
    data = PAGES[0] + PAGES[1]
    whole = len(PAGES[0])
    for cut in range(1, len(data)):
        reading = read("a.warc", data[:cut], declared="warc")
        num_whole = (cut >= whole - 4) + (cut >= len(data) - 4)
        assert reading.texts == TEXTS[:num_whole], cut
        inside = cut < whole - 4 or whole < cut < len(data) - 4
        assert len(reading.errors) == inside, cut
        assert set(reading.errors) <= {"truncated_warc"}, cut
        if inside:
            assert sum(row["source_length"] for row in reading.quarantined) == (
                cut - whole if cut > whole else cut
            ), cut


MEMBERS = [gzip.compress(item, mtime=0) for item in PAGES]


def test_every_cut_of_a_compressed_file_gives_the_whole_records_before_it(read: Read) -> None:
    packed = MEMBERS[0] + MEMBERS[1]
    for cut in range(3, len(packed)):
        reading = read("a.warc.gz", packed[:cut], declared="warc")
        assert reading.texts[:1] == TEXTS[: cut >= len(MEMBERS[0])] or cut > len(MEMBERS[0]) - 20
        assert reading.truncated == (cut != len(MEMBERS[0])), cut
        assert len(reading.errors) == reading.truncated, cut


@pytest.mark.parametrize("damage", ["data", "checksum", "header", "length", "zeros"])
def test_a_damaged_member_costs_its_record_alone(read: Read, damage: str) -> None:
    bad = bytearray(MEMBERS[1])
    if damage == "data":
        bad[len(bad) // 2] ^= 0x10
    elif damage == "checksum":
        bad[-8] ^= 1
    elif damage == "header":
        bad[1] ^= 1
    elif damage == "length":
        bad[-1] ^= 1
    else:
        bad[20:60] = bytes(40)
    reading = read("a.warc.gz", MEMBERS[0] + bytes(bad) + MEMBERS[2] + MEMBERS[3])
    assert reading.texts == [TEXTS[0], TEXTS[2], TEXTS[3]]
    assert (reading.errors, reading.truncated) == (["corrupt_gzip"], True)
    assert reading.quarantined[0]["source_offset"] == len(PAGES[0])
    if damage not in ("header", "length"):  # the member says how long it was
        starts = [len(b"".join(PAGES[:number])) for number in (0, 2, 3)]
        assert [offset for offset, _ in reading.places] == starts


def test_the_last_member_damaged_ends_the_file(read: Read) -> None:
    bad = MEMBERS[1][:-8] + b"\1" + MEMBERS[1][-7:]
    reading = read("a.warc.gz", MEMBERS[0] + bad)
    assert (reading.texts, reading.errors) == (TEXTS[:1], ["corrupt_gzip"])
    assert reading.truncated


def test_garbage_behind_members_is_quarantined(read: Read) -> None:
    reading = read("a.warc.gz", b"".join(MEMBERS) + b"garbage")
    assert (reading.texts, reading.errors) == (TEXTS, ["trailing_garbage"])


def test_a_large_member_is_read_as_a_stream_and_believed_to_its_damage(read: Read) -> None:
    noise = random.Random(0).randbytes(9 << 20).hex().encode()
    large = [record(http(noise), number=1), record(http(noise), number=2)]
    packed = bytearray(gzip.compress(b"".join(large), compresslevel=1, mtime=0))
    packed[-8] ^= 1
    files = MEMBERS[0] + bytes(packed)
    reading = read("a.warc.gz", files)
    assert (reading.errors, reading.truncated) == (["corrupt_gzip"], True)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_wherever_bits_flip_nothing_raises_and_the_numbers_add_up(
    read: Read, data: st.DataObject
) -> None:
    packed = data.draw(st.booleans())
    records = MEMBERS if packed else PAGES
    broken = bytearray(b"".join(records))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(broken) - 1))
        broken[place] ^= 1 << data.draw(st.integers(0, 7))
    reading = read("a.warc.gz", bytes(broken), declared="warc")
    places = sorted(reading.places)
    assert len(reading.documents) + len(reading.dropped) <= 4
    assert all(a + length <= b for (a, length), (b, _) in itertools.pairwise(places))
    assert len(set(TEXTS) & set(reading.texts)) >= 1 - packed


CHUNKED = b"4\r\n<p>p\r\n6;x=1\r\nage 1 \r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("body", "headers", "text"),
    [
        (CHUNKED, {"Transfer_Encoding": "chunked"}, "<p>page 1 "),
        (CHUNKED[:-8], {"Transfer_Encoding": "chunked"}, "<p>page 1"),
        (b"not chunked", {"Transfer_Encoding": "chunked"}, "not chunked"),
        (gzip.compress(b"packed", mtime=0), {"Content_Encoding": "gzip"}, "packed"),
        (
            gzip.compress(b"pac", mtime=0) + gzip.compress(b"ked", mtime=0),
            {"Content_Encoding": "x-gzip"},
            "packed",
        ),
        (b"plain after all", {"Content_Encoding": "gzip"}, "plain after all"),
        (b"plain after all", {"Content_Encoding": "br"}, "plain after all"),
        (zstandard.ZstdCompressor().compress(b"packed"), {"Content_Encoding": "zstd"}, "packed"),
        (b"x\x9cKLJ\x06\x00\x02M\x01'", {"Content_Encoding": "deflate"}, "abc"),
        (b"KLJ\x06\x00", {"Content_Encoding": "deflate"}, "abc"),
        (b"\x0b\x01\x80abc\x03", {"Content_Encoding": "br"}, "abc"),
        (b"plain", {"Content_Encoding": "UTF-8"}, "plain"),
        (b"", {"Content_Encoding": "gzip"}, ""),
    ],
)
def test_bodies_are_decoded_as_they_say_if_they_are_so(
    read: Read, body: bytes, headers: dict[str, str], text: str
) -> None:
    assert read("a.warc", record(http(body, **headers))).texts == [text]


def test_a_payload_that_the_crawler_cut_is_used(read: Read) -> None:
    body = gzip.compress(b"<p>" + bytes(range(32, 127)) * 50, mtime=0)[:80]
    item = record(http(body, Content_Encoding="gzip"), WARC_Truncated="length")
    (text,) = read("a.warc", item).texts
    assert text.startswith("<p> !")


def test_memory_is_bounded_by_the_record_limit_and_not_by_what_a_header_says(read: Read) -> None:
    large = record(http(b"x" * 3_000_000), length=3_000_000 + len(http(b"")))
    reading = read("a.warc", large + PAGES[0], max_record_bytes=10_000)
    assert (reading.errors, reading.texts) == (["record_too_large"], TEXTS[:1])


@pytest.mark.shared_data
@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize(
    "name",
    [
        "warc/aut/example.warc.gz",
        "warc/aut/issue-493.warc",
        "warc/chatnoir/warcfile.warc",
        "warc/chatnoir/warcfile.warc.gz",
        "warc/chatnoir/warcfile.warc.lz4",
        "warc/commoncrawl/whirlwind.warc.wet.gz",
        "warc/warcio/example-wget-bad-target-uri.warc.gz",
        "web/docs_html.warc.gz",
    ],
)
def test_real_files_give_the_records_that_fastwarc_gives(name: str) -> None:
    path = SHARED / name
    reading = read_all(list_inputs([path]))
    assert (reading.errors, reading.truncated) == ([], False)
    met = Counter([row["record_id"] for row in reading.documents + reading.dropped])
    kinds = Counter[str]()
    plain_offsets: dict[str, int] = {}
    for item in ArchiveIterator(io.BytesIO(path.read_bytes()), parse_http=False):
        is_content = str(item.record_type) in ("response", "resource", "conversion")
        is_web = not (item.headers.get("WARC-Target-URI") or "").startswith(("dns:", "<metadata:"))
        is_ours = (
            is_content
            and is_web
            and not (item.headers.get("WARC-Target-URI") or "").startswith("metadata:")
        )
        kinds[item.record_id or ""] += is_ours
        plain_offsets[item.record_id or ""] = item.stream_pos
    assert met == +kinds
    if path.suffix == ".warc":
        found = {row["record_id"]: row["source_offset"] for row in reading.documents}
        assert found == {key: plain_offsets[key] for key in found}


@pytest.mark.shared_data
@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data")
def test_places_of_real_records_are_those_of_the_uncompressed_file() -> None:
    path = SHARED / "warc/aut/example.warc.gz"
    data = gzip.decompress(path.read_bytes())
    reading = read_all(list_inputs([path]))
    assert len(reading.documents) == 130
    for document in reading.documents:
        start = document["source_offset"]
        found = data[start : start + document["source_length"]]
        assert found.startswith(b"WARC/0.17\r\n")
        assert document["record_id"].encode() in found[:1000]
