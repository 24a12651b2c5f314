"""What a stage of a user must keep to, checked for every batch.

Its documents: those that came, in their order, each once, kept or dropped and none lost; all
columns as they were but text, language and media type. Whatever breaks this ends the build with one
line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dataset.tables import DROPPED, SIGNAL_TYPES
from datapipe.documents import StageResult, dropped_rows
from datapipe.errors import DatapipeError, FailedError

__all__ = ["CheckedStage"]

_MAY_CHANGE = frozenset({"text", "language", "media_type"})
_CARRIED = ("content_hash", "source", "source_file", "source_offset", "source_length", "record_id")
_SIGNAL = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_RULE = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


class _Nonsense(Exception):
    """What is wrong with a result."""


class CheckedStage:
    """A user's stage that can do nothing but what a stage may."""

    def __init__(self, stage: Any, *, name: str, options: Mapping[str, Any], where: str) -> None:
        self._stage = stage
        self._where = where
        self.name = name
        self.version = 1
        self.options: Mapping[str, object] = dict(options)

    def apply(self, batch: pa.RecordBatch) -> StageResult:
        """Returns what the stage made of a batch.

        Raises:
            FailedError: it failed, or returned nonsense.
        """
        try:
            result = self._stage.apply(batch)
        except DatapipeError:
            raise
        except Exception as error:
            raise self._failed(f"failed: {type(error).__name__}: {error}") from error
        try:
            return self._checked(batch, result)
        except _Nonsense as nonsense:
            raise self._failed(f"returned nonsense: {nonsense}") from nonsense

    def _failed(self, what: str) -> FailedError:
        shown = " ".join(what.split())[:500]
        return FailedError(
            f"the stage {self.name} of {self._where} {shown}; nothing was committed; correct the "
            "stage"
        )

    def _checked(self, batch: pa.RecordBatch, result: object) -> StageResult:
        if not isinstance(result, tuple) or len(result) not in (2, 3):
            raise _Nonsense(f"a {type(result).__name__} in the place of a StageResult")
        kept, dropped, signals = (*result, None)[:3]
        _check_batch(batch, kept)
        dropped = self._checked_drops(dropped)
        stay = _places(batch, kept.column("doc_id"), "the batch")
        left = _places(batch, dropped.column("doc_id").combine_chunks(), "the dropped rows")
        if np.any(np.diff(stay) <= 0):
            raise _Nonsense("documents in another order, or one twice")
        both = np.concatenate([stay, left])
        if len(np.unique(both)) != len(both):
            raise _Nonsense("documents that are dropped and there all the same, or dropped twice")
        if len(both) != batch.num_rows:
            lost = batch.num_rows - len(both)
            raise _Nonsense(
                f"{lost} of {batch.num_rows} documents neither in the batch nor in the dropped rows"
            )
        _check_columns(batch, kept, stay)
        _check_origins(batch, dropped, left)
        return StageResult(kept, dropped, self._checked_signals(batch, signals))

    def _checked_drops(self, dropped: object) -> pa.Table:
        if not isinstance(dropped, pa.Table):
            raise _Nonsense(f"dropped rows that are a {type(dropped).__name__}, not a Table")
        try:
            table = dropped.select(DROPPED.names).cast(DROPPED).combine_chunks()
            table.validate(full=True)
        except (KeyError, pa.ArrowException) as error:
            raise _Nonsense(f"dropped rows that aren't DROPPED: {error}") from error
        for field in DROPPED:
            if not field.nullable and table.column(field.name).null_count:
                raise _Nonsense(f"nulls in {field.name} of the dropped rows")
        stages = set(table["stage"].to_pylist()) - {self.name}
        if stages:
            raise _Nonsense(f"rows dropped by {stages.pop()!r} in the place of {self.name!r}")
        rules = [rule for rule in set(table["rule"].to_pylist()) if not _RULE.fullmatch(rule)]
        if rules:
            raise _Nonsense(f"the rule {rules[0]!r}: write letters, digits and _")
        return table

    def _checked_signals(self, batch: pa.RecordBatch, signals: object) -> pa.RecordBatch | None:
        if signals is None:
            return None
        if not isinstance(signals, pa.RecordBatch) or "doc_id" not in signals.schema.names:
            raise _Nonsense("signals that aren't a RecordBatch with doc_id")
        if not signals.column("doc_id").equals(batch.column("doc_id")):
            raise _Nonsense("signals of other documents than those that came, or in another order")
        for field in signals.schema:
            stage, _, signal = field.name.partition(".")
            named = stage == self.name and _SIGNAL.fullmatch(signal)
            if field.name != "doc_id" and not (named and field.type in SIGNAL_TYPES):
                raise _Nonsense(
                    f"the signal {field.name!r} of {field.type}: name it {self.name}.SIGNAL, of "
                    f"the types {', '.join(map(str, SIGNAL_TYPES))}"
                )
        return signals


def _check_batch(batch: pa.RecordBatch, kept: object) -> None:
    if not isinstance(kept, pa.RecordBatch):
        raise _Nonsense(f"a {type(kept).__name__} in the place of a RecordBatch")
    if kept.schema.names != batch.schema.names:
        other = sorted({*kept.schema.names} ^ {*batch.schema.names}) or ["in another order"]
        raise _Nonsense(f"other columns than those that came: {', '.join(other)}")
    for field in batch.schema:
        found = kept.schema.field(field.name)
        if found.type != field.type:
            raise _Nonsense(f"{field.name} as {found.type}, not {field.type}")
        if not field.nullable and kept.column(field.name).null_count:
            raise _Nonsense(f"nulls in {field.name}")
    try:
        kept.validate(full=True)
    except pa.ArrowException as error:
        raise _Nonsense(f"a batch that isn't valid: {error}") from error


def _places(batch: pa.RecordBatch, doc_ids: pa.Array, what: str) -> npt.NDArray[np.int64]:
    places = pc.index_in(doc_ids, value_set=batch.column("doc_id"))
    if places.null_count:
        raise _Nonsense(f"{places.null_count} documents in {what} that didn't come")
    return np.asarray(places.to_numpy(), np.int64)


def _check_columns(
    batch: pa.RecordBatch, kept: pa.RecordBatch, stay: npt.NDArray[np.int64]
) -> None:
    came = batch if len(stay) == batch.num_rows else batch.take(pa.array(stay))
    for name in batch.schema.names:
        if name not in _MAY_CHANGE and not kept.column(name).equals(came.column(name)):
            raise _Nonsense(
                f"{name} changed; a stage changes {', '.join(sorted(_MAY_CHANGE))} only"
            )


def _check_origins(batch: pa.RecordBatch, dropped: pa.Table, left: npt.NDArray[np.int64]) -> None:
    right = dropped_rows(batch.take(pa.array(left)), stage="", rule="")
    for name in _CARRIED:
        if dropped[name].to_pylist() != right[name].to_pylist():
            raise _Nonsense(f"dropped rows with another {name} than their documents")
