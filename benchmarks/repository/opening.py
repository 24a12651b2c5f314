"""Opening the newest version, with all that a sample order needs, on a folder and on S3."""

from __future__ import annotations

import statistics
import time
from typing import Any

from synthetic import made_versions

from datapipe.dataset import Repository
from tiering.store import open_store
from tiering.testing import Fault, FaultProxy, S3Server

__all__ = ["measure_opening", "spread"]

LATENCY_SECONDS = 0.2
MOST_BY_PROXY = 1_000
"""Shards up to which times through the proxy, which holds bodies in memory, mean something."""


def measure_opening(
    folder: str, server: S3Server, *, sizes: list[int], runs: int
) -> list[dict[str, Any]]:
    """Returns a row a size and store."""
    rows = []
    for made in made_versions(folder, server, sizes=sizes, what="opening"):
        url, num_shards = made.url, made.num_shards
        times = [_open_ms(url, num_shards, made.options) for _ in range(runs)]
        counted = _count(url, num_shards, server) if made.store == "S3" else {}
        rows.append({"store": made.store, "shards": num_shards, "ms": spread(times), **counted})
    return rows


def _open_ms(url: str, num_shards: int, options: dict[str, Any]) -> float:
    store = open_store(url, **options).blocking()
    if options:
        store.head("format.json")  # connecting is another question
    start = time.perf_counter()
    dataset = Repository.over(store).open()
    tokens = dataset.shards("web").num_tokens
    elapsed = 1000 * (time.perf_counter() - start)
    assert len(tokens) == num_shards
    assert int(tokens.sum()) == dataset.sources[0].num_tokens
    return elapsed


def _count(url: str, num_shards: int, server: S3Server) -> dict[str, Any]:
    """Returns requests, and round trips: how much longer it takes when each takes longer."""
    with FaultProxy(server.url) as proxy:
        options = server.options(url=proxy.url)
        plain = min(_open_ms(url, num_shards, options) for _ in range(3))
        requests = len(proxy.seen) // 3 - 1  # the first of each is the connection's
        if num_shards > MOST_BY_PROXY:
            return {"requests": requests}
        proxy.fail(Fault(latency_seconds=LATENCY_SECONDS))
        late = min(_open_ms(url, num_shards, options) for _ in range(3))
    return {"requests": requests, "round_trips": round((late - plain) / 1000 / LATENCY_SECONDS, 1)}


def spread(times: list[float]) -> dict[str, float]:
    return {
        "min": round(min(times), 2),
        "median": round(statistics.median(times), 2),
        "max": round(max(times), 2),
    }
