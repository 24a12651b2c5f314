from __future__ import annotations

import pytest

from datapipe.errors import OrderError
from datapipe.order import Order, OrderSource, OrderSpec, Phase, end_sample


def order_of(*names: str, skips: tuple[tuple[int, int], ...] = ()) -> Order:
    sources = tuple(OrderSource(name=n, order_digest="0" * 64, shards_to=1) for n in names)
    phases = (Phase(0, dict.fromkeys(names, 1)),)
    spec = OrderSpec(sources=sources, seq_len=8, lanes=2, phases=phases, skips=skips)
    return Order.open(spec, {name: [81] for name in names})


@pytest.mark.parametrize(
    ("limits", "end"),
    [
        ({}, None),
        ({"epochs": 1}, 10),
        ({"epochs": 3}, 30),
        ({"max_samples": 7}, 11),
        ({"max_samples": 2}, 2),
        ({"max_tokens": 63}, 11),
        ({"max_tokens": 800, "max_samples": 3}, 7),
        ({"epochs": 1, "max_samples": 7}, 10),
    ],
)
def test_the_first_limit_ends_the_stream(limits: dict[str, int], end: int | None) -> None:
    assert end_sample(order_of("a", skips=((2, 6),)), **limits) == end


@pytest.mark.parametrize(
    ("names", "limits", "message"),
    [
        ("ab", {"epochs": 2}, "epochs=2 with 2 sources: a mixture has no epochs"),
        ("a", {"epochs": 0}, "epochs=0"),
        ("a", {"epochs": 2**60}, "epochs=1152921504606846976 of 10 samples"),
        ("a", {"max_samples": 0}, "less than one sample"),
        ("a", {"max_tokens": 7}, "max_tokens=7 is less than one sample"),
    ],
)
def test_an_end_that_cannot_be_is_refused(names: str, limits: dict[str, int], message: str) -> None:
    with pytest.raises(OrderError, match=message):
        end_sample(order_of(*names), **limits)
