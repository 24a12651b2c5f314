"""What each kind of personal data looks like: candidates by pattern, then checked.

A finder yields (start, end) in code points. All take time proportional to the text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from datapipe.clean.pii.checksums import iban_end, is_card
from datapipe.clean.pii.secrets import MAY_BE_SECRET, secrets

__all__ = ["FINDERS", "Finder", "Span"]

Span: TypeAlias = tuple[int, int]


class Finder(NamedTuple):
    """One kind of personal data."""

    may_hold: str
    """RE2 pattern that every text with such data matches: the others are never looked at."""
    find: Callable[[str], Iterator[Span]]


_LATIN = "A-Za-z0-9\u00c0-\u024f"
_LOCAL = re.compile(rf"[{_LATIN}_](?:[{_LATIN}._%+'-]{{0,62}}[{_LATIN}_+-])?\Z")
_DOMAIN = re.compile(
    rf"(?:[{_LATIN}](?:[{_LATIN}-]{{0,61}}[{_LATIN}])?\.){{1,8}}([A-Za-z]{{2,24}})(?![{_LATIN}_-])"
)
_LOCAL_CHARS = 64
_NO_DOMAINS = frozenset(
    [
        "png",
        "jpg",
        "jpeg",
        "gif",
        "svg",
        "webp",
        "ico",
        "css",
        "js",
        "ts",
        "json",
        "html",
        "md",
        "py",
        "txt",
    ]
)
"""Ends of file names: icon@2x.png is no address."""


def _emails(text: str) -> Iterator[Span]:
    at = text.find("@")
    free = 0  # behind the last address
    while at >= 0:
        local = _LOCAL.search(text, max(free, at - _LOCAL_CHARS), at)
        domain = _DOMAIN.match(text, at + 1)
        if (
            local
            and domain
            and ".." not in local[0]
            and domain[1].lower() not in _NO_DOMAINS
            and not (local[0] == "git" and text[domain.end() : domain.end() + 1] == ":")
        ):
            yield local.start(), domain.end()
            free = domain.end()
        at = text.find("@", at + 1)


_IPV4 = re.compile(
    r"(?<![\w.\-+/])(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(:\d{1,5}\b|/\d{1,2}\b)?(?![\w-]|\.\d)"
)
_VERSION = re.compile(
    r"(?:version|release|build|revision|rev|ver|firmware|upgrade|section|chapter|figure|table|clause)"
    r"s?[\s.:=#-]{0,3}\Z",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"(?:\bip|addr|address|host|server|ping|from|client|dns|gateway|subnet|proxy|router)\w{0,3}"
    r"[^\w\n]{0,4}(?:is |was |at )?\Z",
    re.IGNORECASE,
)
_CONTEXT_CHARS = 24
_NUMBERING = 32
"""Four numbers that are all smaller look like those of versions and sections."""


def _ipv4(text: str) -> Iterator[Span]:
    for found in _IPV4.finditer(text):
        numbers = [int(found[i]) for i in range(1, 5)]
        if any(found[i][0] == "0" and found[i] != "0" for i in range(1, 5)):
            continue
        if max(numbers) > 255 or not ipaddress.IPv4Address(bytes(numbers)).is_global:
            continue
        before = text[max(0, found.start() - _CONTEXT_CHARS) : found.start()]
        if _VERSION.search(before):
            continue
        if max(numbers) < _NUMBERING and not found[5] and not _ADDRESS.search(before):
            continue
        yield found.start(), found.end(4)


_IPV6 = re.compile(r"(?<![\w:.])[23][0-9A-Fa-f]{3}:[0-9A-Fa-f:]{2,40}(?![\w:])")


def _ipv6(text: str) -> Iterator[Span]:
    """Yields global unicast addresses, 2000::/3: others are nobody's."""
    for found in _IPV6.finditer(text):
        try:
            address = ipaddress.IPv6Address(found[0])
        except ValueError:
            continue
        if address.is_global:
            yield found.span()


_PHONE = re.compile(
    r"(?<![\w+.])(?:\+|(?<!\d )00(?=[1-9]))[1-9](?:[ \u00a0.\-/()]{0,3}\d){7,14}(?![\w-])"
    r"|(?<![\w+.\-/])(?:\+?1[-. ])?(?:\([2-9]\d\d\) ?|[2-9]\d\d([-. ]))[2-9]\d\d[-. ]\d{4}"
    r"(?![\w-]|[./]\d)"
)
_PHONE_DIGITS = range(8, 16)


def _phones(text: str) -> Iterator[Span]:
    """Yields numbers with a country's code, and those of North America with their separators."""
    for found in _PHONE.finditer(text):
        if sum(map(str.isdigit, found[0])) in _PHONE_DIGITS:
            yield found.span()


_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d\d[ A-Z0-9]{11}")


def _ibans(text: str) -> Iterator[Span]:
    for found in _IBAN.finditer(text):
        end = iban_end(text, found.start())
        if end is not None:
            yield found.start(), end


_CARD = re.compile(r"(?<![\w.,+-])[2-6]\d{3}(?:([ -]?)\d{2,6}(?:\1\d{3,5}){1,3})(?![\w-]|[.,]\d)")


def _cards(text: str) -> Iterator[Span]:
    for found in _CARD.finditer(text):
        if is_card(found[0].replace(" ", "").replace("-", "")):
            yield found.span()


FINDERS: Mapping[str, Finder] = {
    "secrets": Finder(MAY_BE_SECRET, secrets),
    "email": Finder(r"[^\s@]@[^\s@]", _emails),
    "iban": Finder(r"[A-Z]{2}[0-9]{2}[ A-Z0-9]{11}", _ibans),
    "card": Finder(r"[2-6][0-9]{3}[ -]?[0-9]{2}", _cards),
    "ipv6": Finder(r"[23][0-9A-Fa-f]{3}:[0-9A-Fa-f:]{2}", _ipv6),
    "ipv4": Finder(r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]", _ipv4),
    "phone": Finder(
        r"(\+|00)[1-9][0-9 \x{A0}.\-/()]{7}|[0-9]{3}\)? ?[-. ]?[0-9]{3}[-. ][0-9]{4}", _phones
    ),
}
"""By kind; where two kinds overlap, the one that begins first counts, then the one listed first."""
