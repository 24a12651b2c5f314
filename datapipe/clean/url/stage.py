"""The stage `url_filter`: documents go for their address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import pyarrow as pa

from datapipe.clean.changes import Removal, without
from datapipe.clean.edits import Drop
from datapipe.clean.url.address import (
    Address,
    plain_host,
    plain_url,
    read_address,
    registered_domain,
)
from datapipe.clean.url.block_list import read_block_list
from datapipe.documents import StageResult

__all__ = ["UrlFilter", "UrlFilterOptions"]


@dataclass(frozen=True, kw_only=True, slots=True)
class UrlFilterOptions:
    """Which addresses go."""

    block_domains: str | None = None
    """File of registered domains; whatever lies below them goes."""
    block_hosts: str | None = None
    """File of hosts; they go, and so does what lies below them."""
    block_urls: str | None = None
    """File of URLs, compared without scheme, "www.", fragment and a last slash."""
    hard_words: Sequence[str] = ()
    """One of them as a word of the address is enough."""
    soft_words: Sequence[str] = ()
    max_soft_words: int = 1
    """More different ones, and the document goes."""
    parts: Sequence[str] = ()
    """One of them inside the address, without all but its letters and digits, is enough."""
    missing: Literal["keep", "drop"] = "keep"
    """Documents without an address, or with one that has no host."""


class UrlFilter:
    """Drops documents by lists of addresses and by words in them, in upper or lower case.

    Rules, in order: missing_url, blocked_url, blocked_host, blocked_domain, hard_word, soft_words,
    part. Words are runs of letters and digits of host, path and query, with %xx decoded.
    """

    name = "url_filter"
    version = 1

    def __init__(self, options: UrlFilterOptions | None = None) -> None:
        self._options = options or UrlFilterOptions()
        options = self._options
        self._urls = options.block_urls and read_block_list(options.block_urls, entry=plain_url)
        self._hosts = options.block_hosts and read_block_list(options.block_hosts, entry=plain_host)
        self._domains = options.block_domains and read_block_list(
            options.block_domains, entry=plain_host
        )
        self._domain_of = registered_domain() if self._domains else None
        self._hard = frozenset(word.lower() for word in options.hard_words)
        self._soft = frozenset(word.lower() for word in options.soft_words)
        self._parts = tuple(part.lower() for part in options.parts)

    @property
    def options(self) -> Mapping[str, object]:
        """All options, as JSON values."""
        listed = {name: [*getattr(self._options, name)] for name in _LISTS}
        return {**asdict(self._options), **listed}

    def apply(self, batch: pa.RecordBatch) -> StageResult:
        """Returns the documents whose addresses are let through."""
        removals = [
            Removal(row, *reason)
            for row, url in enumerate(batch.column("url").to_pylist())
            if (reason := self._reason(url)) is not None
        ]
        return StageResult(*without(batch, removals, stage=self.name))

    def _reason(self, url: str | None) -> Drop | None:
        address = read_address(url) if url else None
        if address is None:
            return Drop("missing_url") if self._options.missing == "drop" else None
        return self._listed(address) or self._worded(address)

    def _listed(self, address: Address) -> Drop | None:
        if self._urls and address.url in self._urls:
            return Drop("blocked_url")
        if self._hosts and any(parent in self._hosts for parent in address.parents):
            return Drop("blocked_host")
        if self._domains and self._domain_of and self._domain_of(address.host) in self._domains:
            return Drop("blocked_domain")
        return None

    def _worded(self, address: Address) -> Drop | None:
        if self._hard and not self._hard.isdisjoint(address.words):
            return Drop("hard_word")
        soft = len(self._soft.intersection(address.words))
        if soft > self._options.max_soft_words:
            return Drop("soft_words", soft, self._options.max_soft_words)
        joined = "".join(address.words) if self._parts else ""
        if any(part in joined for part in self._parts):
            return Drop("part")
        return None


_LISTS = ("hard_words", "soft_words", "parts")
