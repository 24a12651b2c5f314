from __future__ import annotations

import pytest

from datapipe.load.spec import adopt_skips
from datapipe.order import OrderSource, OrderSpec


def spec(*skips: tuple[int, int], lanes: int = 2) -> OrderSpec:
    source = OrderSource(name="web", order_digest="a" * 64, shards_to=4)
    return OrderSpec(sources=(source,), seq_len=8, lanes=lanes, skips=skips)


@pytest.mark.parametrize(
    ("mine", "earlier", "before", "asked", "expected"),
    [
        pytest.param(((96, 204),), ((96, 200),), 300, ((100, 199),), ((96, 200),), id="past"),
        pytest.param(((96, 204),), ((96, 200),), 100, ((100, 199),), ((96, 204),), id="to come"),
        pytest.param(
            ((96, 204), (396, 408)),
            ((96, 200),),
            300,
            ((100, 199), (400, 405)),
            ((96, 200), (396, 408)),
            id="another later",
        ),
        pytest.param(((96, 204),), (), 300, ((100, 199),), ((96, 204),), id="new in the past"),
        pytest.param((), ((96, 200),), 300, (), (), id="lifted in the past"),
        pytest.param(((100, 400),), ((100, 204),), 150, ((101, 399),), ((100, 400),), id="across"),
    ],
)
def test_what_was_skipped_stays_skipped_at_another_batch_size(
    mine: tuple[tuple[int, int], ...],
    earlier: tuple[tuple[int, int], ...],
    before: int,
    asked: tuple[tuple[int, int], ...],
    expected: tuple[tuple[int, int], ...],
) -> None:
    adopted = adopt_skips(spec(*mine), earlier=spec(*earlier), before=before, asked=asked)
    assert adopted.skips == expected
