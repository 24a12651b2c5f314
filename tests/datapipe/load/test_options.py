"""Every argument of TokenStream: what can't be is refused when the stream is made, in one line."""

from __future__ import annotations

import inspect
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from datapipe.dataset import Dataset
from datapipe.dataset.runs import RunStore
from datapipe.errors import UsageError
from datapipe.load import Phase, TokenStream

NO_INTEGERS: list[Any] = ["4", 1.5, 4.0, True, [4], np.float64(4), np.bool_(True), b"4"]
REQUIRED = {"seq_len", "seed", "window_shards", "batches_per_step"}
INTEGERS = REQUIRED | {"batch_size", "epochs", "max_samples", "max_tokens", "lanes"}
RANKS = {"dp_rank", "dp_world_size"}

REFUSED: dict[str, list[Any]] = {
    "data": [5, None, b"ds", "", [], {}, [5], {"a": 5}, {5: "ds"}, {"": "ds"}, 1.5, True],
    "seq_len": [0, -1, 1 << 40, 1 << 64],
    "batch_size": [0, -4, 1 << 40],
    "seed": [-1, 1 << 53, 1 << 64],
    "split": ["", 5, None, b"train", "trian", ["train"]],
    "mixture": [
        *("crawl", 5, [], {}, ["crawl"], [{"crawl": 1}], {"crawl": float("nan")}),
        *({"crawl": -1}, {"crawl": float("inf")}, {"crawl": 0}, {"crawl": "1"}, {"crawl": True}),
        *({"crawl": None}, {5: 1}, {"": 1}, {"crawls": 1}, {"crawl": 1, "books": 1e-9}),
        *({"crawl@validation": 1}, [Phase(3, {"crawl": 1})], [Phase(0, {"crawls": 1})]),
        [Phase(0, {"crawl": 1}), Phase(0, {"crawl": 1})],
    ],
    "labels": ["nxt", "", None, 1, ["next"], b"next", "shifted"],
    "tail": ["padd", None, 1, "wrap", True],
    "last": ["dropp", None, 1, "keep", False],
    "epochs": [0, -1, 1 << 52, 1 << 64],
    "max_samples": [0, -1, 1 << 53, 1 << 64],
    "max_tokens": [0, -1, 3, 1 << 53, 1 << 64],
    "lanes": [0, -1, 1 << 20],
    "window_shards": [0, -1, 1 << 64],
    "dtype": ["int64", None, int, np.int64, torch.float32, torch.int16, 7],
    "skips": [
        *([1], 5, None, "ab", {0: 1}, [(1,)], [(1, 2, 3)], [(5, 2)], [(-4, 4)], [(0.5, 4)]),
        *([("0", "4")], ["04"], [(0, 1 << 60)], [None], [(True, 4)]),
    ],
    "dp_rank": [-1, 2, 1 << 64],
    "dp_world_size": [0, -1, 1 << 40],
    "batches_per_step": [0, -1, 1 << 64],
    "run": ["", "../x", 5, True, b"r", "a b", Path("r"), ["r"]],
    "runs": ["", 5, "nothing://x", b"r", ["r"]],
}
BASE: dict[str, Any] = {"seq_len": 16, "batch_size": 4}


def stream(dataset: Any, **options: Any) -> TokenStream:
    given = BASE | options
    if RANKS & set(options):
        given = {"dp_rank": 0, "dp_world_size": 2} | given
    return TokenStream(given.pop("data", dataset), **given)


def cases() -> list[Any]:
    found = []
    for name, values in REFUSED.items():
        more: list[Any] = NO_INTEGERS if name in INTEGERS | RANKS else []
        if name in REQUIRED:
            more = [*more, None]
        for value in [*values, *more]:
            found.append(pytest.param(name, value, id=f"{name}={value!r}"[:60]))
    return found


@pytest.mark.parametrize(("name", "value"), cases())
def test_what_cannot_be_is_refused_in_one_line(streamed: Dataset, name: str, value: Any) -> None:
    with pytest.raises(UsageError) as raised:
        stream(streamed, **{name: value})
    message = str(raised.value)
    assert "\n" not in message
    assert len(message) < 500
    words = {"mixture": "phase|weight|mixture"}.get(name, name.partition("_")[0])
    assert re.search(words, message)


def test_every_argument_is_in_the_table() -> None:
    names = set(inspect.signature(TokenStream.__init__).parameters) - {"self"}
    assert names == set(REFUSED)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        pytest.param({"seq_len": 0}, r"seq_len=0: it is an integer from 1 to 1073741824", id="int"),
        pytest.param({"epochs": 1.5}, r"epochs=1.5: it is an integer from 1", id="float"),
        pytest.param({"labels": "nxt"}, r"'nxt': it is one of next, same; did you mean", id="word"),
        pytest.param({"tail": "padd"}, r"one of pad, drop; did you mean pad\?", id="tail"),
        pytest.param({"last": "keep"}, r"last='keep': it is one of drop, repeat$", id="last"),
        pytest.param(
            {"mixture": {"crawls": 1}}, r"no such source.*are .*crawl.*mean crawl\?", id="source"
        ),
        pytest.param({"mixture": {"crawl": -2}}, r"crawl the weight -2", id="weight"),
        pytest.param({"mixture": {"crawl": 0}}, r"no positive weight", id="weights"),
        pytest.param({"mixture": {"crawl": 1}, "epochs": 1}, r"epochs=1 with a mix", id="epochs"),
        pytest.param({"skips": [(0, 4), 7]}, r"skips\[1\]=7: it is a pair", id="skips"),
        pytest.param({"dp_rank": 2}, r"rank 2 of 2", id="rank"),
        pytest.param({"dtype": "int64"}, r"dtype='int64': it is torch.int64", id="dtype"),
        pytest.param({"batch_size": 1 << 30}, r"tokens a batch: at most", id="batch"),
        pytest.param({"seq_len": 99_999, "tail": "drop"}, r"no sample", id="longer than shards"),
        pytest.param({"max_tokens": 3}, r"less than one sample", id="max_tokens"),
        pytest.param({"runs": "nothing://x"}, r"runs=nothing", id="runs"),
        pytest.param({"run": "../x"}, r"can't name a run", id="run"),
        pytest.param(
            {"batch_size": 1 << 20, "seq_len": 1, "dp_world_size": 1 << 10},
            r"rows a global batch: at most",
            id="global batch",
        ),
    ],
)
def test_a_message_says_the_value_and_what_is_allowed(
    streamed: Dataset, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(UsageError, match=match):
        stream(streamed, **options)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.int16, torch.tensor])
def test_integers_of_other_libraries_are_taken_and_recorded(own: Dataset, kind: Any) -> None:
    numbers = {"seq_len": 16, "batch_size": 4, "seed": 3, "epochs": 2, "lanes": 2}
    numbers |= {"window_shards": 2, "batches_per_step": 2, "max_samples": 40, "max_tokens": 999}
    numbers |= {"dp_rank": 0, "dp_world_size": 2}
    options: dict[str, Any] = {name: kind(number) for name, number in numbers.items()}
    made = stream(own, **options, skips=[(kind(0), kind(8))], run="r")
    same = stream(own, **numbers, skips=[(0, 8)])
    assert made.spec == same.spec
    assert len(made) == len(same)
    next(iter(made))
    (segment,) = RunStore.of(own.repository).segments("r")
    assert (segment.global_batch_size, segment.batches_per_step) == (8, 2)


@pytest.mark.parametrize("weight", [np.float32(0.5), np.int64(1), Fraction(1, 2), np.float64(2)])
def test_weights_may_be_numbers_of_any_library(streamed: Dataset, weight: Any) -> None:
    made = stream(streamed, mixture={"crawl": weight, "books": weight}, max_samples=8)
    plain = dict.fromkeys(("crawl", "books"), float(weight))
    assert made.spec == stream(streamed, mixture=plain, max_samples=8).spec
    phases = [Phase(np.int64(0), {"crawl": weight, "books": weight})]  # type: ignore[arg-type]
    assert stream(streamed, mixture=phases, max_samples=8).spec == made.spec


def test_places_may_be_paths(streamed: Dataset, tmp_path: Path) -> None:
    path = Path(streamed.url)
    for data in (path, [path], [str(path)]):
        assert stream(data).spec == stream(streamed).spec
    assert stream({"a": path, "b": path}).spec.sources[0].num_shards == 16
    next(iter(stream(path, run="r", runs=tmp_path / "records")))
    assert RunStore.at(str(tmp_path / "records")).runs() == ["r"]


def test_ranges_may_be_an_array(streamed: Dataset) -> None:
    made = stream(streamed, skips=np.array([[0, 4], [8, 12]]))
    assert made.spec.skips == ((0, 4), (8, 12))
