"""The parts of an address that a filter compares."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from datapipe.documents.libraries import optional_library

__all__ = ["Address", "plain_host", "plain_url", "read_address", "registered_domain"]

_WORD = re.compile(r"[^\W_]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class Address(NamedTuple):
    """A URL taken apart; all parts in lower case."""

    url: str
    """Without scheme, fragment, "www." and a slash at the end."""
    host: str
    """Without a port and a dot at the end."""
    words: tuple[str, ...]
    """Runs of letters and digits of host, path and query, in order."""

    @property
    def parents(self) -> list[str]:
        """The host and the domains that it lies in, longest first."""
        labels = self.host.split(".")
        return [".".join(labels[place:]) for place in range(len(labels))]


def read_address(url: str) -> Address | None:
    """Returns the parts of a URL, with or without a scheme; None: it has no host."""
    try:
        parts = urlsplit(url if _SCHEME.match(url) else f"http://{url.lstrip('/')}")
        host = plain_host(parts.hostname or "")
    except ValueError:  # a bracket without its partner
        return None
    if not host:
        return None
    rest = unquote(f"{parts.path}?{parts.query}")
    words = tuple(word.lower() for word in _WORD.findall(f"{host} {rest}"))
    return Address(plain_url(url), host, words)


def plain_host(host: str) -> str:
    """Returns a host's name as lists are compared: in lower case, international ones as xn--."""
    host = host.strip().lower().rstrip(".")
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


def plain_url(url: str) -> str:
    """Returns a URL as lists have it: scheme, "www.", fragment and a last slash don't count."""
    bare = _SCHEME.sub("", url.strip(), count=1).partition("#")[0]
    host, slash, path = bare.partition("/")
    return f"{plain_host(host).removeprefix('www.')}{slash}{path}".rstrip("/")


@lru_cache
def registered_domain() -> Callable[[str], str]:
    """Returns what gives a host's registered domain: "b.co.uk" of a.b.co.uk; itself if it has none.

    By the public suffix list (private section included) of the package publicsuffixlist.

    Raises:
        MissingExtraError: it isn't installed.
    """
    library = optional_library(
        "publicsuffixlist", stage="url_filter", package="publicsuffixlist", extra="build"
    )
    suffixes: Any = library.PublicSuffixList()

    @lru_cache(maxsize=10_000)
    def of(host: str) -> str:
        if not host or host.replace(".", "").isdigit() or ":" in host:
            return host
        return suffixes.privatesuffix(host) or host

    return of
