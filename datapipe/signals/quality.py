"""The stage `quality`: measures texts and drops what fails a profile's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.documents import StageResult, Threshold, dropped_rows, with_values
from datapipe.documents.characters import unicode_version
from datapipe.signals.decide import COLUMN, decide
from datapipe.signals.measure import kept_lines, measure
from datapipe.signals.names import SIGNALS, Family, families_of
from datapipe.signals.profiles import PROFILES, Lines, Rule, with_thresholds

__all__ = ["Quality", "QualityOptions"]


@dataclass(frozen=True, kw_only=True, slots=True)
class QualityOptions:
    """What `quality` does."""

    profile: tuple[str, ...]
    """Names of PROFILES, applied one after another."""
    thresholds: Mapping[str, float | None] = field(default_factory=dict)
    """Other thresholds by rule; None: the rule isn't applied."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.profile if name not in PROFILES]
        if unknown or not self.profile:
            raise ValueError(f"profile is one or more of {', '.join(PROFILES)}")


class _Pass(NamedTuple):
    """Rules that look at one text; before it, the lines that stay are chosen."""

    lines: Lines | None
    rules: tuple[Rule, ...]


class Quality:
    """Drops documents by the signals of their texts; keeps the signals of all of them.

    Adjacent filters share one computation; one that chooses lines begins another.
    """

    name = "quality"
    version = 1

    def __init__(self, options: QualityOptions) -> None:
        self._options = options
        filters = [found for name in options.profile for found in PROFILES[name]]
        self._passes: list[_Pass] = []
        for found in with_thresholds(filters, options.thresholds):
            if found.lines is None and self._passes:
                before = self._passes.pop()
                self._passes.append(before._replace(rules=before.rules + found.rules))
            else:
                self._passes.append(_Pass(found.lines, found.rules))

    @property
    def options(self) -> Mapping[str, object]:
        """All options, as JSON values, and the version of the Unicode tables."""
        return {
            "profile": list(self._options.profile),
            "thresholds": dict(self._options.thresholds),
            "unicode": unicode_version(),
        }

    @property
    def thresholds(self) -> Mapping[str, Threshold]:
        """What each rule compares with what, for those who look for documents next to it."""
        found: dict[str, Threshold] = {}
        before: list[str] = []
        for one in self._passes:
            for rule in one.rules:
                column = COLUMN + _place(rule.signal, before)
                found.setdefault(rule.name, Threshold(column, rule.threshold))
            families = families_of(rule.signal for rule in one.rules)
            before += [name for name, family in SIGNALS.items() if family & families]
        return found

    def apply(self, batch: pa.RecordBatch) -> StageResult:
        """Returns the documents that stay, the DROPPED rows of the others, all their signals."""
        columns: dict[str, npt.NDArray[np.float64]] = {}
        rows = np.arange(batch.num_rows)
        dropped = [dropped_rows(batch.slice(0, 0), stage=self.name, rule="")]
        left = batch
        for found in self._passes:
            left, signals = _measured(left, found)
            _keep_signals(columns, signals, rows, batch.num_rows)
            failed = decide(found.rules, signals, left.num_rows).failed
            dropped += _dropped(left, found.rules, failed, signals)
            stays = failed < 0
            left, rows = left.filter(pa.array(stays)), rows[stays]
        return StageResult(left, pa.concat_tables(dropped), _signal_batch(batch, columns))


def _measured(
    batch: pa.RecordBatch, found: _Pass
) -> tuple[pa.RecordBatch, dict[str, npt.NDArray[np.float64]]]:
    signals: dict[str, npt.NDArray[np.float64]] = {}
    if found.lines is not None:
        lines = found.lines
        texts, signals = kept_lines(
            batch.column("text"),
            terminal=lines.terminal,
            min_words=lines.min_words,
            max_word_chars=lines.max_word_chars,
        )
        batch = with_values(batch, "text", texts)
    wanted = [rule.signal for rule in found.rules if SIGNALS[rule.signal] is not Family.C4]
    return batch, signals | measure(batch.column("text"), wanted)


def _place(name: str, before: Sequence[str]) -> str:
    """Returns the column of a signal; measured again, the name says how often."""
    count = before.count(name)
    return f"{name}.{count + 1}" if count else name


def _keep_signals(
    columns: dict[str, npt.NDArray[np.float64]],
    signals: Mapping[str, npt.NDArray[np.float64]],
    rows: npt.NDArray[np.int64],
    total: int,
) -> None:
    """Adds signals, spread over all rows."""
    for name, values in signals.items():
        place = _place(name, [column.split(".")[0] for column in columns])
        columns[place] = np.full(total, np.nan)
        columns[place][rows] = values


def _dropped(
    batch: pa.RecordBatch,
    rules: Sequence[Rule],
    failed: npt.NDArray[np.int64],
    signals: Mapping[str, npt.NDArray[np.float64]],
) -> list[pa.Table]:
    tables = []
    for number in np.unique(failed[failed >= 0]):
        rule, mask = rules[number], failed == number
        tables.append(
            dropped_rows(
                batch.filter(pa.array(mask)),
                stage=Quality.name,
                rule=rule.name,
                value=pa.array(signals[rule.signal][mask]),
                threshold=rule.threshold,
            )
        )
    return tables


def _signal_batch(
    batch: pa.RecordBatch, columns: Mapping[str, npt.NDArray[np.float64]]
) -> pa.RecordBatch:
    arrays = [batch.column("doc_id")]
    arrays += [pa.array(values, mask=np.isnan(values)) for values in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, ["doc_id", *(COLUMN + name for name in columns)])
