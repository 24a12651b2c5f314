"""WARC, WET and their kin to documents: responses, resources and conversions that are text."""

from __future__ import annotations

from collections.abc import Iterator

from datapipe.read.byte_source import ByteSource
from datapipe.read.damage import DAMAGE_ERRORS, RAW_LIMIT_BYTES, Fault
from datapipe.read.gathering import Gathered
from datapipe.read.http_message import PayloadError, dechunked, parse_response
from datapipe.read.results import Origin, ReadResult
from datapipe.read.warc_digests import is_digest_of
from datapipe.read.warc_records import WarcRecord, warc_records, warc_truncated
from datapipe.read.web_records import Capture, WebGathering

__all__ = ["read_warc"]

_CONTENT = {"response", "resource", "conversion"}
_NOT_WEB = ("dns:", "metadata:", "filedesc:", "whois:")


def read_warc(
    chunks: Iterator[bytes],
    *,
    start: int,
    origin: Origin,
    batch_bytes: int,
    max_record_bytes: int,
) -> Iterator[ReadResult]:
    """Yields the documents of a WARC file.

    Args:
        chunks: the uncompressed stream; it may go on behind damage (`StreamDamage.resumes`).
        start: where that begins in the file's stream, at a record.
        origin: what all records share.
        batch_bytes: about how many bytes of payload go into one batch.
        max_record_bytes: a longer record is quarantined.
    """
    source = ByteSource(chunks=chunks, ended=warc_truncated, start=start)
    web = WebGathering(max_record_bytes=max_record_bytes)
    for item in warc_records(source, max_record_bytes=max_record_bytes):
        if isinstance(item, Fault):
            web.gathered.faults.append(item)
            web.gathered.size_bytes += len(item.raw)
            web.gathered.truncated |= bool(DAMAGE_ERRORS.match(item.error))
        else:
            _take(item, web, max_record_bytes)
        if web.gathered.size_bytes >= batch_bytes:
            yield web.gathered.result(origin)
            web.gathered = Gathered()
    _end(source, web.gathered)
    yield web.gathered.result(origin)


def _end(source: ByteSource, gathered: Gathered) -> None:
    """Takes in what is left of a file that isn't whole."""
    offset = source.offset
    beginning = source.take_some(RAW_LIMIT_BYTES)
    while source.take_some(1 << 20):
        pass
    length = source.offset - offset
    if source.damage is not None:
        gathered.end_with(source.damage, offset=offset, beginning=beginning, length=length)
    elif length:
        gathered.end_with(warc_truncated(), offset=offset, beginning=beginning, length=length)


def _take(record: WarcRecord, web: WebGathering, max_record_bytes: int) -> None:
    headers = record.headers
    url = headers.get(b"warc-target-uri").strip("<> ") or None
    if record.type not in _CONTENT or (url or "").startswith(_NOT_WEB):
        web.pass_over()
        return
    capture = Capture(
        offset=record.offset,
        length=record.length,
        header=record.header_bytes,
        block=record.block or b"",
        id=headers.get(b"warc-record-id") or None,
        url=url,
        date=headers.get(b"warc-date") or None,
        language=_first(headers.get(b"warc-identified-content-language")),
        identified=headers.get(b"warc-identified-payload-type"),
        is_cut=b"warc-truncated" in headers,
    )
    if record.block is None:
        detail = f"the record has {record.length:,} bytes, {max_record_bytes:,} are allowed"
        web.refuse(capture, "record_too_large", detail)
    elif wrong := _wrong_digest(record, record.block):
        web.refuse(capture, "digest_mismatch", wrong)
    elif _is_http(record, record.block):
        web.add_http(capture, record.block)
    else:
        web.add_payload(capture, record.block, headers.get(b"content-type"))


def _first(languages: str) -> str | None:
    return languages.partition(",")[0].strip() or None


def _is_http(record: WarcRecord, block: bytes) -> bool:
    if record.type != "response":
        return False
    kind = record.headers.get(b"content-type").partition(";")[0].strip().lower()
    return kind == "application/http" or (not kind and block.startswith(b"HTTP/"))


def _wrong_digest(record: WarcRecord, block: bytes) -> str | None:
    """Returns which digest of a record isn't that of its bytes; None: none is known not to be.

    A right block digest settles it: tools differ in what they take for the payload.
    """
    expected = record.headers.get(b"warc-block-digest")
    found = is_digest_of(expected, block) if expected else None
    if found is not None:
        return None if found else f"its block isn't what WARC-Block-Digest says, {expected}"
    expected = record.headers.get(b"warc-payload-digest")
    if not expected or b"warc-truncated" in record.headers:
        return None
    if any(is_digest_of(expected, payload) is not False for payload in _payloads(record, block)):
        return None
    return f"its payload isn't what WARC-Payload-Digest says, {expected}"


def _payloads(record: WarcRecord, block: bytes) -> Iterator[bytes]:
    """Yields what may be meant by the payload: the body as stored, and without chunks."""
    if not _is_http(record, block):
        yield block
        return
    try:
        response = parse_response(block)
    except PayloadError:
        yield block
        return
    yield response.body
    if "chunked" in response.headers.get(b"transfer-encoding").lower():
        yield dechunked(response.body)
