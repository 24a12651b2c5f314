"""Records of a crawl to documents: which are text, and what text they are.

The text of an HTML page is its source. Responses that aren't 200, or whose payload is neither HTML
nor plain text, are dropped with a rule that says so; what isn't a response at all is no record.
"""

from __future__ import annotations

from dataclasses import dataclass

from datapipe.read.charsets import decoded_page
from datapipe.read.damage import RAW_LIMIT_BYTES
from datapipe.read.gathering import Gathered
from datapipe.read.http_message import PayloadError, decoded_body, parse_response
from datapipe.read.media_types import HTML, charset_parameter, text_type
from datapipe.read.records import Record, RecordError

__all__ = ["Capture", "WebGathering"]

_OK = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Capture:
    """What an archive says of one record."""

    offset: int
    length: int
    header: bytes
    block: bytes
    id: str | None
    url: str | None
    date: str | None
    language: str | None = None
    identified: str = ""
    """Media type that the crawler found."""
    is_cut: bool = False
    """The crawler kept the beginning of a longer payload."""


class WebGathering:
    """Takes captures into `gathered`."""

    def __init__(self, *, max_record_bytes: int) -> None:
        self.gathered = Gathered()
        self._max_record_bytes = max_record_bytes

    def add_http(self, capture: Capture, block: bytes) -> None:
        """Takes in an HTTP response."""
        try:
            response = parse_response(block)
        except PayloadError as error:
            self.refuse(capture, error.error, error.detail)
            return
        if response.status != _OK:
            status = float(response.status)
            self._drop(capture, "http_status", response.body, value=status, threshold=_OK)
            return
        content_type = response.headers.get(b"content-type")
        try:
            body = decoded_body(response, max_bytes=self._max_record_bytes, is_cut=capture.is_cut)
        except PayloadError as error:
            if text_type(content_type, capture.identified, b"") is None:
                self._drop(capture, "media_type", response.body)
            else:
                self.refuse(capture, error.error, error.detail)
            return
        self.add_payload(capture, body, content_type)

    def add_payload(self, capture: Capture, payload: bytes, content_type: str | None) -> None:
        """Takes in a payload as it is."""
        kind = text_type(content_type, capture.identified, payload)
        if kind is None:
            self._drop(capture, "media_type", payload)
            return
        text = decoded_page(payload, declared=charset_parameter(content_type), is_html=kind == HTML)
        record = Record(
            text=text,
            id=capture.id,
            url=capture.url,
            date=capture.date,
            language=capture.language,
        )
        self.gathered.add(record, offset=capture.offset, length=capture.length, media_type=kind)
        self.gathered.size_bytes += len(payload)

    def refuse(self, capture: Capture, error: str, detail: str) -> None:
        """Takes in a record that can't be read."""
        raw = (capture.header + capture.block[:RAW_LIMIT_BYTES])[:RAW_LIMIT_BYTES]
        self.gathered.refuse(
            raw, RecordError(error, detail), offset=capture.offset, length=capture.length
        )

    def pass_over(self) -> None:
        """Takes in that there is something that isn't content."""
        self.gathered.blank_lines += 1

    def _drop(
        self,
        capture: Capture,
        rule: str,
        payload: bytes,
        *,
        value: float | None = None,
        threshold: float | None = None,
    ) -> None:
        self.gathered.drop(
            rule,
            payload,
            offset=capture.offset,
            length=capture.length,
            id=capture.id,
            url=capture.url,
            value=value,
            threshold=threshold,
        )
