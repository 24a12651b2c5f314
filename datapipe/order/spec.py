"""The spec of an order: everything that decides which sample has which number.

Two specs with the same digest give the same order on every machine, for ever. The digest is the
SHA-256 of the spec's canonical JSON (RFC 8785), so a spec is stored once under its digest.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Real
from typing import Any

import rfc8785

from datapipe.errors import OrderError
from datapipe.order.samples import TAILS, Tail

__all__ = [
    "MAX_JSON_INTEGER",
    "MAX_LANES",
    "SPEC_VERSION",
    "OrderSource",
    "OrderSpec",
    "Phase",
    "resolve_lanes",
]

SPEC_VERSION = 1
"""Version of the spec and of the function behind it; golden values change only with it."""

MAX_LANES = 1 << 16
"""Most lanes of an order."""

MAX_JSON_INTEGER = (1 << 53) - 1
"""Largest integer that every reader of JSON holds exactly."""

_DIGEST_CHARACTERS = frozenset("0123456789abcdef")


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderSource:
    """One source of an order: a run of shard numbers of a named source of a dataset."""

    name: str
    "What phases and readers call it."

    order_digest: str
    "SHA-256 (64 hex digits) over the source's shard rows, from the manifest."

    shards_from: int = 0
    "First shard number."

    shards_to: int
    "One after the last shard number."

    def __post_init__(self) -> None:
        """Raises OrderError for an empty name or run of shards, or no digest."""
        _check_text("name of a source", self.name)
        _check_digest(f"order digest of source {self.name}", self.order_digest)
        _check_int(f"shards_from of source {self.name}", self.shards_from, least=0)
        _check_int(f"shards_to of source {self.name}", self.shards_to, least=0)
        if self.shards_to <= self.shards_from:
            raise OrderError(
                f"source {self.name} has the shards {self.shards_from} up to {self.shards_to}, "
                "which is none: nothing could be drawn from it; leave it out or name its shards"
            )

    @property
    def num_shards(self) -> int:
        """Number of shards."""
        return self.shards_to - self.shards_from

    def to_json(self) -> dict[str, Any]:
        """Returns the source as JSON values."""
        shards = [self.shards_from, self.shards_to]
        return {"name": self.name, "order_digest": self.order_digest, "shards": shards}


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the order with one set of mixture weights."""

    from_sample: int
    "First sample number of the phase; the first phase starts at 0."

    weights: Mapping[str, float] = field(hash=False)
    "Source name -> share of the samples (not of the tokens), in any unit; a missing one is 0."

    def __post_init__(self) -> None:
        """Raises OrderError for a weight that is no finite number >= 0, or no positive one."""
        object.__setattr__(self, "from_sample", _plain_int(self.from_sample))
        _check_int("from_sample of a phase", self.from_sample, least=0)
        if not isinstance(self.weights, Mapping):
            raise OrderError(
                f"the weights of the phase from sample {self.from_sample} are {self.weights!r}: "
                "give {source: weight}"
            )
        weights = {name: _checked_weight(name, value) for name, value in self.weights.items()}
        if not any(weights.values()):
            raise OrderError(
                f"the phase from sample {self.from_sample} has no positive weight: nothing could "
                "be drawn in it; give at least one source a weight above 0"
            )
        kept = {name: value for name, value in weights.items() if value > 0}
        object.__setattr__(self, "weights", kept)

    def to_json(self) -> dict[str, Any]:
        """Returns the phase as JSON values."""
        return {"from_sample": self.from_sample, "weights": dict(self.weights)}


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderSpec:
    """What an order is made of; immutable, picklable, equal where its digest is.

    Skips are sorted and merged, masks sorted, weights of 0 left out, so that specs which mean the
    same are the same.
    """

    sources: tuple[OrderSource, ...]
    "Numbered in this order; new ones are added at the end."

    seq_len: int
    "T: tokens of a sample."

    lanes: int
    "L: sub-streams of the order; see `resolve_lanes`."

    seed: int = 0
    "0 <= seed < 2^53."

    window_shards: int = 4
    "W: shards that a lane mixes at a time."

    tail: Tail = "pad"
    "Whether a shard's last, short sample is padded or dropped."

    phases: tuple[Phase, ...] = ()
    "Mixture weights over sample numbers; () is one phase of the only source."

    skips: tuple[tuple[int, int], ...] = ()
    "Ranges [g0, g1) of sample numbers never delivered, in multiples of L; see `rounded_skips`."

    masks: tuple[str, ...] = ()
    "SHA-256 of lists of documents whose tokens are masked."

    def __post_init__(self) -> None:
        """Raises OrderError for anything that can't be an order."""
        _check_int("seq_len", self.seq_len, least=1)
        _check_int("seed", self.seed, least=0)
        _check_int("window_shards", self.window_shards, least=1)
        _check_int("lanes", self.lanes, least=1, most=MAX_LANES)
        if self.tail not in TAILS:
            raise OrderError(f"tail is {self.tail!r}: it is one of {', '.join(TAILS)}")
        _check_sources(self.sources)
        object.__setattr__(self, "sources", tuple(self.sources))
        object.__setattr__(self, "phases", _checked_phases(self.phases, self.sources))
        object.__setattr__(self, "skips", _checked_skips(self.skips, self.lanes))
        for mask in self.masks:
            _check_digest("mask", mask)
        object.__setattr__(self, "masks", tuple(sorted(set(self.masks))))

    @property
    def digest(self) -> str:
        """SHA-256 of `to_bytes`, 64 hex digits."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """Returns the spec as canonical JSON, what is stored under its digest."""
        return rfc8785.dumps(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Returns the spec as JSON values."""
        return {
            "version": SPEC_VERSION,
            "sources": [source.to_json() for source in self.sources],
            "seq_len": self.seq_len,
            "seed": self.seed,
            "lanes": self.lanes,
            "window_shards": self.window_shards,
            "tail": self.tail,
            "phases": [phase.to_json() for phase in self.phases],
            "skips": [list(skip) for skip in self.skips],
            "masks": list(self.masks),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any] | bytes | str) -> OrderSpec:
        """Returns the spec of its JSON values or text.

        Raises:
            OrderError: a version this program can't read, an unknown or missing key, a wrong type.
        """
        try:
            document = json.loads(value) if isinstance(value, bytes | str) else value
            return _spec_of(document)
        except OrderError:
            raise
        except (AttributeError, TypeError, ValueError) as error:
            raise OrderError(
                f"this is no spec of an order and can't be read ({error}): {str(value)[:80]!r}; "
                "restore the file from where it was stored under its digest"
            ) from error


def resolve_lanes(num_shards: Sequence[int], *, window_shards: int) -> int:
    """Returns the lanes for `lanes=None`, resolved once when a spec is made.

    The largest power of two <= min(64, mean shards of a source / (8 W)), and at least 1.

    Args:
        num_shards: number of shards of each source.
        window_shards: W.

    Raises:
        OrderError: no sources.
    """
    if not num_shards:
        raise OrderError("an order without sources has no lanes: name at least one source")
    limit = min(64, sum(num_shards) // (len(num_shards) * 8 * window_shards))
    return 1 << max(limit.bit_length() - 1, 0)


def _spec_of(document: Mapping[str, Any]) -> OrderSpec:
    version = document.get("version")
    if version != SPEC_VERSION:
        raise OrderError(
            f"the spec has version {version!r} and this program reads version {SPEC_VERSION}: its "
            "order is another function; read it with the datapipe release that wrote it"
        )
    known = {
        *("version", "sources", "seq_len", "seed", "lanes"),
        *("window_shards", "tail", "phases", "skips", "masks"),
    }
    _check_keys("the spec", document, known)
    return OrderSpec(
        sources=tuple(_source_of(item) for item in document["sources"]),
        phases=tuple(_phase_of(item) for item in document["phases"]),
        skips=tuple((first, end) for first, end in document["skips"]),
        masks=tuple(document["masks"]),
        **{name: document[name] for name in ("seq_len", "seed", "lanes", "window_shards", "tail")},
    )


def _source_of(item: Mapping[str, Any]) -> OrderSource:
    _check_keys("a source of the spec", item, {"name", "order_digest", "shards"})
    first, end = item["shards"]
    return OrderSource(
        name=item["name"], order_digest=item["order_digest"], shards_from=first, shards_to=end
    )


def _phase_of(item: Mapping[str, Any]) -> Phase:
    _check_keys("a phase of the spec", item, {"from_sample", "weights"})
    return Phase(item["from_sample"], item["weights"])


def _check_keys(what: str, item: Mapping[str, Any], known: Iterable[str]) -> None:
    expected = set(known)
    wrong = sorted(set(item) ^ expected)
    if wrong:
        kind = "lacks" if wrong[0] in expected else "has the unknown key"
        raise OrderError(
            f"{what} {kind} {wrong[0]!r}: it can't be read as version {SPEC_VERSION}; "
            "restore the file from where it was stored under its digest"
        )


def _check_sources(sources: Sequence[OrderSource]) -> None:
    names = [source.name for source in sources]
    if not names:
        raise OrderError("the spec has no sources: nothing could be drawn; name at least one")
    for name, number in Counter(names).items():
        if number > 1:
            raise OrderError(
                f"two sources of the spec are named {name}: weights couldn't tell them apart; "
                "give each a name of its own"
            )


def _checked_phases(phases: Sequence[Phase], sources: Sequence[OrderSource]) -> tuple[Phase, ...]:
    if not phases:
        if len(sources) > 1:
            raise OrderError(
                f"{len(sources)} sources and no phase: their shares are not known; "
                "give phases with weights"
            )
        return (Phase(0, {sources[0].name: 1}),)
    names = [source.name for source in sources]
    for phase in phases:
        for name in phase.weights:
            if name not in names:
                raise OrderError(
                    f"the phase from sample {phase.from_sample} weights {name}, which is no source "
                    f"of the spec: it has {', '.join(names)}; correct the name or add the source"
                )
    _check_starts([phase.from_sample for phase in phases])
    return tuple(phases)


def _check_starts(starts: Sequence[int]) -> None:
    if starts[0] != 0:
        raise OrderError(
            f"the first phase starts at sample {starts[0]}: samples before it had no weights; "
            "let the first phase start at sample 0"
        )
    for before, start in pairwise(starts):
        if start <= before:
            raise OrderError(
                f"a phase from sample {start} follows one from sample {before}: phases must "
                "start later and later; sort them and leave out those replaced"
            )


def _checked_skips(skips: Iterable[tuple[int, int]], lanes: int) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for first, end in sorted((first, end) for first, end in skips):
        _check_skip(first, end, lanes)
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((first, end))
    return tuple(merged)


def _check_skip(first: int, end: int, lanes: int) -> None:
    _check_int("start of a skip", first, least=0)
    _check_int("end of a skip", end, least=0)
    if end <= first or first % lanes or end % lanes:
        raise OrderError(
            f"the skip [{first}, {end}) is no range of multiples of the {lanes} lanes: lanes "
            "would get out of step; round it with `rounded_skips`"
        )


def _check_int(what: str, value: object, *, least: int, most: int = MAX_JSON_INTEGER) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise OrderError(f"{what} is {value!r}: it is an integer from {least} to {most}")


def _plain_int(value: Any) -> Any:
    """Returns an integer of NumPy or torch as Python's, anything else as it is."""
    if isinstance(value, int):
        return value
    try:
        return operator.index(value)
    except TypeError:
        return value


def _check_text(what: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise OrderError(f"{what} is {value!r}: it is a text of at least one character")


def _check_digest(what: str, value: object) -> None:
    if not isinstance(value, str) or len(value) != 64 or not set(value) <= _DIGEST_CHARACTERS:
        raise OrderError(f"{what} is {value!r}: it is a SHA-256 of 64 lower-case hex digits")


def _checked_weight(name: str, value: Any) -> float:
    _check_text("name of a source in a phase", name)
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:
        raise OrderError(f"the weight of {name} is {value!r}: it is a finite number, 0 or more")
    return float(value)
