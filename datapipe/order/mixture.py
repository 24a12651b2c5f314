"""The mixture: which source a lane draws at a time, and the how-manieth of that source it is.

A phase has one pattern of K = 65,536 draws which spreads every source as evenly as integers
allow; each round of a lane reads it from an offset of its own. In every lane the counts of a
source run 0, 1, 2, ... in time order over all phases, so weights change with no repeat and no
loss, and the count of a source gives back the draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from datapipe.errors import OrderError
from datapipe.order.permutation import Int64s, scalar_key, vector_keys
from datapipe.order.spec import OrderSpec, Phase

__all__ = ["MAX_SAMPLE", "ROUND_DRAWS", "Mixture", "round_counts"]

ROUND_DRAWS = 1 << 16
"""K: draws of a round."""

MAX_SAMPLE = 1 << 62
"""Sample numbers are below it: sums of two stay inside int64."""

_OFFSET_KEY = 2
_PATTERNS_KEPT = 16  # 0.7 MB each


class Mixture:
    """The draws of all lanes over all phases of a spec; immutable and safe for threads."""

    def __init__(self, spec: OrderSpec) -> None:
        """Raises OrderError for a positive weight too small for one draw a round."""
        self._seed, self._lanes, self._num_sources = spec.seed, spec.lanes, len(spec.sources)
        names = [source.name for source in spec.sources]
        self._counts = [round_counts(phase, names=names) for phase in spec.phases]
        self._from_sample = np.array([phase.from_sample for phase in spec.phases], dtype=np.int64)
        self._base = self._counts_at_phases()

    def draw(self, samples: Int64s) -> tuple[Int64s, Int64s]:
        """Returns what sample numbers (0 <= number < MAX_SAMPLE) draw.

        Returns:
            the index of the source, and how many samples of it the lane drew before.
        """
        times, lanes = np.divmod(samples, self._lanes)
        if self._num_sources == 1:
            return np.zeros_like(times), times
        phases = np.searchsorted(self._from_sample, samples, side="right") - 1
        source, count = np.empty_like(times), np.empty_like(times)
        for phase in _present(phases):
            here = _where(phases, phase)
            drawn = self._draw_in_phase(phase, lanes=lanes[here], times=times[here])
            source[here], count[here] = drawn
        return source, count

    def number(self, source: int, *, lanes: Int64s, counts: Int64s) -> Int64s:
        """Returns the sample numbers at which lanes draw a source the count-th time.

        -1 where that never happens below MAX_SAMPLE.
        """
        if self._num_sources == 1:
            return _numbers(counts, lanes=lanes, num_lanes=self._lanes)
        bases = self._base[:, lanes, source]
        phases = (bases <= counts[None, :]).sum(axis=0) - 1
        result = np.full(counts.shape, -1, dtype=np.int64)
        for phase in _present(phases):
            if self._counts[phase][source] > 0:
                here = _where(phases, phase)
                num = counts[here] - bases[phase][here]
                result[here] = self._number_in_phase(phase, source, lanes=lanes[here], counts=num)
        return result

    def counts_before(self, sample: int) -> Int64s:
        """Returns how often each lane drew each source below a sample number: [lanes, sources]."""
        lanes = np.arange(self._lanes, dtype=np.int64)
        end = _first_times(sample, lanes, self._lanes)
        if self._num_sources == 1:
            return end[:, None]
        phase = int(np.searchsorted(self._from_sample, sample, side="right")) - 1
        return self._counts_in_phase(phase, self._base[phase], end=end)

    def counts_of(self, source: int, lanes: Int64s) -> Int64s:
        """Returns how often lanes draw a source in all; MAX_SAMPLE where that has no end."""
        if self._counts[-1][source] > 0:
            return np.full_like(lanes, MAX_SAMPLE)
        return np.asarray(self._base[-1, lanes, source])

    def drawn_sources(self, from_sample: int = 0) -> list[int]:
        """Returns the sources with a draw at or after a sample number, ascending."""
        ends = [*self._from_sample[1:].tolist(), MAX_SAMPLE]
        live = [c for c, end in zip(self._counts, ends, strict=True) if end > from_sample]
        return [s for s in range(self._num_sources) if any(counts[s] for counts in live)]

    def _counts_at_phases(self) -> Int64s:
        """Returns the counts reached at the start of each phase: [phases, lanes, sources]."""
        shape = (len(self._counts), self._lanes, self._num_sources)
        base = np.zeros(shape, dtype=np.int64)
        lanes = np.arange(self._lanes, dtype=np.int64)
        if self._num_sources > 1:
            for phase in range(1, len(self._counts)):
                end = _first_times(int(self._from_sample[phase]), lanes, self._lanes)
                base[phase] = self._counts_in_phase(phase - 1, base[phase - 1], end=end)
        return base

    def _counts_in_phase(self, phase: int, base: Int64s, *, end: Int64s) -> Int64s:
        lanes = np.arange(self._lanes, dtype=np.int64)
        rounds, places, offsets = self._placed(phase, lanes=lanes, times=end)
        pattern = _pattern(self._counts[phase])
        sources = np.arange(self._num_sources, dtype=np.int64)
        begun = pattern.occurrences(sources[None, :], offsets[:, None], places[:, None])
        return base + rounds[:, None] * pattern.counts[None, :] + begun

    def _placed(self, phase: int, *, lanes: Int64s, times: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Returns round, place in the round and offset of the round."""
        start = _first_times(int(self._from_sample[phase]), lanes, self._lanes)
        rounds, places = np.divmod(times - start, ROUND_DRAWS)
        return rounds, places, self._offsets(phase, lanes=lanes, rounds=rounds)

    def _offsets(self, phase: int, *, lanes: Int64s, rounds: Int64s) -> Int64s:
        keys = vector_keys(scalar_key(self._seed, _OFFSET_KEY, phase), lanes, rounds, first=3)
        return (keys % np.uint64(ROUND_DRAWS)).astype(np.int64)

    def _draw_in_phase(self, phase: int, *, lanes: Int64s, times: Int64s) -> tuple[Int64s, Int64s]:
        pattern = _pattern(self._counts[phase])
        rounds, places, offsets = self._placed(phase, lanes=lanes, times=times)
        source = pattern.sources[(offsets + places) % ROUND_DRAWS].astype(np.int64)
        count = self._base[phase][lanes, source] + rounds * pattern.counts[source]
        return source, count + pattern.occurrences(source, offsets, places)

    def _number_in_phase(self, phase: int, source: int, *, lanes: Int64s, counts: Int64s) -> Int64s:
        pattern = _pattern(self._counts[phase])
        rounds, occurrence = np.divmod(counts, pattern.counts[source])
        offsets = self._offsets(phase, lanes=lanes, rounds=rounds)
        places = pattern.place(source, occurrence, offsets)
        start = _first_times(int(self._from_sample[phase]), lanes, self._lanes)
        far = rounds > MAX_SAMPLE // (ROUND_DRAWS * self._lanes)
        times = start + np.where(far, 0, rounds) * ROUND_DRAWS + places
        return np.where(far, -1, _numbers(times, lanes=lanes, num_lanes=self._lanes))


def round_counts(phase: Phase, *, names: Sequence[str]) -> tuple[int, ...]:
    """Returns how many of the K draws of a round go to each source, by largest remainder.

    Weights are taken as the exact value of the float; of equal remainders the earlier source wins.

    Raises:
        OrderError: a positive weight too small for one draw a round.
    """
    weights = [Fraction(phase.weights.get(name, 0.0)) for name in names]
    shares = [weight * ROUND_DRAWS / sum(weights) for weight in weights]
    counts = [share.numerator // share.denominator for share in shares]
    left = ROUND_DRAWS - sum(counts)
    for index in sorted(range(len(names)), key=lambda i: (counts[i] - shares[i], i))[:left]:
        counts[index] += 1
    for name, weight, count in zip(names, weights, counts, strict=True):
        if weight > 0 and count == 0:
            raise OrderError(
                f"source {name} has {float(weight / sum(weights)):.3g} of the weights of the phase "
                f"from sample {phase.from_sample}, less than one draw in a round of {ROUND_DRAWS}: "
                f"it would never be drawn; give it at least {1 / ROUND_DRAWS:.3g}, or weight 0"
            )
    return tuple(counts)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One round's draws by place, and the places by source."""

    counts: Int64s
    "[sources] draws of each source, n_s."
    sources: npt.NDArray[np.uint16]
    "[K] source at each place."
    places: npt.NDArray[np.uint16]
    "[K] places of source 0 ascending, then of source 1, ..."
    starts: Int64s
    "[sources] where each source's places begin in `places`."
    sorted_pairs: Int64s
    "[K] source * K + place, ascending."

    def occurrences(self, source: Int64s, offset: Int64s, num_places: Int64s) -> Int64s:
        """Returns how often a source occurs in `num_places` places from an offset on, cyclic."""
        end = offset + num_places
        wrapped = end >= ROUND_DRAWS
        before_end = self._before(source, end - np.where(wrapped, ROUND_DRAWS, 0))
        return before_end - self._before(source, offset) + wrapped * self.counts[source]

    def place(self, source: int, occurrence: Int64s, offset: Int64s) -> Int64s:
        """Returns the number of places from an offset to an occurrence of a source after it."""
        before = self._before(np.full_like(offset, source), offset)
        nth = self.starts[source] + (before + occurrence) % self.counts[source]
        return np.asarray((self.places[nth].astype(np.int64) - offset) % ROUND_DRAWS)

    def _before(self, source: Int64s, place: Int64s) -> Int64s:
        found = np.searchsorted(self.sorted_pairs, source * ROUND_DRAWS + place)
        return np.asarray(found - self.starts[source])


@lru_cache(maxsize=_PATTERNS_KEPT)
def _pattern(counts: tuple[int, ...]) -> _Pattern:
    by_source = np.repeat(np.arange(len(counts)), counts)
    nth = np.concatenate([np.arange(count) for count in counts])
    per_source = np.array(counts, dtype=np.int64)
    # exact: unequal fractions of these sizes differ by 2^-34, a float64 of them by at most 2^-53
    when = (2 * nth + 1) / (2 * per_source[by_source])
    order = np.lexsort((by_source, when))
    sources = by_source[order].astype(np.uint16)
    places = np.argsort(sources, kind="stable")
    return _Pattern(
        counts=per_source,
        sources=sources,
        places=places.astype(np.uint16),
        starts=np.cumsum(per_source) - per_source,
        sorted_pairs=sources[places].astype(np.int64) * ROUND_DRAWS + places,
    )


def _first_times(sample: int, lanes: Int64s, num_lanes: int) -> Int64s:
    """Returns the first time of each lane whose sample number is not below `sample`."""
    return np.maximum((sample - lanes + num_lanes - 1) // num_lanes, 0)


def _numbers(times: Int64s, *, lanes: Int64s, num_lanes: int) -> Int64s:
    far = times > MAX_SAMPLE // num_lanes
    numbers = np.where(far, 0, times) * num_lanes + lanes
    return np.where(far | (numbers >= MAX_SAMPLE), -1, numbers)


def _present(values: Int64s) -> list[int]:
    """Returns the different values, ascending; quick where there is only one."""
    if values.size and values.min() == values.max():
        return [int(values[0])]
    return [int(value) for value in np.unique(values)]


def _where(values: Int64s, value: int) -> Int64s | slice:
    """Returns the indexes of a value; a slice where all are equal, which copies nothing."""
    if values.min() == values.max():
        return slice(None)
    return np.flatnonzero(values == value)
