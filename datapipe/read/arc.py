"""ARC, the crawl archives before WARC: HTTP responses to documents, as WARC's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from datapipe.read.byte_source import ByteSource
from datapipe.read.damage import RAW_LIMIT_BYTES, Fault, StreamDamage
from datapipe.read.gathering import Gathered
from datapipe.read.results import Origin, ReadResult
from datapipe.read.web_records import Capture, WebGathering

__all__ = ["ARC", "read_arc"]

ARC = re.compile(rb"\s*filedesc:\S* \S+ \d{8,14} ")
"""How an archive begins."""

_HEADER = re.compile(
    rb"(?P<url>[A-Za-z][A-Za-z0-9+.-]*:[^\r\n]{1,20000}?) (?P<ip>[\d.:a-fA-F]+|\S+) "
    rb"(?P<date>\d{8,14}) (?P<type>\S+(?:; ?\S+)?)(?: [^\r\n]{1,2000}?)? (?P<length>\d{1,15})\r?\n"
)
_NEXT = re.compile(
    rb"(?<=\n)[A-Za-z][A-Za-z0-9+.-]{1,20}:[^\r\n ]{1,2000} [\d.]{7,15} \d{14} "
    rb"[^\r\n]{1,300} \d+\r?\n"
)
_HEADER_BYTES = 1 << 15
_BETWEEN = b"\r\n"
_NOT_WEB = ("filedesc:", "dns:", "whois:")


def read_arc(
    chunks: Iterator[bytes], *, origin: Origin, batch_bytes: int, max_record_bytes: int
) -> Iterator[ReadResult]:
    """Yields the documents of an ARC file. Arguments as `read_warc`."""
    source = ByteSource(chunks=chunks, ended=_truncated)
    web = WebGathering(max_record_bytes=max_record_bytes)
    while _record(source, web, max_record_bytes):
        if web.gathered.size_bytes >= batch_bytes:
            yield web.gathered.result(origin)
            web.gathered = Gathered()
    yield web.gathered.result(origin)


def _record(source: ByteSource, web: WebGathering, most: int) -> bool:
    """Takes the next record in; tells whether there may be another."""
    source.skip_any(_BETWEEN)
    offset = source.offset
    head = source.peek(_HEADER_BYTES)
    found = _HEADER.match(head)
    if found is None:
        return (bool(head) and _pass_over(source, web, offset)) or _end(source, web, offset, b"")
    header = source.take(found.end())
    length = int(found["length"])
    capture = Capture(
        offset=offset,
        length=len(header) + length,
        header=header,
        block=b"",
        id=None,
        url=found["url"].decode(errors="replace"),
        date=_date(found["date"].decode()),
    )
    if length > most:
        try:
            source.skip(length)
        except StreamDamage:
            return _end(source, web, offset, header)
        detail = f"the record has {capture.length:,} bytes, {most:,} are allowed"
        web.refuse(capture, "record_too_large", detail)
        return True
    block = source.peek(length)
    if len(block) < length:
        return _end(source, web, offset, header)
    source.take(length)
    kind = found["type"].decode("latin-1")
    if (capture.url or "").startswith(_NOT_WEB):
        web.pass_over()
    elif block.startswith((b"HTTP/", b"ICY ")):
        web.add_http(capture, block)
    else:
        web.add_payload(capture, block, kind)
    return True


def _pass_over(source: ByteSource, web: WebGathering, offset: int) -> bool:
    """Goes to what looks like the next record; tells whether there is one."""
    raw = source.search(_NEXT, overlap=3000)
    length = source.offset - offset
    if not source.peek(1) and source.damage is not None:
        source.put_back(raw if length == len(raw) else b"")
        return False
    detail = "the record isn't ARC: it has no header"
    web.gathered.faults.append(
        Fault(error="invalid_arc", detail=detail, offset=offset, length=length, raw=raw)
    )
    return bool(source.peek(1))


def _end(source: ByteSource, web: WebGathering, offset: int, header: bytes) -> bool:
    beginning = header + source.take_some(RAW_LIMIT_BYTES)
    while source.take_some(1 << 20):
        pass
    length = source.offset - offset
    damage = source.damage or (_truncated() if length and header else None)
    if damage is not None:
        web.gathered.end_with(damage, offset=offset, beginning=beginning, length=length)
    return False


def _truncated() -> StreamDamage:
    return StreamDamage("truncated_arc", "the file ends inside an ARC record", truncated=True)


def _date(digits: str) -> str | None:
    """Returns ISO 8601 of 14 digits; of fewer, their day."""
    day = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"
    return f"{day}T{digits[8:10]}:{digits[10:12]}:{digits[12:14]}Z" if len(digits) == 14 else day
