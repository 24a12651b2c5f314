"""MediaWiki XML dumps (pages-articles) to documents: a page is a document, its wikitext the text.

Pages are found by their tags, for text in a dump is escaped, and each is parsed on its own: a bad
one costs itself, and no document type can be declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

from datapipe.read.byte_source import ByteSource
from datapipe.read.damage import StreamDamage
from datapipe.read.gathering import Gathered
from datapipe.read.records import Record, RecordError
from datapipe.read.results import Origin, ReadResult

__all__ = ["WIKITEXT", "WIKI_DUMP", "base_of", "dump_truncated", "read_wiki_dump", "wiki_pages"]

WIKI_DUMP = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<mediawiki[\s>]")
"""How a dump begins."""
WIKITEXT = "text/x-wiki"

_PAGE, _END = re.compile(rb"<page>"), re.compile(rb"</page>|<page>")
_BASE = re.compile(rb"<base>([^<]{1,500})</base>")
_CLOSED = b"</mediawiki>"
_TAG_BYTES = 8
_HEAD_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class WikiPage:
    """One page as it stands."""

    offset: int
    length: int
    raw: bytes
    """All of it; of one that is too long its beginning."""
    is_whole: bool


def dump_truncated() -> StreamDamage:
    """Returns that a dump ends before its end."""
    return StreamDamage("truncated_xml", "the file ends inside a page or dump", truncated=True)


def base_of(source: ByteSource) -> str:
    """Returns the address of the main page that a dump begins with; empty if it names none."""
    found = _BASE.search(source.peek(_HEAD_BYTES))
    return found[1].decode(errors="replace") if found else ""


def wiki_pages(source: ByteSource, *, keep: int) -> Iterator[WikiPage]:
    """Yields the pages; the last one may not be whole. Of each the first `keep` bytes are there."""
    while True:
        between = source.search(_PAGE, overlap=_TAG_BYTES)
        if not source.peek(1):
            yield WikiPage(offset=source.offset, length=0, raw=b"", is_whole=_CLOSED in between)
            return
        offset = source.offset
        raw = source.take(len("<page>")) + source.search(_END, overlap=_TAG_BYTES, keep=keep)
        is_whole = bool(source.peek(1))
        if source.peek(2) == b"</":
            raw += source.take(len("</page>"))
        yield WikiPage(offset=offset, length=source.offset - offset, raw=raw, is_whole=is_whole)
        if not is_whole:
            return


def read_wiki_dump(
    chunks: Iterator[bytes],
    *,
    start: int,
    base: str | None,
    origin: Origin,
    batch_bytes: int,
    max_record_bytes: int,
) -> Iterator[ReadResult]:
    """Yields the documents of a dump.

    Args:
        chunks: the uncompressed stream.
        start: where that begins in the file's stream.
        base: of a stretch, the address of the wiki's main page; None: the stream says it.
        origin: what all records share.
        batch_bytes: about how many bytes of pages go into one batch.
        max_record_bytes: a longer page is quarantined.
    """
    source = ByteSource(chunks=chunks, ended=dump_truncated, start=start)
    is_stretch = base is not None
    base = base if base is not None else base_of(source)
    gathered = Gathered()
    for page in wiki_pages(source, keep=max_record_bytes):
        if not page.is_whole and (page.length or not is_stretch):
            gathered.end_with(
                source.damage or dump_truncated(),
                offset=page.offset,
                beginning=page.raw,
                length=page.length,
            )
        elif page.length:
            _add(page, base, gathered, max_record_bytes)
        if gathered.size_bytes >= batch_bytes:
            yield gathered.result(origin)
            gathered.clear()
    yield gathered.result(origin)


def _add(page: WikiPage, base: str | None, gathered: Gathered, most: int) -> None:
    gathered.size_bytes += len(page.raw)
    if page.length > most:
        detail = f"the page has {page.length:,} bytes, {most:,} are allowed"
        gathered.refuse(
            page.raw,
            RecordError("record_too_large", detail),
            offset=page.offset,
            length=page.length,
        )
        return
    try:
        _take(ElementTree.fromstring(page.raw), page, base, gathered)
    except (ElementTree.ParseError, ValueError) as error:
        detail = f"the page isn't XML: {error}"
        gathered.refuse(page.raw, RecordError("invalid_xml", detail), offset=page.offset)


def _take(found: ElementTree.Element, page: WikiPage, base: str | None, gathered: Gathered) -> None:
    title = found.findtext("title") or ""
    namespace = found.findtext("ns") or "0"
    id, url = found.findtext("id"), _url(base, title)
    revision = found.find("revision")
    text = revision.findtext("text") if revision is not None else None
    kind = revision.findtext("format") if revision is not None else None
    rule = None
    if namespace != "0":
        rule = "namespace"
    elif found.find("redirect") is not None:
        rule = "redirect"
    elif kind not in (None, WIKITEXT):
        rule = "media_type"
    if rule is not None:
        gathered.drop(
            rule,
            (text or "").encode(),
            offset=page.offset,
            length=page.length,
            id=id,
            url=url,
            value=float(namespace) if rule == "namespace" else None,
        )
        return
    if revision is None or revision.find("text") is None:
        raise ValueError("it has no text")
    record = Record(
        text=text or "", id=id, url=url, date=revision.findtext("timestamp"), language=None
    )
    gathered.add(record, offset=page.offset, length=page.length, media_type=WIKITEXT)


def _url(base: str | None, title: str) -> str | None:
    if not base or not title:
        return None
    parts = urlsplit(base)
    folder = parts.path.rsplit("/", 1)[0]
    name = quote(title.replace(" ", "_"), safe="/:@!$&'()*+,;=~-._")
    return f"{parts.scheme}://{parts.netloc}{folder}/{name}"
