from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from datapipe.engine.stages import document_stage
from datapipe.recipe import load_recipe

Batch = Callable[[list[str]], pa.RecordBatch]
RECIPE = "name: web\ninputs:\n  - {source: crawl, paths: [a.jsonl]}\nstages:\n  - normalize: "


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        ({"zero_width": "strip"}, "a\u200bb\u00ad\u2060\ufeffe\u200df\u200cg", "abe\u200df\u200cg"),
        ({"zero_width": "strip"}, "e\u200b\u0301", "é"),
        ({"line_ends": "all"}, "a\x0bb\x0cc\x85d\u2028e\u2029f\r\ng", "a\nb\nc\nd\ne\nf\ng"),
        ({"trailing_spaces": "strip"}, "a \t\nb\r\n c \n\t", "a\nb\n c\n"),
        ({"unicode": "NFKC"}, "ﬁ ½ \uff21 e\u0301", "fi 1\u20442 A é"),
        ({"line_ends": "all", "zero_width": "strip", "trailing_spaces": "strip"}, "", ""),
    ],
)  # fmt: skip
def test_further_options(batch: Batch, options: dict[str, str], text: str, expected: str) -> None:
    stage = document_stage("normalize", options)
    once, *_ = stage.apply(batch([text, "plain"]))
    assert once.column("text").to_pylist() == [expected, "plain"]
    assert stage.apply(once).batch.equals(once)


def test_only_further_options_that_change_something_are_recorded() -> None:
    old = {"unicode": "NFC", "control_characters": "strip"}
    for given, recorded in (
        ("{}", old),
        ("{zero_width: keep, line_ends: plain, trailing_spaces: keep}", old),
        ("{zero_width: strip}", old | {"zero_width": "strip"}),
    ):
        recipe = load_recipe(f"{RECIPE}{given}\n")
        assert recipe.resolved()["stages"] == [{"normalize": recorded}]
        assert dict(document_stage("normalize", recipe.stages[0].options).options) == recorded
