"""A run opened for questions: its history, the order of each segment, the versions it read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from datapipe.dataset import Dataset, open_dataset
from datapipe.dataset.parts import Int64s, Part
from datapipe.dataset.run_records import DatasetUse, RunSegment
from datapipe.dataset.runs import RunStore, SegmentFiles, check_run_name, run_places
from datapipe.errors import DamagedError, OrderError, UnknownReferenceError
from datapipe.order import History, Order, OrderSpec, Planned, Stretch

__all__ = ["OpenRun", "SegmentView", "open_run"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentView:
    """One segment of a run: its record, its order, and the dataset versions that it read."""

    record: RunSegment
    order: Order
    datasets: tuple[Dataset, ...]

    def part(self, source: int, shard: int) -> tuple[Part, int]:
        """Returns the part of a dataset that holds a shard of the order, and its number there."""
        return self.record.sources[source].split(shard)

    def source_name(self, part: Part) -> str:
        """Returns what the run calls a source of a dataset."""
        use = self.record.datasets[part.dataset]
        return part.source if use.name is None else f"{use.name}/{part.source}"


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenRun:
    """A run's record, opened."""

    name: str
    store: RunStore
    history: History
    segments: tuple[SegmentView, ...]

    def versions(self) -> list[Dataset]:
        """Returns the dataset versions that the run read, each once, in the order of segments."""
        used = [version for view in self.segments for version in view.datasets]
        return list({version.manifest_sha256: version for version in used}.values())

    def stretch_of(self, batch: int) -> Stretch:
        """Returns the stretch that holds a batch.

        Raises:
            UnknownReferenceError: the run has no such batch.
        """
        stretch = self.history.stretch_of(batch)
        if stretch is None:
            raise UnknownReferenceError(
                f"run {self.name} has no batch {batch}: {self._extent()}; batches count from 0"
            )
        return stretch

    def batches_of_step(self, step: int) -> list[int]:
        """Returns the batches of an optimizer step, ascending.

        Raises:
            UnknownReferenceError: the run has no such step.
        """
        batches = self.history.batches_of_step(step)
        if not batches:
            raise UnknownReferenceError(
                f"run {self.name} has no step {step}: {self._extent()}; steps count from 0"
            )
        return batches

    def _extent(self) -> str:
        if not self.history.stretches:
            return "no batch of it was delivered"
        last = self.history.stretches[-1]
        if last.end is None:
            return "it has no end, and no such number is in it"
        step = int(last.batches.segment.step_of(last.end - 1))
        return f"its last batch is {last.end - 1}, in step {step}"


def open_run(dataset: Dataset | str, *, run: str, runs: str | None = None) -> OpenRun:
    """Opens the record of a run.

    Args:
        dataset: a dataset that the run read, at any version, wherever it lies now.
        run: the run's name.
        runs: where records are; None: in the dataset, or in ./datapipe-runs.

    Raises:
        UnknownReferenceError: no such run, or a version that it read isn't to be found.
        DamagedError: the record can't be read, or isn't of the versions that it names.
        DatasetError: the record or a dataset can't be opened.
        UsageError: a name that no run can have, or `runs` isn't the URL of a store.
    """
    given = open_dataset(dataset) if isinstance(dataset, str) else dataset
    store, segment_files = _find(given, check_run_name(run), runs)
    versions: dict[str, Dataset] = {given.manifest_sha256: given}
    orders: dict[str, Order] = {}
    segments = []
    for number, files in enumerate(segment_files):
        record = files.record
        used = tuple(_version(use, given, versions, run) for use in record.datasets)
        with _damage(store, run, number):
            orders[record.spec] = _order(store, record, run, used, known=orders)
        segments.append(SegmentView(record=record, order=orders[record.spec], datasets=used))
    planned = [
        Planned.of(
            view.record,
            spec=view.order.spec,
            next_batch=files.next_batch,
            saved_sample=files.saved_sample,
        )
        for view, files in zip(segments, segment_files, strict=True)
    ]
    return OpenRun(name=run, store=store, history=History(planned), segments=tuple(segments))


def _find(given: Dataset, run: str, runs: str | None) -> tuple[RunStore, list[SegmentFiles]]:
    places = run_places([given.repository], runs=runs)
    for store in places:
        if found := store.read(run):
            return store, found
    raise places[0].unknown(run)


def _order(
    store: RunStore,
    record: RunSegment,
    run: str,
    datasets: Sequence[Dataset],
    *,
    known: Mapping[str, Order],
) -> Order:
    order = known.get(record.spec)
    spec = _spec(store, record, run) if order is None else order.spec
    _check_sources(record, spec)
    return Order.open(spec, _tokens(record, datasets)) if order is None else order


def _spec(store: RunStore, record: RunSegment, run: str) -> OrderSpec:
    data = store.spec(record.spec)
    if data is None:
        raise DamagedError(
            f"the spec {record.spec} of run {run} is missing in {store.place}: which samples its "
            "batches had can't be known; restore it from a copy"
        )
    return OrderSpec.from_json(data)


def _tokens(record: RunSegment, datasets: Sequence[Dataset]) -> dict[str, Int64s]:
    for source in record.sources:
        for part in source.parts:
            _check_part(part, datasets[part.dataset])
    return {source.name: source.num_tokens(datasets) for source in record.sources}


def _check_part(part: Part, dataset: Dataset) -> None:
    """Raises ValueError unless a dataset has the shards that the record says were read."""
    known = {source.name: source.num_shards for source in dataset.sources}
    if part.source not in known:
        raise ValueError(f"{dataset.url}@{dataset.version} has no source {part.source}")
    if part.num_shards > known[part.source]:
        raise ValueError(
            f"it has {part.num_shards} shards of source {part.source}, "
            f"{dataset.url}@{dataset.version} has {known[part.source]}"
        )


def _check_sources(record: RunSegment, spec: OrderSpec) -> None:
    """Raises ValueError unless the record's sources are those of its spec."""
    read = [(source.name, source.num_shards) for source in record.sources]
    if [name for name, _ in read] != [source.name for source in spec.sources] or any(
        num != source.shards_to for (_, num), source in zip(read, spec.sources, strict=True)
    ):
        raise ValueError("its sources have other shards than its spec says")


@contextlib.contextmanager
def _damage(store: RunStore, run: str, number: int) -> Iterator[None]:
    """Turns what a record makes go wrong into damage of it."""
    try:
        yield
    except (OrderError, ValueError) as error:
        raise DamagedError(
            f"run {run} in {store.place} is damaged at segment {number}: {error}; what its batches "
            "had can't be known; restore its files from a copy"
        ) from error


def _version(use: DatasetUse, given: Dataset, versions: dict[str, Dataset], run: str) -> Dataset:
    """Returns the version that the run read: in the dataset given, else where it was then."""
    if use.manifest not in versions:
        versions[use.manifest] = _searched(use, given, run)
    return versions[use.manifest]


def _searched(use: DatasetUse, given: Dataset, run: str) -> Dataset:
    try:
        return given.repository.open(use.manifest)
    except UnknownReferenceError:
        pass
    try:
        return open_dataset(f"{use.url}@{use.manifest}")
    except UnknownReferenceError as error:
        raise UnknownReferenceError(
            f"run {run} read version {use.version} of {use.url} (manifest {use.manifest[:16]}), "
            f"which is neither there nor in {given.url}: what it delivered can't be named; give "
            "the place where that dataset lies now"
        ) from error
