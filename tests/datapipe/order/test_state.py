from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.errors import StateError
from datapipe.order import (
    Delivered,
    Order,
    OrderSource,
    OrderSpec,
    Phase,
    State,
    accept_state,
    first_difference,
)


def source_of(name: str, shards_to: int = 5) -> OrderSource:
    return OrderSource(name=name, order_digest="0" * 64, shards_to=shards_to)


A, B, C = (source_of(name) for name in "abc")
SPEC = OrderSpec(
    sources=(A, B),
    seq_len=8,
    lanes=4,
    phases=(Phase(0, {"a": 3, "b": 1}), Phase(100, {"a": 1, "b": 1})),
    skips=((40, 48), (120, 160)),
)
VALUE: dict[Any, Any] = {"version": 1, "spec_digest": "a" * 64, "next_sample": 7}
STATE = State(spec_digest=SPEC.digest, next_sample=80)


def test_the_same_order_continues_without_its_spec() -> None:
    assert accept_state(STATE, spec=SPEC) == 80


@pytest.mark.parametrize(
    "changes",
    [
        {"phases": (Phase(0, {"a": 0.75, "b": 0.25}), Phase(80, {"b": 1}))},
        {"phases": (Phase(0, {"a": 3, "b": 1}),)},
        {"skips": ((40, 48), (80, 84))},
        {"masks": ("ff" * 32,)},
        {"sources": (A, B, C), "phases": (SPEC.phases[0], Phase(90, {"c": 1}))},
    ],
    ids=["weights from now on", "no later phase", "skips from now on", "masks", "a source added"],
)
def test_changes_from_next_sample_on_are_accepted(changes: dict[str, Any]) -> None:
    assert accept_state(STATE, spec=replace(SPEC, **changes), earlier=SPEC) == 80


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seq_len": 16}, "seq_len was 8 and is 16"),
        ({"seed": 1}, "seed was 0 and is 1"),
        ({"lanes": 2}, "lanes was 4 and is 2"),
        ({"window_shards": 1}, "window_shards was 4 and is 1"),
        ({"tail": "drop"}, "tail was pad and is drop"),
        ({"sources": (B, A)}, "source 0 was a and is b"),
        ({"sources": (source_of("a", 6), B)}, "had the shards 0 up to 4 of 0+ and has 0 up to 5"),
        (
            {"sources": (replace(A, order_digest="1" * 64), B)},
            "source a had the shards 0 up to 4 of 0000000000000000 .* 0 up to 4 of 1111",
        ),
        (
            {"phases": (Phase(0, {"a": 1, "b": 1}),)},
            "phase 0 was from sample 0 with a 3, b 1 and is from sample 0 with a 1, b 1",
        ),
        (
            {"phases": (SPEC.phases[0], Phase(79, {"a": 1}))},
            "phase 1 was none and is from sample 79",
        ),
        ({"skips": ()}, r"skips were \[40, 48\) and are none"),
        ({"skips": ((40, 48), (76, 84))}, r"skips were \[40, 48\) and are \[40, 48\), \[76, 80\)"),
    ],
)
def test_the_first_difference_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(StateError, match=f"(?s)can't be continued: .*{message}"):
        accept_state(STATE, spec=replace(SPEC, **changes), earlier=SPEC)


def test_without_the_earlier_spec_only_an_equal_digest_is_accepted() -> None:
    later = replace(SPEC, masks=("ff" * 32,))
    with pytest.raises(StateError, match="wasn't found in s3://b/_runs, /data/runs: whether"):
        accept_state(STATE, spec=later, searched=["s3://b/_runs", "/data/runs"])
    with pytest.raises(StateError, match="the file is damaged"):
        accept_state(STATE, spec=later, earlier=later)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "NoneType 'None' is no state"),
        ("state", "str 'state' is no state"),
        ([1, 2], "list .* is no state"),
        ({**VALUE, "version": 2}, "version 2 .* reads version 1"),
        ({**VALUE, "version": True}, "version True"),
        ({**VALUE, "version": "1"}, "version '1'"),
        ({}, "version None"),
        ({"version": 1, "spec_digest": "a" * 64}, "one without 'next_sample' is no state"),
        ({**VALUE, "epoch": 1}, "one with 'epoch' is no state"),
        ({7: 1, **VALUE}, "one with '7' is no state"),
        ({**VALUE, "spec_digest": "a"}, "spec_digest='a' is no state"),
        ({**VALUE, "spec_digest": None}, "spec_digest=None is no state"),
        ({**VALUE, "next_sample": -1}, "next_sample=-1 is no state"),
        ({**VALUE, "next_sample": "7"}, "next_sample='7' is no state"),
        ({**VALUE, "next_sample": 7.0}, "next_sample=7.0 is no state"),
        ({**VALUE, "next_sample": True}, "next_sample=True is no state"),
        ({**VALUE, "next_sample": None}, "next_sample=None is no state"),
        ({**VALUE, "next_sample": 1 << 63}, "next_sample=9223372036854775808 is no state"),
    ],
)
def test_what_is_no_state_is_refused(value: Any, message: str) -> None:
    with pytest.raises(StateError, match=message) as raised:
        State.from_json(value)
    assert "\n" not in str(raised.value)


def test_a_number_of_numpy_is_a_number() -> None:
    assert State.from_json({**VALUE, "next_sample": np.int64(7)}).to_json() == {
        **VALUE,
        "next_sample": 7,
    }


def test_skips_that_may_have_been_rounded_otherwise_are_said() -> None:
    later = replace(SPEC, skips=((36, 48),))
    with pytest.raises(StateError, match=r"skips .* rounded to whole global batches.*\[36, 48\)"):
        accept_state(STATE, spec=later)
    with pytest.raises(StateError) as raised:
        accept_state(STATE, spec=replace(SPEC, skips=(), seed=1))
    assert "skips" not in str(raised.value)


def test_a_state_is_three_values() -> None:
    value = {"version": 1, "spec_digest": SPEC.digest, "next_sample": 80}
    assert STATE.to_json() == value
    assert State.from_json(value) == STATE


FIRSTS = st.sampled_from([{"a": 3.0, "b": 1.0}, {"a": 6.0, "b": 2.0}, {"a": 1.0}, {"b": 1.0}])
PHASES = st.builds(
    lambda first, rest: (Phase(0, first), *(Phase(g, w) for g, w in sorted(rest.items()))),
    FIRSTS,
    st.dictionaries(st.sampled_from([8, 16, 24]), FIRSTS, max_size=2),
)
SPECS = st.builds(
    lambda sources, phases, skips: replace(SPEC, sources=sources, phases=phases, skips=skips),
    st.sampled_from([(A, B), (A, B, C), (B, A), (A, source_of("b", 6))]),
    PHASES,
    st.sampled_from([(), ((8, 12),), ((8, 16),), ((16, 20),)]),
)


@settings(max_examples=80, deadline=None)
@given(SPECS, SPECS, st.integers(1, 32))
def test_an_accepted_spec_agrees_on_every_sample_before(
    earlier: OrderSpec, later: OrderSpec, before: int
) -> None:
    tokens = {name: np.full(6, 50) for name in "abc"}
    seen = []
    for spec in (earlier, later):
        numbers = np.flatnonzero(Delivered(spec.skips).holds(np.arange(before)))
        places = Order.open(spec, tokens).locate(numbers)
        names = [spec.sources[s].name for s in places.source]
        seen.append(list(zip(numbers, names, places.shard, places.sample, strict=True)))
    if first_difference(earlier, later, before=before) is None:
        assert seen[0] == seen[1]
    if earlier == later:
        assert first_difference(earlier, later, before=before) is None
