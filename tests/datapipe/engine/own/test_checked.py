from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from datapipe.documents import StageResult, batch_from_columns, dropped_rows
from datapipe.engine.own import CheckedStage
from datapipe.errors import FailedError


@pytest.fixture
def batch() -> pa.RecordBatch:
    return batch_from_columns(
        ["a", "b", "c"], source="s", source_file="f", offsets=range(3), lengths=[1] * 3
    )


class Stage:
    def __init__(self, apply: Callable[[pa.RecordBatch], Any]) -> None:
        self.apply = apply


def checked(apply: Callable[[pa.RecordBatch], Any]) -> CheckedStage:
    return CheckedStage(Stage(apply), name="mine", options={"a": 1}, where="my.py")


def gone(batch: pa.RecordBatch, *, stage: str = "mine", rule: str = "why") -> pa.Table:
    return dropped_rows(batch, stage=stage, rule=rule)


def none(batch: pa.RecordBatch) -> pa.Table:
    return gone(batch.slice(0, 0))


def with_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), name, values)


def raising(_: pa.RecordBatch) -> Any:
    raise KeyError("no\nsuch " + "x" * 2000)


def with_signals(batch: pa.RecordBatch, **columns: pa.Array) -> StageResult:
    return StageResult(batch, none(batch), pa.RecordBatch.from_pydict(columns))


NONSENSE: dict[str, tuple[Callable[[pa.RecordBatch], Any], str]] = {
    "raises": (raising, r"failed: KeyError: 'no\\nsuch x"),
    "nothing": (lambda _: None, "a NoneType in the place of a StageResult"),
    "one": (lambda b: (b,), "a tuple in the place"),
    "table": (lambda b: (pa.table(b), none(b)), "a Table in the place of a RecordBatch"),
    "list": (lambda b: (b, []), "dropped rows that are a list"),
    "other table": (lambda b: (b, pa.table({"a": [1]})), "dropped rows that aren't DROPPED"),
    "lost": (lambda b: (b.slice(1), none(b)), "1 of 3 documents neither in the batch nor in"),
    "lost all": (lambda b: (b.slice(0, 0), none(b)), "3 of 3 documents neither"),
    "twice": (lambda b: (b.take(pa.array([0, 0, 1, 2])), none(b)), "another order, or one twice"),
    "order": (lambda b: (b.take(pa.array([1, 0, 2])), none(b)), "another order, or one twice"),
    "both": (lambda b: (b, gone(b.slice(1, 1))), "dropped and there all the same"),
    "dropped twice": (
        lambda b: (b.slice(1), gone(b.take(pa.array([0, 0])))),
        "dropped twice",
    ),
    "renamed": (
        lambda b: (b.rename_columns(["words", *b.schema.names[1:]]), none(b)),
        "other columns than those that came: text, words",
    ),
    "less": (lambda b: (b.drop_columns("url"), none(b)), "other columns .*: url"),
    "columns in another order": (
        lambda b: (b.select(b.schema.names[::-1]), none(b)),
        "other columns than those that came: in another order",
    ),
    "type": (
        lambda b: (with_column(b, "text", b.column("text").cast(pa.string())), none(b)),
        "text as string, not large_string",
    ),
    "nulls": (
        lambda b: (with_column(b, "text", pa.nulls(3, pa.large_string())), none(b)),
        "nulls in text",
    ),
    "no utf-8": (
        lambda b: (
            with_column(b, "text", pa.array([b"\xff"] * 3, pa.large_binary()).view("large_string")),
            none(b),
        ),
        "a batch that isn't valid: .*UTF8",
    ),
    "unknown": (
        lambda b: (with_column(b, "doc_id", pa.array([b"x" * 16] * 3, pa.binary(16))), none(b)),
        "3 documents in the batch that didn't come",
    ),
    "origin": (
        lambda b: (with_column(b, "source_offset", pa.array([7, 8, 9])), none(b)),
        "source_offset changed; a stage changes language, media_type, text only",
    ),
    "other stage": (
        lambda b: (b.slice(1), gone(b.slice(0, 1), stage="his")),
        "rows dropped by 'his' in the place of 'mine'",
    ),
    "rule": (lambda b: (b.slice(1), gone(b.slice(0, 1), rule="")), "the rule ''"),
    "null rule": (
        lambda b: (
            b.slice(1),
            gone(b.slice(0, 1)).set_column(8, "rule", pa.nulls(1, pa.string())),
        ),
        "nulls in rule|aren't DROPPED",
    ),
    "dropped origin": (
        lambda b: (
            b.slice(1),
            gone(b.slice(0, 1)).set_column(4, "source_offset", pa.array([99])),
        ),
        "dropped rows with another source_offset",
    ),
    "signals": (lambda b: (b, none(b), 3), "signals that aren't a RecordBatch"),
    "signals of fewer": (
        lambda b: with_signals(b, doc_id=b.column("doc_id").slice(1)),
        "signals of other documents",
    ),
    "signal's name": (
        lambda b: with_signals(b, doc_id=b.column("doc_id"), x=pa.array([1, 2, 3])),
        r"the signal 'x' of int64: name it mine\.SIGNAL",
    ),
    "signal's type": (
        lambda b: with_signals(b, **{"doc_id": b.column("doc_id"), "mine.x": pa.array([[1]] * 3)}),
        r"the signal 'mine\.x' of list",
    ),
}


@pytest.mark.parametrize(("apply", "message"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_one_line_that_names_the_stage(
    batch: pa.RecordBatch, apply: Callable[[pa.RecordBatch], Any], message: str
) -> None:
    with pytest.raises(FailedError, match=message) as refused:
        checked(apply).apply(batch)
    text = str(refused.value)
    assert text.startswith("the stage mine of my.py ")
    assert text.endswith("nothing was committed; correct the stage")
    assert "\n" not in text
    assert len(text) < 700


def test_what_a_stage_may_do_passes(batch: pa.RecordBatch) -> None:
    def apply(batch: pa.RecordBatch) -> Any:
        upper = pc.utf8_upper(batch.column("text"))
        kept = with_column(batch, "text", upper).filter(pa.array([True, False, True]))
        signals = {"doc_id": batch.column("doc_id"), "mine.size": pa.array([1, 2, 3])}
        return kept, gone(batch.slice(1, 1)), pa.RecordBatch.from_pydict(signals)

    kept, dropped, signals = checked(apply).apply(batch)
    assert kept.column("text").to_pylist() == ["A", "C"]
    assert dropped.num_rows == 1
    assert signals is not None
    assert signals.column("mine.size").to_pylist() == [1, 2, 3]


def test_all_may_go_and_nothing_may_come(batch: pa.RecordBatch) -> None:
    stage = checked(lambda b: (b.slice(0, 0), gone(b)))
    assert stage.apply(batch).dropped.num_rows == 3
    assert stage.apply(batch.slice(0, 0)).dropped.num_rows == 0
