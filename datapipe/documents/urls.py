"""What the docmap keeps of a URL: a 64-bit hash to look it up by, and the host."""

from __future__ import annotations

from hashlib import blake2b
from urllib.parse import urlsplit

import pyarrow as pa

__all__ = ["domains", "url_hashes"]


def url_hashes(urls: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Returns the BLAKE2b-64 of each URL's UTF-8 bytes as uint64, little-endian; null of null."""
    return pa.array(
        [None if url is None else _hash(url) for url in urls.to_pylist()], type=pa.uint64()
    )


def domains(urls: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Returns the lower-case host name of each URL; null where there is none."""
    return pa.array([_host(url) for url in urls.to_pylist()], type=pa.string())


def _hash(url: str) -> int:
    return int.from_bytes(blake2b(url.encode(), digest_size=8).digest(), "little")


def _host(url: str | None) -> str | None:
    try:
        return urlsplit(url).hostname or None if url else None
    except ValueError:  # a bracket without its partner
        return None
