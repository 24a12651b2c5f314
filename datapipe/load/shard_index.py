"""All shards that a stream reads under one flat number, with what a gather must know of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datapipe.dataset import Dataset
from datapipe.dataset.objects import to_repair
from datapipe.dataset.parts import Int64s, SourceParts
from tiering.checksums import BLOCK_BYTES

__all__ = ["ShardIndex"]


class ShardIndex:
    """Flat shard numbers: the shards of source 0, then those of source 1, ...

    8 bytes a shard for each of three columns; nothing is opened here.
    """

    def __init__(self, parts: Sequence[SourceParts], *, datasets: Sequence[Dataset]) -> None:
        """Raises DamagedError or DatasetError where a dataset's shard tables can't be read."""
        self.datasets, self.parts = list(datasets), list(parts)
        counts = [part.num_shards for part in parts]
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        "Flat number of each source's first shard, and one after the last: [sources + 1]."
        self.token_bytes = self.datasets[0].token_dtype.itemsize
        self.num_tokens = np.concatenate([part.num_tokens(self.datasets) for part in parts])
        "Tokens of each shard."
        blocks = -(-self.num_tokens * self.token_bytes // BLOCK_BYTES)
        self.first_block = np.concatenate([[0], np.cumsum(blocks)]).astype(np.int64)
        "Number of each shard's first block among all blocks, and one after the last."

    @property
    def num_shards(self) -> int:
        """Shards of all sources."""
        return int(self.first[-1])

    def tokens_by_source(self) -> dict[str, Int64s]:
        """Returns the tokens of each shard by source name; no copies."""
        bounds = self.first.tolist()
        return {
            part.name: self.num_tokens[first:end]
            for part, first, end in zip(self.parts, bounds[:-1], bounds[1:], strict=True)
        }

    def flat(self, source: Int64s, shard: Int64s) -> Int64s:
        """Returns the flat numbers of shards of the order's sources."""
        return np.asarray(self.first[source] + shard)

    def size(self, flat: int) -> int:
        """Returns the raw bytes of a shard."""
        return int(self.num_tokens[flat]) * self.token_bytes

    def to_repair(self, flat: int) -> str:
        """Returns what to do about a damaged shard, the end of a message."""
        dataset, _, _ = self.place(flat)
        return to_repair(dataset.url, dataset.version)

    def place(self, flat: int) -> tuple[Dataset, str, int]:
        """Returns the dataset of a shard, its source there, and its number in the source."""
        source = int(np.searchsorted(self.first, flat, side="right")) - 1
        part, number = self.parts[source].split(flat - int(self.first[source]))
        return self.datasets[part.dataset], part.source, number

    def describe(self, flat: int) -> str:
        """Returns what messages call a shard."""
        dataset, source, number = self.place(flat)
        digest = dataset.shards(source).raw_sha256[number]
        return f"shard {number} of {source} in {dataset.url}@{dataset.version} ({digest[:16]})"
