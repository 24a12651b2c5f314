from __future__ import annotations

import bz2
from collections.abc import Callable
from datetime import UTC, datetime
from xml.sax.saxutils import escape

import pytest

from datapipe.testing import Reading

Read = Callable[..., Reading]

HEAD = b"""<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="de">
  <siteinfo><sitename>Wikipedia</sitename><base>https://de.example.org/wiki/Haupt%20Seite</base>
  </siteinfo>
"""


def page(
    title: str,
    text: str | None,
    *,
    id: int = 1,
    ns: int = 0,
    redirect: bool = False,
    model: str = "text/x-wiki",
) -> bytes:
    target = '<redirect title="x" />' if redirect else ""
    body = "" if text is None else f'<text bytes="1" xml:space="preserve">{escape(text)}</text>'
    return (
        f"  <page><title>{escape(title)}</title><ns>{ns}</ns><id>{id}</id>{target}<revision>"
        f"<id>99</id><timestamp>2024-05-17T08:00:00Z</timestamp><format>{model}</format>"
        f"{body}</revision></page>\n"
    ).encode()


ONE = page("Über uns & mehr", "'''Eins''' <ref>a & b</ref>\n", id=7)
TWO = page("Zwei", "zwei", id=8)
END = b"</mediawiki>\n"
DUMP = HEAD + ONE + TWO + END


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("pages-articles.xml", DUMP),
        ("pages-articles.xml", b'<?xml version="1.0"?>\n' + DUMP),
        ("dump.xml.bz2", bz2.compress(DUMP)),
        (
            "multistream.xml.bz2",
            b"".join(map(bz2.compress, (HEAD, ONE, TWO, END))),
        ),
        ("dump", DUMP),
    ],
)
def test_a_page_is_a_document_of_wikitext(read: Read, name: str, data: bytes) -> None:
    reading = read(name, data)
    assert reading.texts == ["'''Eins''' <ref>a & b</ref>\n", "zwei"]
    assert (reading.errors, reading.truncated, reading.dropped) == ([], False, [])
    first = reading.documents[0]
    assert first["record_id"] == "7"
    assert first["url"] == "https://de.example.org/wiki/%C3%9Cber_uns_&_mehr"
    assert first["crawled_at"] == datetime(2024, 5, 17, 8, tzinfo=UTC)
    assert first["media_type"] == "text/x-wiki"


def test_places_are_those_of_the_pages(read: Read) -> None:
    for offset, length in read("a.xml", DUMP).places:
        found = DUMP[offset : offset + length]
        assert (found[:6], found[-7:]) == (b"<page>", b"</page>")


@pytest.mark.parametrize(
    ("other", "rule"),
    [
        (page("Talk:A", "a", ns=1), "namespace"),
        (page("A", "#REDIRECT [[B]]", redirect=True), "redirect"),
        (page("A.css", "a {}", model="text/css"), "media_type"),
    ],
)
def test_what_is_no_article_is_dropped_with_a_rule(read: Read, other: bytes, rule: str) -> None:
    reading = read("a.xml", HEAD + ONE + other + TWO + END)
    assert [(row["stage"], row["rule"]) for row in reading.dropped] == [("read", rule)]
    assert len(reading.texts) == 2


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (ONE.replace(b"</title>", b"</titel>"), "invalid_xml"),
        (ONE.replace(b"&amp;", b"&unknown;"), "invalid_xml"),
        (ONE.replace(b"Eins", b"\xff"), "invalid_xml"),
        (ONE.replace(b"</page>", b""), "invalid_xml"),
        (page("A", None), "invalid_xml"),
        (page("A", "a" * 3_000_000), "record_too_large"),
    ],
)
def test_a_bad_page_is_quarantined_and_its_neighbours_survive(
    read: Read, bad: bytes, error: str
) -> None:
    data = HEAD + TWO + bad + ONE + END
    reading = read("a.xml", data, max_record_bytes=1000)
    assert (len(reading.texts), reading.errors, reading.truncated) == (2, [error], False)
    (row,) = reading.quarantined
    assert data[row["source_offset"] :].startswith(row["raw"][:100])


def test_every_cut_gives_the_whole_pages_before_it(read: Read) -> None:
    ends = [offset + length for offset, length in read("a.xml", DUMP).places]
    for cut in range(20, len(DUMP) - 2):
        reading = read("a.xml", DUMP[:cut])
        assert len(reading.texts) == sum(end <= cut for end in ends), cut
        assert (reading.errors, reading.truncated) == (["truncated_xml"], True), cut


def test_entities_are_not_expanded(read: Read) -> None:
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
    data = b'<?xml version="1.0"?>' + bomb + HEAD + ONE.replace(b"Eins", b"&b;") + TWO + END
    reading = read("a.xml", data, declared="wikipedia")
    assert (reading.texts, reading.errors) == (["zwei"], ["invalid_xml"])


def test_a_dump_without_pages_is_no_record(read: Read) -> None:
    assert read("a.xml", HEAD + END) == Reading()
    assert read("a.xml", b"<other/>").texts == ["<other/>"]
