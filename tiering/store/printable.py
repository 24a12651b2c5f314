"""The one place that turns a URL, or a text that may hold some, into what may be printed.

Credentials hide in user info, in queries (signatures, tokens) and in fragments; all three go.
"""

from __future__ import annotations

import re

__all__ = ["printable_text", "printable_url"]

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)([^\s\"'<>]*)")
_SECRET = re.compile(
    r"(?i)\b(authorization|x-amz-security-token|sig|signature|token|secret(?:[_-]?access)?[_-]?key"
    r"|password)(\"?\s*[:=]\s*\"?)([^\s\"',;&<>]+)"
)


def printable_url(url: str) -> str:
    """Returns a URL without user info, query and fragment, and without a slash at the end."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    host, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    host = host.rpartition("@")[2]
    return f"{scheme}://{(host + slash + path).rstrip('/')}"


def printable_text(text: str) -> str:
    """Returns a text with every URL in it printable, and what looks like a secret left out."""
    text = _URL.sub(lambda found: printable_url(found[0]), text)
    return _SECRET.sub(r"\1\2***", text)
