"""HTTP responses as crawlers store them: status, header, body, and what was done to the body.

Stored bodies are often not what their header says: a crawler may have undone the encodings and
kept the header. So a body that isn't encoded as it says is taken as it is.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

import zstandard

from datapipe.errors import FailedError
from datapipe.read.header_fields import HeaderFields

__all__ = ["HttpResponse", "PayloadError", "dechunked", "decoded_body", "parse_response"]

_STATUS = re.compile(rb"[A-Za-z]{2,10}(?:/[\d.]*)?[ \t]+(\d{3})(?!\d)")
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\n]*)?\r?\n")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
"""Bytes that compressed data has and text hasn't."""
_PIECE_BYTES = 1 << 20


class PayloadError(Exception):
    """A payload can't be had; `error` is the class that is counted. Never leaves the package."""

    def __init__(self, error: str, detail: str) -> None:
        super().__init__(detail)
        self.error = error
        self.detail = detail


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpResponse:
    """A response, its body as stored."""

    status: int
    headers: HeaderFields
    body: bytes


def parse_response(block: bytes) -> HttpResponse:
    """Returns the response that a block holds. Raises: PayloadError: it holds none."""
    found = _STATUS.match(block)
    if not found:
        raise PayloadError("invalid_http", "the record doesn't start with an HTTP status line")
    end = _BLANK_LINE.search(block)
    head, body = (block[: end.start()], block[end.end() :]) if end else (block, b"")
    headers = HeaderFields(head.partition(b"\n")[2])
    return HttpResponse(status=int(found[1]), headers=headers, body=body)


def decoded_body(response: HttpResponse, *, max_bytes: int, is_cut: bool = False) -> bytes:
    """Returns the body without transfer and content encodings.

    Args:
        response: see `parse_response`.
        max_bytes: of the body, unpacked.
        is_cut: whether its end may be missing.

    Raises:
        PayloadError: it is damaged or larger.
        FailedError: it is compressed with Brotli, and the library for that isn't installed.
    """
    body = response.body
    if "chunked" in response.headers.get(b"transfer-encoding").lower():
        body = dechunked(body)
    encodings = response.headers.get(b"content-encoding").lower()
    if not encodings:
        return body
    for name in reversed([name.strip() for name in encodings.split(",")]):
        if name in _UNPACK and body:
            body = _unpacked(body, name, max_bytes=max_bytes, is_cut=is_cut)
    return body


def dechunked(body: bytes) -> bytes:
    """Returns what is in the chunks; of what isn't chunks (any more), the bytes as they are."""
    parts: list[bytes] = []
    position = 0
    while found := _SIZE.match(body, position):
        size = int(found[1], 16)
        if not size:
            return b"".join(parts)
        parts.append(body[found.end() : found.end() + size])
        position = found.end() + size
        position += body.startswith(b"\r", position)
        position += body.startswith(b"\n", position)
    return b"".join([*parts, body[position:]])


def _unpacked(body: bytes, name: str, *, max_bytes: int, is_cut: bool) -> bytes:
    problem = f"the payload ends inside its {name} data"
    try:
        content, is_whole = _UNPACK[name](body, max_bytes)
    except (zlib.error, zstandard.ZstdError, _BrotliError) as error:
        content, is_whole, is_cut = b"", False, False
        problem = f"the payload isn't the {name} that it says it is: {error}"
    if len(content) > max_bytes:
        detail = f"the payload unpacks to more than {max_bytes:,} bytes"
        raise PayloadError("record_too_large", detail)
    if is_whole or is_cut:
        return content
    if _CONTROL.search(body, 0, 1024):
        raise PayloadError("invalid_payload", problem)
    return body


class _BrotliError(Exception):
    pass


def _unzlib(window_bits: int) -> Callable[[bytes, int], tuple[bytes, bool]]:
    def unpack(body: bytes, max_bytes: int) -> tuple[bytes, bool]:
        content = bytearray()
        while True:
            state = zlib.decompressobj(window_bits)
            content += state.decompress(body, max_bytes + 1 - len(content))
            body = state.unused_data
            if len(content) > max_bytes or not state.eof:
                return bytes(content), len(content) > max_bytes
            if not body.startswith(b"\x1f\x8b"):
                return bytes(content), True

    return unpack


def _inflate(body: bytes, max_bytes: int) -> tuple[bytes, bool]:
    """Undoes `deflate`, which servers take for zlib or for the bare format."""
    try:
        return _unzlib(zlib.MAX_WBITS)(body, max_bytes)
    except zlib.error:
        return _unzlib(-zlib.MAX_WBITS)(body, max_bytes)


def _unzstd(body: bytes, max_bytes: int) -> tuple[bytes, bool]:
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
        body, read_across_frames=True
    )
    content = bytearray()
    while len(content) <= max_bytes and (piece := reader.read(_PIECE_BYTES)):
        content += piece
    return bytes(content), True


def _unbrotli(body: bytes, max_bytes: int) -> tuple[bytes, bool]:
    if find_spec("brotli") is None:
        raise FailedError(
            "a response is compressed with Brotli, which can't be read without the package "
            "brotli; nothing was committed; pip install 'datapipe-train[build]'"
        )
    import brotli

    decoder = brotli.Decompressor()
    content = bytearray()
    try:
        content += decoder.process(body, output_buffer_limit=_PIECE_BYTES)
        while len(content) <= max_bytes and not decoder.can_accept_more_data():
            content += decoder.process(b"", output_buffer_limit=_PIECE_BYTES)
    except brotli.error as error:
        raise _BrotliError(str(error)) from error
    return bytes(content), decoder.is_finished() or len(content) > max_bytes


_UNPACK: Mapping[str, Callable[[bytes, int], tuple[bytes, bool]]] = {
    "gzip": _unzlib(16 + zlib.MAX_WBITS),
    "x-gzip": _unzlib(16 + zlib.MAX_WBITS),
    "deflate": _inflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
