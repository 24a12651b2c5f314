"""Running stages over a sample, with what each decided and why."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dedup import comparison_keys
from datapipe.documents import Stage, StageResult, dropped_rows, thresholds_of
from datapipe.engine.preview.estimate import num_text_bytes
from datapipe.engine.preview.report import Example, RuleReport, StageReport

__all__ = ["ExactDuplicates", "Measured", "run_stages"]

_SHOWN_CHARACTERS = 300


class ExactDuplicates:
    """The stage `dedup_exact` within a sample: the first of equal texts stays."""

    name = "dedup_exact"
    version = 1

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    @property
    def options(self) -> dict[str, object]:
        """It has none."""
        return {}

    def apply(self, batch: pa.RecordBatch) -> StageResult:
        """Returns the documents whose text wasn't there before."""
        fresh = []
        for key in comparison_keys(batch).to_pylist():
            fresh.append(key not in self._seen)
            self._seen.add(key)
        mask = pa.array(fresh, pa.bool_())
        gone = dropped_rows(batch.filter(pc.invert(mask)), stage=self.name, rule="duplicate")
        return StageResult(batch.filter(mask), gone)


class Measured:
    """One stage of a preview: applies it, and notes what it did.

    Args:
        stage: what to apply.
        examples: documents to keep on each side of every threshold.
    """

    def __init__(self, stage: Stage, *, examples: int) -> None:
        self._stage = stage
        self._examples = examples
        self._thresholds = thresholds_of(stage)
        rules = {
            rule: RuleReport(rule=rule, threshold=threshold.value)
            for rule, threshold in self._thresholds.items()
        }
        self.report = StageReport(stage=stage.name, rules=rules)

    def warm_up(self, batch: pa.RecordBatch) -> None:
        """Lets the stage load models and compile kernels, which a build does once."""
        if self.report.documents_in == 0 and not isinstance(self._stage, ExactDuplicates):
            self._stage.apply(batch)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns what the stage leaves of the batch."""
        started = time.process_time()
        result = self._stage.apply(batch)
        report = self.report
        report.seconds += time.process_time() - started
        report.documents_in += batch.num_rows
        report.bytes_in += num_text_bytes(batch)
        report.kept += result.batch.num_rows
        self._count_sources(batch, result.batch)
        self._count_changed(batch, result.batch)
        self._note_dropped(batch, result.dropped)
        self._note_kept(result)
        return result.batch

    def _count_sources(self, before: pa.RecordBatch, after: pa.RecordBatch) -> None:
        for source in set(before.column("source").to_pylist()):
            came, stayed = self.report.kept_of_source.get(source, (0, 0))
            came += pc.sum(pc.equal(before.column("source"), source)).as_py() or 0
            stayed += pc.sum(pc.equal(after.column("source"), source)).as_py() or 0
            self.report.kept_of_source[source] = came, stayed

    def _count_changed(self, before: pa.RecordBatch, after: pa.RecordBatch) -> None:
        if not after.num_rows:
            return
        places = pc.index_in(after.column("doc_id"), value_set=before.column("doc_id"))
        same = pc.equal(before.column("text").take(places), after.column("text"))
        self.report.changed += after.num_rows - same.true_count

    def _note_dropped(self, batch: pa.RecordBatch, dropped: pa.Table) -> None:
        if not dropped.num_rows:
            return
        places = pc.index_in(dropped["doc_id"], value_set=batch.column("doc_id")).to_pylist()
        columns = (dropped[name].to_pylist() for name in ("rule", "value", "threshold"))
        for place, rule, value, threshold in zip(places, *columns, strict=True):
            report = self.report.rules.setdefault(rule, RuleReport(rule=rule, threshold=threshold))
            report.dropped += 1
            self._keep_nearest(report.examples_dropped, report, batch, place, value)

    def _note_kept(self, result: StageResult) -> None:
        """Notes documents that stayed, beside the thresholds that they met."""
        signals, kept = result.signals, result.batch
        if signals is None or not kept.num_rows:
            return
        places = pc.index_in(kept.column("doc_id"), value_set=signals.column("doc_id"))
        for rule, threshold in self._thresholds.items():
            report = self.report.rules[rule]
            values = signals.column(threshold.signal).take(places).to_pylist()
            for place, value in enumerate(values):
                if value is not None:
                    self._keep_nearest(report.examples_kept, report, kept, place, float(value))

    def _keep_nearest(
        self,
        examples: list[Example],
        report: RuleReport,
        batch: pa.RecordBatch,
        place: int,
        value: float | None,
    ) -> None:
        distance = _distance(value, report.threshold)
        if len(examples) == self._examples:
            if not examples or distance >= _distance(examples[-1].value, report.threshold):
                return
            examples.pop()
        examples.append(_example(batch, place, value))
        examples.sort(key=lambda example: _distance(example.value, report.threshold))


def _distance(value: float | None, threshold: float | None) -> float:
    return 0.0 if value is None or threshold is None else abs(value - threshold)


def _example(batch: pa.RecordBatch, place: int, value: float | None) -> Example:
    row = {
        name: batch.column(name)[place].as_py()
        for name in ("doc_id", "source_file", "source_offset", "text")
    }
    return Example(
        doc_id=row["doc_id"].hex(),
        source_file=row["source_file"],
        source_offset=row["source_offset"],
        value=value,
        text=row["text"][:_SHOWN_CHARACTERS],
    )


def run_stages(
    batches: Sequence[pa.RecordBatch], stages: Sequence[Measured]
) -> list[pa.RecordBatch]:
    """Returns what all stages leave of the batches."""
    for batch in batches[:1]:
        for stage in stages:
            stage.warm_up(batch.slice(0, 1))
    left = []
    for batch in batches:
        for stage in stages:
            batch = stage.apply(batch)
        left.append(batch)
    return left
