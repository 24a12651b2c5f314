"""What a payload is: by the type that came with it, or by its first bytes."""

from __future__ import annotations

import re

__all__ = ["HTML", "PLAIN", "charset_parameter", "is_html", "text_type"]

HTML = "text/html"
PLAIN = "text/plain"

_KINDS = {HTML: HTML, "application/xhtml+xml": HTML, PLAIN: PLAIN}
_SAYS_NOTHING = {"", "application/octet-stream", "application/unknown", "unknown/unknown", "*/*"}
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.{0,2000}?-->\s*)*"
    rb"<(?:!doctype html|html|head|body|script|iframe|title|meta|h1|div|table|style)[\s>]",
    re.IGNORECASE | re.DOTALL,
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,]+)", re.IGNORECASE)


def text_type(content_type: str | None, identified: str | None, payload: bytes) -> str | None:
    """Returns HTML or PLAIN, None for a payload that is neither.

    Args:
        content_type: as the server sent it.
        identified: what the crawler found it to be.
        payload: it; looked at where neither says anything.
    """
    for given in (content_type, identified):
        name = (given or "").partition(";")[0].strip().lower()
        if name not in _SAYS_NOTHING:
            return _KINDS.get(name)
    return HTML if is_html(payload) else None


def is_html(payload: bytes) -> bool:
    """Tells whether what starts so is HTML by the look of it."""
    return bool(_HTML_START.match(payload[:4096]))


def charset_parameter(content_type: str | None) -> str | None:
    """Returns the charset that a content type names."""
    found = _CHARSET.search(content_type or "")
    return found[1] if found else None
