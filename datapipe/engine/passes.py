"""The passes of a build over its units: scan, deduplicate, encode, write shards."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from datapipe.dataset import Repository, ShardRecord
from datapipe.engine.code import code_digest, environment
from datapipe.engine.cut import CutTask, cut_file, files_to_cut, ranges_of, stretch_pieces
from datapipe.engine.encode_unit import ORDER, EncodeTask, TokenizerFiles, encode_unit
from datapipe.engine.executors import Executor
from datapipe.engine.layout import plan_shards
from datapipe.engine.scan import ScanTask, part_piece, scan_unit
from datapipe.engine.shard_task import ShardTask, write_shard
from datapipe.engine.sources import SourceInputs
from datapipe.engine.stages import StageCall
from datapipe.engine.survivors import Removal, ScannedUnit, remove_duplicates, remove_known
from datapipe.engine.units import Unit, plan_units
from datapipe.engine.work import Piece, Work, piece_key
from datapipe.observe import Progress
from datapipe.read import FileRange, Format, InputFile

__all__ = ["Passes", "Scanned", "StageList"]

StageList = tuple[StageCall, ...]
Result = TypeVar("Result")


class _Task(Protocol):
    @property
    def piece(self) -> Piece: ...


Task = TypeVar("Task", bound=_Task)


@dataclass(frozen=True, slots=True)
class Scanned:
    """One part of a unit, where its documents lie, and its record."""

    unit: Unit
    piece: Piece
    record: Mapping[str, Any]


class Passes:
    """Runs the passes of one build; remembers the pieces of work it used."""

    def __init__(self, *, work: Work, executor: Executor, progress: Progress) -> None:
        self._work = work
        self._executor = executor
        self._progress = progress
        self.used: set[Piece] = set()

    def scan(
        self,
        sources: Sequence[SourceInputs],
        digests: Mapping[str, str],
        *,
        stages: StageList,
        compare: bool,
    ) -> list[Scanned]:
        """Reads every unit; returns their parts. `digests` are the files' SHA-256 by path."""
        cut = self._cut(sources, digests)
        tasks = [
            self._scan_task(source, unit, digests, stages, compare)
            for source in sources
            for unit in plan_units(source, cut)
        ]
        sizes = [task.unit.num_bytes for task in tasks]
        records = self._run("read and clean", scan_unit, tasks, sizes, "bytes")
        scanned = [
            Scanned(task.unit, part_piece(task.piece, number), part)
            for task, record in zip(tasks, records, strict=True)
            for number, part in enumerate(record["parts"])
        ]
        self.used.update(item.piece for item in scanned)
        return scanned

    def _cut(
        self, sources: Sequence[SourceInputs], digests: Mapping[str, str]
    ) -> dict[str, list[FileRange]]:
        """Cuts the files for which that pays; returns their ranges by path."""
        tasks = [
            CutTask(self._work, self._cut_key(file, format, digests), file, format)
            for file, format in files_to_cut(sources)
        ]
        if not tasks:
            return {}
        sizes = [task.file.size_bytes for task in tasks]
        records = self._run("unpack", cut_file, tasks, sizes, "bytes")
        pairs = list(zip(tasks, records, strict=True))
        self.used.update(piece for pair in pairs for piece in stretch_pieces(*pair))
        found = {task.file.path: ranges_of(task, record) for task, record in pairs}
        return {path: ranges for path, ranges in found.items() if ranges is not None}

    def _cut_key(self, file: InputFile, format: Format, digests: Mapping[str, str]) -> str:
        return piece_key(
            pass_="cut",
            sha256=digests[file.path],
            format=str(format),
            code=code_digest(),
            environment=environment(),
        )

    def _scan_task(
        self,
        source: SourceInputs,
        unit: Unit,
        digests: Mapping[str, str],
        stages: StageList,
        compare: bool,
    ) -> ScanTask:
        key = piece_key(
            pass_="scan",
            source=unit.source,
            ranges=[_range_identity(piece, digests) for piece in unit.ranges],
            fields=source.fields.model_dump(),
            licence=source.licence,
            stages=_identity(stages),
            compare=compare,
            code=code_digest(),
            environment=environment(),
        )
        return ScanTask(self._work, key, unit, source.fields, source.licence, stages, compare)

    def remove(
        self,
        scanned: Sequence[Scanned],
        *,
        known: pa.Array | None,
        compare: bool,
        sources: Sequence[str],
        existing: pa.Table | None,
    ) -> list[Removal]:
        """Decides, over all units, which documents are in already or are exact duplicates."""
        self._progress.begin("find duplicates", 0, "documents")
        units = [ScannedUnit(item.unit.source, item.piece, item.record["rows"]) for item in scanned]
        removals = remove_known(self._work, units, known)
        if compare:
            duplicates = remove_duplicates(
                self._work, units, removals, sources=sources, existing=existing
            )
            removals = [a.joined(b) for a, b in zip(removals, duplicates, strict=True)]
        self._progress.end()
        return removals

    def encode(
        self,
        scanned: Sequence[Scanned],
        removed: Sequence[Removal],
        *,
        tokenizer: TokenizerFiles,
        settings: Mapping[str, Any],
    ) -> list[tuple[Piece, Mapping[str, Any]]]:
        """Tokenizes what is left of every unit; returns (piece, record) of each."""
        tasks = [
            self._encode_task(item, removal.bits, tokenizer, settings)
            for item, removal in zip(scanned, removed, strict=True)
        ]
        rows = [item.record["rows"] for item in scanned]
        records = self._run("tokenize", encode_unit, tasks, rows, "documents")
        return [(task.piece, record) for task, record in zip(tasks, records, strict=True)]

    def _encode_task(
        self, item: Scanned, bits: bytes, tokenizer: TokenizerFiles, settings: Mapping[str, Any]
    ) -> EncodeTask:
        key = piece_key(
            pass_="encode",
            scanned=item.piece.key,
            removed=hashlib.sha256(bits).hexdigest(),
            tokenizer=tokenizer.piece.key,
            eos=tokenizer.eos,
            backend=tokenizer.backend,
            special_text=tokenizer.special_text,
            **{**settings, "stages": _identity(settings["stages"])},
        )
        return EncodeTask(
            work=self._work,
            key=key,
            scanned=item.piece,
            removed=bits,
            tokenizer=tokenizer,
            **settings,
        )

    def write_shards(
        self,
        repository: Repository,
        encoded: Mapping[str, Sequence[Piece]],
        *,
        first_numbers: Mapping[str, int],
        shard_tokens: int,
        dtype: np.dtype[Any],
    ) -> list[ShardRecord]:
        """Writes the shards of every source; `encoded` are its units, in order."""
        tasks = [
            task
            for source, pieces in encoded.items()
            for task in self._shard_tasks(
                repository, source, pieces, first_numbers.get(source, 0), shard_tokens, dtype
            )
        ]
        tokens = [sum(rows.num_tokens for _, rows in task.rows) for task in tasks]
        return self._run("write shards", write_shard, tasks, tokens, "tokens")

    def _shard_tasks(
        self,
        repository: Repository,
        source: str,
        pieces: Sequence[Piece],
        first_number: int,
        shard_tokens: int,
        dtype: np.dtype[Any],
    ) -> Iterator[ShardTask]:
        tables = [self._work.get_table(piece, ORDER) for piece in pieces]
        plans = plan_shards(tables, shard_tokens=shard_tokens, first_number=first_number)
        for plan in plans:
            rows = tuple((pieces[part.unit], part) for part in plan.rows)
            key = piece_key(
                pass_="shard",
                source=source,
                number=plan.number,
                rows=[[piece.key, part.start, part.stop] for piece, part in rows],
            )
            yield ShardTask(self._work, repository, key, source, plan.number, dtype.str, rows)

    def _run(
        self,
        phase: str,
        function: Callable[[Task], Result],
        tasks: Sequence[Task],
        sizes: Sequence[int],
        unit: str,
    ) -> list[Result]:
        """Runs the tasks wherever; returns their results in the tasks' order."""
        self.used.update(task.piece for task in tasks)
        self._progress.begin(phase, sum(sizes), unit)
        results: dict[int, Result] = {}
        for number, result in self._executor.map(function, tasks):
            results[number] = result
            self._progress.advance(sizes[number])
        self._progress.end()
        return [results[number] for number in range(len(tasks))]


def _range_identity(piece: FileRange, digests: Mapping[str, str]) -> list[Any]:
    digest = digests[piece.file.path]
    return [piece.file.relative, digest, str(piece.format), piece.start, piece.end]


def _identity(stages: StageList) -> list[Any]:
    return [[stage.name, dict(stage.identity)] for stage in stages]
