"""The order itself: sample numbers to places in a dataset, and back.

`Order` is opened from a spec and the token counts of shards, costs nothing by the sample, and
answers for any sample number at once: nothing has to be read from the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from datapipe.errors import OrderError
from datapipe.order.epoch import SourceOrder
from datapipe.order.mixture import MAX_SAMPLE, Mixture
from datapipe.order.permutation import Int64s, unpermute
from datapipe.order.samples import TokenRuns, samples_holding, token_runs
from datapipe.order.spec import OrderSource, OrderSpec
from datapipe.order.windows import (
    EpochRows,
    Windows,
    groups_of,
    lane_of_places,
    lane_ranges,
    rows_within,
    windows_of,
)

__all__ = ["Order", "Places"]


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where samples lie: int64 arrays of one length."""

    source: Int64s
    "Index of the source in the spec."
    shard: Int64s
    "Number of the shard in its source."
    sample: Int64s
    "Index of the sample in its shard."
    epoch: Int64s
    "Epoch of the source, from 0."
    count: Int64s
    "How many samples of the source the lane drew before."

    def __len__(self) -> int:
        return int(self.source.size)


class Order:
    """The sample order of a spec: pure, invertible, safe for threads, processes and pickling."""

    def __init__(self, spec: OrderSpec, num_tokens: Sequence[Int64s]) -> None:
        """Takes the token counts of exactly the spec's shards by source; `open` is for callers.

        Raises:
            OrderError: a source without samples, or a weight too small to be drawn.
        """
        self.spec = spec
        self._num_tokens = list(num_tokens)
        self.mixture = Mixture(spec)
        self.sources = [
            SourceOrder(
                tokens,
                name=source.name,
                index=index,
                seed=spec.seed,
                seq_len=spec.seq_len,
                tail=spec.tail,
                window_shards=spec.window_shards,
            )
            for index, (source, tokens) in enumerate(
                zip(spec.sources, self._num_tokens, strict=True)
            )
        ]
        self._totals = np.array([opened.num_samples for opened in self.sources], dtype=np.int64)
        self._num_shards = np.array([s.num_shards for s in spec.sources], dtype=np.int64)
        self._shards_from = [source.shards_from for source in spec.sources]

    @classmethod
    def open(cls, spec: OrderSpec, num_tokens: Mapping[str, npt.ArrayLike]) -> Order:
        """Opens the order of a spec.

        Args:
            spec: what the order is made of.
            num_tokens: source name -> number of tokens of each of its shards, by shard number from
                0 (shards from the spec's `shards_to` on are not looked at). An int64 array is kept,
                not copied.

        Raises:
            OrderError: a source without samples or token counts, a weight too small to be drawn.
        """
        return cls(spec, [_tokens_of(source, num_tokens) for source in spec.sources])

    def __reduce__(self) -> tuple[object, ...]:
        return (Order, (self.spec, self._num_tokens))

    @property
    def num_samples(self) -> dict[str, int]:
        """Samples of one epoch of each source, by name."""
        pairs = zip(self.spec.sources, self.sources, strict=True)
        return {source.name: opened.num_samples for source, opened in pairs}

    def locate(self, samples: npt.ArrayLike) -> Places:
        """Returns the places of sample numbers (0 <= number < 2^62), in the order given.

        Raises:
            OrderError: a number outside.
        """
        numbers = np.asarray(samples, dtype=np.int64).ravel()
        _check_range("sample number", numbers, end=MAX_SAMPLE)
        source, count = self.mixture.draw(numbers)
        totals = self._totals[source]
        epoch, within = np.divmod(count * self.spec.lanes + numbers % self.spec.lanes, totals)
        steps, virtual = np.divmod(within, self.spec.lanes)
        start, _ = lane_ranges(virtual, totals=totals, lanes=self.spec.lanes)
        groups = self._epochs_of(source, epoch)
        place = self._windows_of(groups, start + steps, virtual=virtual, totals=totals).shuffle(
            start + steps
        )
        shard, sample = np.empty_like(place), np.empty_like(place)
        for index, table, rows in groups:
            position = table.position_of(place[rows])
            shard[rows] = table.shards[position] + self._shards_from[index]
            sample[rows] = place[rows] - table.ends[position]
        return Places(source, shard, sample, epoch, count)

    def inverse(
        self,
        source: npt.ArrayLike,
        shard: npt.ArrayLike,
        sample: npt.ArrayLike,
        epoch: npt.ArrayLike,
    ) -> Int64s:
        """Returns the sample number of each place, -1 where it is never drawn.

        Sample numbers inside a skip are returned too: see `Delivered.holds`.

        Args:
            source: index of the source in the spec; all four are broadcast against each other.
            shard: number of the shard in its source.
            sample: index of the sample in its shard.
            epoch: epoch of the source, from 0.

        Raises:
            OrderError: no such source, shard of the spec, sample or epoch.
        """
        values = [np.asarray(value, dtype=np.int64) for value in (source, shard, sample, epoch)]
        sources, shards, samples, epochs = (
            np.ascontiguousarray(value).ravel() for value in np.broadcast_arrays(*values)
        )
        _check_range("source index", sources, end=len(self.sources))
        _check_range("epoch", epochs, end=1 << 63)
        relative = self._checked_shards(sources, shards, samples)
        result = np.full(sources.shape, -1, dtype=np.int64)
        near = np.flatnonzero(epochs <= MAX_SAMPLE // self._totals[sources])
        sources, epochs = sources[near], epochs[near]
        drawn = epochs * self._totals[sources]
        drawn += self._within(sources, epochs, relative[near], samples[near])
        for index, rows in groups_of(sources):
            result[near[rows]] = self.number(index, drawn[rows])
        return result

    def number(self, source: int, drawn: Int64s) -> Int64s:
        """Returns the sample numbers of a source's samples by e N + x (epoch e, x-th of N)."""
        counts, lanes = np.divmod(drawn, self.spec.lanes)
        return self.mixture.number(source, lanes=lanes, counts=counts)

    def token_runs(self, places: Places) -> TokenRuns:
        """Returns the tokens of the samples at places inside their shards."""
        shard_tokens = np.empty_like(places.shard)
        for index, here in groups_of(places.source):
            relative = places.shard[here] - self.spec.sources[index].shards_from
            shard_tokens[here] = self._num_tokens[index][relative]
        return token_runs(places.sample, num_tokens=shard_tokens, seq_len=self.spec.seq_len)

    def samples_holding(
        self,
        source: int,
        shard: npt.ArrayLike,
        *,
        token_start: npt.ArrayLike,
        num_tokens: npt.ArrayLike,
    ) -> tuple[Int64s, Int64s]:
        """Returns the samples [first, end) of shards that hold any of a run of tokens.

        A sample holds a token if the token is one of its inputs or one of its labels.

        Raises:
            OrderError: a shard that is not of the spec.
        """
        relative = self._relative(source, np.asarray(shard, dtype=np.int64))
        return samples_holding(
            token_start,
            num_tokens=num_tokens,
            shard_tokens=self._num_tokens[source][relative],
            seq_len=self.spec.seq_len,
            tail=self.spec.tail,
        )

    def drawn_before(self, sample: int) -> Int64s:
        """Returns how many samples of each source have a number below `sample`: [sources].

        Samples inside skips count too.
        """
        return np.asarray(self.mixture.counts_before(sample).sum(axis=0))

    def epochs_before(self, sample: int) -> Int64s:
        """Returns how many epochs of each source have begun below `sample`: [sources].

        A place can have been drawn in the epochs 0 up to this many, and in no other.
        """
        counts = self.mixture.counts_before(sample)
        lanes = np.arange(self.spec.lanes, dtype=np.int64)[:, None]
        last = np.where(counts > 0, (counts - 1) * self.spec.lanes + lanes, -1).max(axis=0)
        return np.asarray(last // self._totals + 1)

    def _epochs_of(self, sources: Int64s, epochs: Int64s) -> list[EpochRows]:
        """Returns the rows by source and epoch, with the tables of the epochs."""
        return [
            EpochRows(index, self.sources[index].epoch(epoch), rows_within(rows, inner))
            for index, rows in groups_of(sources)
            for epoch, inner in groups_of(epochs[rows])
        ]

    def _windows_of(
        self, groups: list[EpochRows], places: Int64s, *, virtual: Int64s, totals: Int64s
    ) -> Windows:
        return windows_of(
            groups,
            places,
            virtual=virtual,
            totals=totals,
            lanes=self.spec.lanes,
            window_shards=self.spec.window_shards,
        )

    def _within(self, sources: Int64s, epochs: Int64s, shards: Int64s, samples: Int64s) -> Int64s:
        """Returns the how-manieth of their epochs places are; shards from the source's first."""
        totals, groups = self._totals[sources], self._epochs_of(sources, epochs)
        keys = np.empty(shards.shape, dtype=np.uint64)
        for _, table, rows in groups:
            keys[rows] = table.shard_key
        sizes = self._num_shards[sources]
        position = unpermute(shards, sizes=sizes, keys=keys)
        place = np.empty_like(samples)
        for _, table, rows in groups:
            place[rows] = table.ends[position[rows]] + samples[rows]
        virtual = lane_of_places(place, totals=totals, lanes=self.spec.lanes)
        start, _ = lane_ranges(virtual, totals=totals, lanes=self.spec.lanes)
        windows = self._windows_of(groups, place, virtual=virtual, totals=totals)
        return (windows.unshuffle(place) - start) * self.spec.lanes + virtual

    def _checked_shards(self, sources: Int64s, shards: Int64s, samples: Int64s) -> Int64s:
        """Returns shards counted from the first of their source; all places exist."""
        relative = np.empty_like(shards)
        for index, rows in groups_of(sources):
            relative[rows] = self._relative(index, shards[rows])
            counts = self.sources[index].counts[relative[rows]]
            wrong = np.flatnonzero((samples[rows] < 0) | (samples[rows] >= counts))
            if wrong.size:
                raise OrderError(
                    f"shard {shards[rows][wrong[0]]} of {self.spec.sources[index].name} has "
                    f"{counts[wrong[0]]} samples of {self.spec.seq_len} tokens, and sample "
                    f"{samples[rows][wrong[0]]} was asked for: it doesn't exist; samples count "
                    "from 0"
                )
        return relative

    def _relative(self, index: int, shards: Int64s) -> Int64s:
        source = self.spec.sources[index]
        wrong = np.flatnonzero((shards < source.shards_from) | (shards >= source.shards_to))
        if wrong.size:
            raise OrderError(
                f"source {source.name} has the shards {source.shards_from} up to "
                f"{source.shards_to - 1} in this order, and shard {shards.ravel()[wrong[0]]} was "
                "asked for: it is never drawn; look in the run whose spec holds it"
            )
        return shards - source.shards_from


def _tokens_of(source: OrderSource, num_tokens: Mapping[str, npt.ArrayLike]) -> Int64s:
    if source.name not in num_tokens:
        raise OrderError(
            f"no token counts for source {source.name}: its samples can't be counted; "
            f"pass num_tokens[{source.name!r}]"
        )
    tokens = np.asarray(num_tokens[source.name], dtype=np.int64)
    if tokens.ndim != 1 or tokens.size < source.shards_to:
        raise OrderError(
            f"source {source.name} has token counts for {tokens.size} shards and the spec takes "
            f"its shards up to {source.shards_to - 1}: this is an older version of the dataset; "
            "open the version that the spec was made of, or a later one"
        )
    if int(tokens.min()) < 0:
        raise OrderError(
            f"source {source.name} has a shard of {int(tokens.min())} tokens: a negative count is "
            "no count; verify the dataset's shard table"
        )
    return tokens[source.shards_from : source.shards_to]


def _check_range(what: str, values: Int64s, *, end: int) -> None:
    if values.size and (int(values.min()) < 0 or int(values.max()) >= end):
        wrong = int(values.min()) if int(values.min()) < 0 else int(values.max())
        raise OrderError(f"the {what} {wrong} doesn't exist: they run from 0 to {end - 1}")
