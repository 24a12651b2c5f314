"""The state of a stream: one number and the digest of the order that it counts in.

A state may be taken up by another spec if both agree on every sample number below next_sample:
so weights, skips and added sources can be changed from there on, and nothing is repeated or lost.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datapipe.errors import StateError
from datapipe.order.mixture import round_counts
from datapipe.order.spec import MAX_JSON_INTEGER, OrderSpec

__all__ = ["STATE_VERSION", "State", "accept_state", "first_difference"]

STATE_VERSION = 1
"""Version of the state's JSON."""

_KEYS = {"version", "spec_digest", "next_sample"}

_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """Where a stream is; the same on every rank."""

    spec_digest: str
    "Digest of the spec that next_sample counts in."

    next_sample: int
    "Every delivered sample number is below it."

    def to_json(self) -> dict[str, Any]:
        """Returns the state as JSON values, below 200 bytes."""
        return {
            "version": STATE_VERSION,
            "spec_digest": self.spec_digest,
            "next_sample": self.next_sample,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> State:
        """Returns the state of its JSON values.

        Raises:
            StateError: no mapping, another version, a missing or unknown key, a wrong value.
        """
        if not isinstance(value, Mapping):
            raise _no_state(f"{type(value).__name__} {str(value)[:80]!r}")
        version = value.get("version")
        if type(version) is not int or version != STATE_VERSION:
            raise StateError(
                f"the state has version {version!r} and this program reads version "
                f"{STATE_VERSION}: it can't be resumed; pass what `state_dict()` returned, and use "
                "the datapipe release that saved it"
            )
        wrong = sorted({str(key) for key in value} ^ _KEYS)
        if wrong:
            raise _no_state(f"{'one without' if wrong[0] in _KEYS else 'one with'} {wrong[0]!r}")
        digest, sample = value["spec_digest"], value["next_sample"]
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise _no_state(f"spec_digest={digest!r}")
        try:
            number = -1 if isinstance(sample, bool) else operator.index(sample)
        except TypeError:
            number = -1
        if not 0 <= number <= MAX_JSON_INTEGER:
            raise _no_state(f"next_sample={sample!r}")
        return State(spec_digest=digest, next_sample=number)


def _no_state(what: str) -> StateError:
    return StateError(
        f"{what} is no state of a stream: it has a version, a spec_digest (64 hex digits) and a "
        f"next_sample (0 to {MAX_JSON_INTEGER}), nothing else; pass what `state_dict()` returned, "
        "unchanged"
    )


def accept_state(
    state: State,
    *,
    spec: OrderSpec,
    earlier: OrderSpec | None = None,
    searched: Sequence[str] = (),
) -> int:
    """Returns the sample number at which the order of `spec` continues a state.

    Args:
        state: what was saved.
        spec: the order that is to go on.
        earlier: the spec of the state's digest, None where it can't be read.
        searched: where it was looked for, for the message.

    Raises:
        StateError: the orders differ below next_sample (the first difference is named), or the
            digests differ and the earlier spec can't be read.
    """
    if state.spec_digest == spec.digest:
        return state.next_sample
    if earlier is None:
        raise _unread(state, spec, searched)
    if earlier.digest != state.spec_digest:
        raise StateError(
            f"the spec read for the state has the digest {earlier.digest[:16]} and the state says "
            f"{state.spec_digest[:16]}: the file is damaged; restore it"
        )
    difference = first_difference(earlier, spec, before=state.next_sample)
    if difference is not None:
        raise StateError(
            f"the state can't be continued: {difference}. Samples below {state.next_sample} "
            "would be other ones, some repeated and some lost; use the earlier setting, or start "
            "anew without the state"
        )
    return state.next_sample


def _unread(state: State, spec: OrderSpec, searched: Sequence[str]) -> StateError:
    skips = (
        " The skips of this stream are rounded to whole global batches, so at another batch size "
        f"or world size they are other ones (now {_shown(list(spec.skips))}): only the earlier "
        "spec says which samples were skipped."
    )
    return StateError(
        f"the state belongs to the order {state.spec_digest[:16]}, this stream has the order "
        f"{spec.digest[:16]}, and the earlier spec wasn't found in "
        f"{', '.join(searched) or 'any place'}: whether they agree below sample "
        f"{state.next_sample} can't be known.{skips if spec.skips else ''} Name the place of its "
        "run records (`runs=`), or open the stream with the earlier settings"
    )


def first_difference(earlier: OrderSpec, later: OrderSpec, *, before: int) -> str | None:
    """Returns what first makes two orders differ below a sample number; None if nothing does.

    seq_len, seed, lanes, window_shards and tail must always be equal. Masks may differ, and so
    may sources that are not drawn below the number, phases from it on, and skips from it on.

    Raises:
        OrderError: a phase of either gives a source too little for one draw a round.
    """
    return next(_differences(earlier, later, before), None)


def _differences(earlier: OrderSpec, later: OrderSpec, before: int) -> Iterator[str]:
    for name in ("seq_len", "seed", "lanes", "window_shards", "tail"):
        was, now = getattr(earlier, name), getattr(later, name)
        if was != now:
            yield f"{name} was {was} and is {now}"
    yield from _source_differences(earlier, later, before)
    yield from _phase_differences(earlier, later, before)
    was_skipped, is_skipped = _skips_below(earlier, before), _skips_below(later, before)
    if was_skipped != is_skipped:
        yield (
            f"below sample {before} the skips were {_shown(was_skipped)} and are "
            f"{_shown(is_skipped)}"
        )


def _source_differences(earlier: OrderSpec, later: OrderSpec, before: int) -> Iterator[str]:
    drawn = _drawn_below(earlier, before) | _drawn_below(later, before)
    for index in sorted(drawn):
        was = earlier.sources[index] if index < len(earlier.sources) else None
        now = later.sources[index] if index < len(later.sources) else None
        if was is None or now is None or was.name != now.name:
            yield (
                f"source {index} was {was.name if was else 'none'} and is "
                f"{now.name if now else 'none'}"
            )
        elif was != now:
            yield (
                f"source {was.name} had the shards {was.shards_from} up to {was.shards_to - 1} of "
                f"{was.order_digest[:16]} and has {now.shards_from} up to {now.shards_to - 1} of "
                f"{now.order_digest[:16]}"
            )


def _phase_differences(earlier: OrderSpec, later: OrderSpec, before: int) -> Iterator[str]:
    was, now = _draws_below(earlier, before), _draws_below(later, before)
    for number in range(max(len(was), len(now))):
        old, new = (list(phases)[number : number + 1] for phases in (was, now))
        if old != new:
            yield (
                f"phase {number} was {_phase_shown(earlier, before, number)} and is "
                f"{_phase_shown(later, before, number)}"
            )


def _drawn_below(spec: OrderSpec, before: int) -> set[int]:
    return {index for _, counts in _draws_below(spec, before) for index in counts}


def _draws_below(spec: OrderSpec, before: int) -> list[tuple[int, dict[int, int]]]:
    """Returns start and draws a round by source of each phase that starts below a number."""
    names = [source.name for source in spec.sources]
    return [
        (
            phase.from_sample,
            {i: num for i, num in enumerate(round_counts(phase, names=names)) if num},
        )
        for phase in spec.phases
        if phase.from_sample < before
    ]


def _phase_shown(spec: OrderSpec, before: int, number: int) -> str:
    phases = [phase for phase in spec.phases if phase.from_sample < before]
    if number >= len(phases):
        return "none"
    weights = ", ".join(f"{name} {weight:g}" for name, weight in phases[number].weights.items())
    return f"from sample {phases[number].from_sample} with {weights}"


def _skips_below(spec: OrderSpec, before: int) -> list[tuple[int, int]]:
    return [(first, min(end, before)) for first, end in spec.skips if first < before]


def _shown(skips: list[tuple[int, int]]) -> str:
    return ", ".join(f"[{first}, {end})" for first, end in skips) or "none"
