from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datapipe.errors import OrderError
from datapipe.order import OrderSource, OrderSpec, Phase, resolve_lanes

A = OrderSource(name="a", order_digest="0a" * 32, shards_to=5)
B = OrderSource(name="b", order_digest="0b" * 32, shards_from=2, shards_to=3)


def spec_of(**changes: Any) -> OrderSpec:
    return OrderSpec(**{"sources": (A,), "seq_len": 8, "lanes": 4, **changes})


FULL = spec_of(
    sources=(A, B),
    seed=7,
    tail="drop",
    phases=(Phase(0, {"a": 0.25, "b": 2}), Phase(9, {"b": 1.0, "a": 0})),
    skips=((8, 12), (0, 4), (4, 8)),
    masks=("ff" * 32, "0f" * 32, "ff" * 32),
)


# change only with a spec version
def test_a_spec_is_stored_as_canonical_json() -> None:
    assert FULL.to_bytes().decode() == (
        '{"lanes":4,"masks":["' + "0f" * 32 + '","' + "ff" * 32 + '"],'
        '"phases":[{"from_sample":0,"weights":{"a":0.25,"b":2}},'
        '{"from_sample":9,"weights":{"b":1}}],"seed":7,"seq_len":8,"skips":[[0,12]],'
        '"sources":[{"name":"a","order_digest":"' + "0a" * 32 + '","shards":[0,5]},'
        '{"name":"b","order_digest":"' + "0b" * 32 + '","shards":[2,3]}],'
        '"tail":"drop","version":1,"window_shards":4}'
    )
    assert FULL.digest == "d7ed6781a29712651358d715fe7f86f4b777747fc2ec45d0cd72a946d2f01d2a"


def test_a_spec_comes_back_from_its_bytes_and_from_pickle() -> None:
    assert OrderSpec.from_json(FULL.to_bytes()) == FULL
    assert OrderSpec.from_json(FULL.to_json()).digest == FULL.digest
    assert pickle.loads(pickle.dumps(FULL)) == FULL


@given(st.floats(2**-40, 2**40), st.integers(0, 2**53 - 1))
def test_any_weight_and_seed_come_back(weight: float, seed: int) -> None:
    spec = spec_of(seed=seed, phases=(Phase(0, {"a": weight}),))
    assert OrderSpec.from_json(spec.to_bytes()) == spec


def test_one_source_needs_no_phase() -> None:
    assert spec_of() == spec_of(phases=(Phase(0, {"a": 1.0}),))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seq_len": 0}, "seq_len is 0"),
        ({"seq_len": 8.0}, r"seq_len is 8\.0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**53}, "seed is 9007199254740992"),
        ({"lanes": 0}, "lanes is 0"),
        ({"lanes": 2**20}, "lanes is 1048576"),
        ({"window_shards": 0}, "window_shards is 0"),
        ({"tail": "cut"}, "tail is 'cut': it is one of pad, drop"),
        ({"sources": ()}, "no sources"),
        ({"sources": (A, A), "phases": (Phase(0, {"a": 1}),)}, "two sources .* named a"),
        ({"sources": (A, B)}, "2 sources and no phase"),
        ({"phases": (Phase(0, {"c": 1}),)}, "weights c, which is no source"),
        ({"phases": (Phase(3, {"a": 1}),)}, "first phase starts at sample 3"),
        ({"phases": (Phase(0, {"a": 1}), Phase(0, {"a": 2}))}, "from sample 0 follows"),
        ({"skips": ((4, 6),)}, r"\[4, 6\) is no range of multiples of the 4 lanes"),
        ({"skips": ((8, 8),)}, r"\[8, 8\)"),
        ({"skips": ((-4, 8),)}, "start of a skip is -4"),
        ({"masks": ("abc",)}, "mask is 'abc'"),
    ],
)
def test_a_spec_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OrderError, match=message):
        spec_of(**changes)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"a": -1.0}, r"weight of a is -1\.0"),
        ({"a": float("nan")}, "weight of a is nan"),
        ({"a": "much"}, "weight of a is 'much'"),
        ({"a": 0}, "no positive weight"),
        ({}, "no positive weight"),
    ],
)
def test_weights_are_finite_and_one_is_positive(weights: Any, message: str) -> None:
    with pytest.raises(OrderError, match=message):
        Phase(0, weights)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "name of a source is ''"),
        ({"order_digest": "0A" * 32}, "order digest of source a"),
        ({"shards_to": 0}, "shards 0 up to 0, which is none"),
        ({"shards_from": -1}, "shards_from of source a is -1"),
    ],
)
def test_a_source_names_shards_and_their_digest(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OrderError, match=message):
        OrderSource(**{"name": "a", "order_digest": "0a" * 32, "shards_to": 5, **changes})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version 2 and this program reads version 1"),
        ({"speed": 1}, "unknown key 'speed'"),
        ({"seed": None}, "seed is None"),
        ({"sources": 3}, "can't be read"),
        ({"sources": [{"name": "a"}]}, "a source of the spec lacks 'order_digest'"),
        ({"phases": [{"from_sample": 0, "weights": 1}]}, "give {source: weight}"),
        ({"skips": [[1, 2, 3]]}, "can't be read"),
    ],
)
def test_a_spec_that_cannot_be_read_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(OrderError, match=message):
        OrderSpec.from_json(json.dumps(FULL.to_json() | change))


@pytest.mark.parametrize("text", ["{", "[]", "7", b"\xff"], ids=str)
def test_what_is_no_json_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(OrderError, match="can't be read"):
        OrderSpec.from_json(text)


def test_a_missing_key_is_named() -> None:
    document = FULL.to_json()
    del document["tail"]
    with pytest.raises(OrderError, match="the spec lacks 'tail'"):
        OrderSpec.from_json(document)


@pytest.mark.parametrize(
    ("num_shards", "window_shards", "lanes"),
    [
        ([1], 4, 1),
        ([63], 4, 1),
        ([64], 4, 2),
        ([127], 4, 2),
        ([128], 4, 4),
        ([100, 155], 4, 2),
        ([100, 156], 4, 4),
        ([2048], 4, 64),
        ([1_000_000], 4, 64),
        ([64], 1, 8),
    ],
)
def test_lanes_follow_from_shards_and_window(
    num_shards: list[int], window_shards: int, lanes: int
) -> None:
    assert resolve_lanes(num_shards, window_shards=window_shards) == lanes


def test_lanes_need_a_source() -> None:
    with pytest.raises(OrderError, match="without sources"):
        resolve_lanes([], window_shards=4)
