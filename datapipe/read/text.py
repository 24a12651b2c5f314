"""Files of text or HTML to documents: a file is a document; one that can't be is quarantined."""

from __future__ import annotations

from collections.abc import Iterator

from datapipe.documents import batch_from_columns
from datapipe.read.charsets import decoded_page
from datapipe.read.damage import HEAD_LIMIT_BYTES, RAW_LIMIT_BYTES, Fault, StreamDamage
from datapipe.read.formats import is_binary
from datapipe.read.media_types import HTML
from datapipe.read.results import Origin, ReadResult, rest_of_file

__all__ = ["read_text"]


def read_text(
    chunks: Iterator[bytes], *, origin: Origin, max_record_bytes: int, is_html: bool = False
) -> Iterator[ReadResult]:
    """Yields the one document of a file; of a file without a byte, nothing.

    Text is UTF-8, or UTF-16 if a byte order mark says so; the mark isn't part of the text. HTML is
    of any charset (see `charsets`). Garbage behind a compressed file is quarantined beside the
    document.
    """
    data = bytearray()
    length = 0
    damage: StreamDamage | None = None
    try:
        for chunk in chunks:
            length += len(chunk)
            data += chunk if len(data) <= max_record_bytes else b""
    except StreamDamage as caught:
        damage = caught
    if damage is not None and damage.error != "trailing_garbage":
        rest = rest_of_file(damage, offset=0, beginning=bytes(data), length=length)
        yield origin.result(faults=[rest], truncated=True)
        return
    if length:
        yield _document(bytes(data), length, origin, max_record_bytes, is_html=is_html)
    if damage is not None:
        rest = rest_of_file(damage, offset=length, beginning=b"", length=0)
        yield origin.result(faults=[rest], truncated=True)


def _document(
    data: bytes, length: int, origin: Origin, max_record_bytes: int, *, is_html: bool
) -> ReadResult:
    if length > max_record_bytes:
        detail = f"the file has {length:,} bytes, {max_record_bytes:,} are allowed in one document"
        return _refused(data, length, origin=origin, error="record_too_large", detail=detail)
    if is_binary(data):
        detail = f"the file isn't text: byte {data.index(0)} is NUL"
        return _refused(data, length, origin=origin, error="binary_file", detail=detail)
    try:
        text = decoded_page(data) if is_html else _decoded(data)
    except UnicodeDecodeError as error:
        detail = f"byte {error.start} of the file isn't {error.encoding}: {error.reason}"
        return _refused(data, length, origin=origin, error="invalid_utf8", detail=detail)
    batch = batch_from_columns(
        [text],
        source=origin.source,
        source_file=origin.source_file,
        offsets=[0],
        lengths=[length],
        licence=origin.licence,
        media_type=[HTML] if is_html else None,
    )
    return origin.result(batch)


def _decoded(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")


def _refused(data: bytes, length: int, *, origin: Origin, error: str, detail: str) -> ReadResult:
    limit = HEAD_LIMIT_BYTES if error == "binary_file" else RAW_LIMIT_BYTES
    fault = Fault(error=error, detail=detail, offset=0, length=length, raw=data[:limit])
    return origin.result(faults=[fault])
