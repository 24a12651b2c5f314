"""Which shards of which datasets a source of an order is made of, and back.

An order numbers the shards of each of its sources through. Where such a source stands for several
sources of a dataset, their shards follow each other: shard k of the second is shard (shards of the
first + k) of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from datapipe.dataset.reader import Dataset

__all__ = ["Int64s", "Part", "SourceParts"]

Int64s = npt.NDArray[np.int64]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """All shards that a source of a dataset has at one version."""

    dataset: int
    """Index in the list of datasets that are read."""
    source: str
    """Name in that dataset."""
    num_shards: int


class SourceParts(msgspec.Struct, frozen=True, kw_only=True):
    """A source of an order: its name there, and the parts whose shards it numbers through."""

    name: str
    parts: tuple[Part, ...]

    @property
    def num_shards(self) -> int:
        """Shards of all parts."""
        return sum(part.num_shards for part in self.parts)

    def starts(self) -> Int64s:
        """Returns the number of each part's first shard, and one after the last: [parts + 1]."""
        counts = [part.num_shards for part in self.parts]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def split(self, shard: int) -> tuple[Part, int]:
        """Returns the part that holds a shard, and the shard's number there."""
        starts = self.starts()
        index = int(np.searchsorted(starts, shard, side="right")) - 1
        return self.parts[index], shard - int(starts[index])

    def num_tokens(self, datasets: Sequence[Dataset]) -> Int64s:
        """Returns the tokens of each shard; shards that a dataset got later are left out."""
        columns = [
            datasets[part.dataset].shards(part.source).num_tokens[: part.num_shards]
            for part in self.parts
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *columns])
