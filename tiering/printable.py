"""The one place that turns a URL, or a text that may hold some, into what may be printed.

Credentials hide in user info, in queries (signatures, tokens) and in fragments; all three go.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

__all__ = ["has_secret", "printable_reason", "printable_text", "printable_url", "printable_urls"]

_SHORTEST = 4
"""Shorter parts of a URL aren't looked for in texts: they are in words as well."""

_LINK = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.-]*:)")
_WHOLE = re.compile(r"([A-Za-z][\w+.-]*:/{1,2})(.*)", re.DOTALL)
# User info may hold quotes. One slash is what `pathlib` leaves of two.
_URL = re.compile(r"[A-Za-z][\w+.-]+:/{1,2}(?:[^\s/?#@]*@)?[^\s\"'<>]*")
_SECRET = re.compile(
    r"(?i)\b(authorization|x-amz-security-token|sig|signature|token|secret(?:[_-]?access)?[_-]?key"
    r"|password)(\"?\s*[:=]\s*\"?)([^\s\"',;&<>]+)"
)


_SECRET_PARAMETER = re.compile(
    r"(?i)(?:^|[?&;#])[\w.-]*(?:sig|signature|token|secret|password|credential|key)=[^&;]"
)


def has_secret(text: str) -> bool:
    """Tells whether a URL in a text holds what gives access: user info, a signature, a token."""
    for found in _URL.finditer(text):
        for link in _LINK.split(found[0]):
            whole = _WHOLE.fullmatch(link)
            info, rest = _user_info_and_rest(whole[2]) if whole else ("", "")
            is_login = bool(info) and (":" in info or link.lower().startswith("http"))
            if is_login or _SECRET_PARAMETER.search(rest):
                return True
    return False


def printable_url(url: str) -> str:
    """Returns a URL without user info, query and fragment, and without a slash at the end.

    A chained one (`a::b://c`) in all its links; what is no URL as it is.
    """
    return "::".join(_printable_link(link) for link in _LINK.split(url))


def printable_urls(text: str) -> str:
    """Returns a text with every URL in it printable."""
    return _URL.sub(lambda found: printable_url(found[0]), text)


def printable_text(text: str) -> str:
    """Returns a text with every URL in it printable, and what looks like a secret left out."""
    return _SECRET.sub(r"\1\2***", printable_urls(text))


def printable_reason(text: str, *, url: str) -> str:
    """Returns what a library says about a URL, without any of the URL's secrets."""
    text = printable_text(text)
    for secret in _secrets(url):
        text = text.replace(secret, "***")
    return text


def _printable_link(url: str) -> str:
    whole = _WHOLE.fullmatch(url)
    if whole is None:
        return url
    start, rest = whole.groups()
    rest = _user_info_and_rest(rest)[1]
    return start + re.split(r"[?#]", rest, maxsplit=1)[0].rstrip("/")


def _user_info_and_rest(rest: str) -> tuple[str, str]:
    """Takes what stands behind a URL's scheme apart; /, ? or # in user info may be unescaped."""
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in host:
        info = host.rpartition("@")[0]
        return info, rest[len(info) + 1 :]
    _, colon, port = ("", "", "") if host.startswith("[") else host.rpartition(":")
    if colon and "@" in rest:
        info, _, rest = rest.rpartition("@")
        return info, rest
    if colon and not port.isdecimal():
        return rest, "***"
    return "", rest


def _secrets(url: str) -> list[str]:
    """Returns the parts of a URL that aren't printed, the longest first, escaped and not."""
    found: set[str] = set()
    for link in _LINK.split(url):
        whole = _WHOLE.fullmatch(link)
        info, rest = _user_info_and_rest(whole[2]) if whole else ("", "")
        end = re.split(r"[?#]", rest, maxsplit=1)[1:]
        found |= {*info.split(":"), *re.split(r"[?#&;=]", "".join(end))}
    found |= {unquote(part) for part in found}
    return sorted((part for part in found if len(part) >= _SHORTEST), key=len, reverse=True)
