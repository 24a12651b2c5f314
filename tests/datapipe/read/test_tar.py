from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.testing import Reading

Read = Callable[..., Reading]


def tar(members: list[tuple[str, bytes]], *, format: int = tarfile.USTAR_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


META = json.dumps({"url": "http://a", "caption": "not the text", "date": "2024-05-17"}).encode()
MEMBERS = [
    ("a/0001.txt", "eins é".encode()),
    ("a/0001.json", META),
    ("a/0001.jpg", b"\xff\xd8"),
    ("a/0002.jpg", b"\xff\xd8"),
    ("a/0003.html", b"<p>drei"),
    ("a/0004.json", b'{"text": "vier", "id": "4th"}'),
    ("a/0005.jsonl", b'{"text": "five"}\n\n{"text": "six"}\r\nbad\n'),
]
TEXTS = ["eins é", "<p>drei", "vier", "five", "six"]


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_sample_is_a_document(read: Read, format: int, pack: Callable[[bytes], bytes]) -> None:
    data = tar(MEMBERS, format=format)
    reading = read("shard-000000.tar", pack(data))
    assert (reading.texts, reading.errors) == (TEXTS, ["invalid_json"])
    assert (reading.blank_lines, reading.truncated) == (1, False)
    assert [d["record_id"] for d in reading.documents] == ["a/0001", "a/0003", "4th", None, None]
    first = reading.documents[0]
    assert (first["url"], str(first["crawled_at"])[:10]) == ("http://a", "2024-05-17")
    assert [d["media_type"] for d in reading.documents][:2] == [None, "text/html"]
    for (offset, length), text in zip(reading.places, TEXTS, strict=True):
        assert text.encode() in data[offset : offset + length]


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_and_foreign_names_are_keys(read: Read, format: int) -> None:
    name = "é" * 60 + "/" + "x" * 90
    reading = read("a.tar", tar([(name + ".txt", b"a")], format=format))
    assert [d["record_id"] for d in reading.documents] == [name]


@pytest.mark.parametrize("data", [tar([]), b"\0" * 10240])
def test_an_archive_without_texts_is_no_record(read: Read, data: bytes) -> None:
    assert read("a.tar", data, declared="tar") == Reading()


def test_a_bad_member_is_quarantined_and_its_neighbours_survive(read: Read) -> None:
    members = [
        ("1.txt", b"one"),
        ("2.txt", b"\xff"),
        ("3.json", b"{"),
        ("4.txt", b"x" * 999),
        ("5.json", b'{"no": "text"}'),
        ("6.txt", b"six"),
    ]
    reading = read("a.tar", tar(members), max_record_bytes=500)
    assert reading.texts == ["one", "six"]
    assert reading.errors == ["invalid_utf8", "invalid_json", "record_too_large", "text_missing"]


def test_every_cut_gives_the_whole_members_before_it(read: Read) -> None:
    data = tar([("1.txt", b"one"), ("2.txt", b"two")])
    for cut in range(512, 2600, 7):
        reading = read("a.tar", data[:cut], declared="tar")
        assert reading.texts == ["one", "two"][: len(reading.texts)]
        assert set(reading.errors) <= {"truncated_tar"}
        assert bool(reading.errors) == reading.truncated
        assert len(reading.texts) == 2 or cut < 2600


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_wherever_bits_flip_nothing_raises(read: Read, data: st.DataObject) -> None:
    broken = bytearray(tar(MEMBERS))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, 512 * 16))
        broken[place] ^= 1 << data.draw(st.integers(0, 7))
    read("a.tar", bytes(broken), declared="tar")
