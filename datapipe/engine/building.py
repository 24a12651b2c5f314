"""Building and appending: from a recipe to a committed version.

The order of work: list and hash the inputs, scan the units, remove duplicates, tokenize, write the
shards, add up the ledger, look at the guards, commit, empty the work folder. Whatever is
interrupted goes on from its finished pieces when it is run again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from datapipe.dataset import (
    Committed,
    Dataset,
    LogEntry,
    Repository,
    ShardRecord,
    TokenizerRecord,
    Transaction,
    VersionDraft,
    begin_transaction,
    commit_version,
    remake_version,
    sha256_hex,
)
from datapipe.dataset.layout import WORK_PREFIX
from datapipe.dataset.repository import read_format
from datapipe.dataset.workplace import await_work
from datapipe.engine import merge
from datapipe.engine.code import environment
from datapipe.engine.damage import DamagedFile, damaged_files, refuse_unreadable, skipped_damage
from datapipe.engine.encode_unit import TokenizerFiles, keep_tokenizer
from datapipe.engine.executors import Executor, LocalExecutor
from datapipe.engine.executors.local import available_cores
from datapipe.engine.known import (
    ignored_settings,
    known_documents,
    known_signatures,
    skip_known,
)
from datapipe.engine.ledger import Ledger, add_up, check_guards
from datapipe.engine.leftovers import SHARED_STAGE, empty_work
from datapipe.engine.passes import Passes, Scanned, StageList
from datapipe.engine.report import BuildReport
from datapipe.engine.request import check_text
from datapipe.engine.sources import SourceInputs, hash_files, input_roots, list_sources
from datapipe.engine.survivors import Removal
from datapipe.engine.work import Piece, Work, piece_key
from datapipe.errors import DatasetError, TokenizerMismatchError, UsageError
from datapipe.observe import NO_PROGRESS, Progress
from datapipe.recipe import Recipe
from datapipe_tokenizers import Tokenizer

__all__ = ["MAX_WORKERS", "BuildOptions", "Recorded", "run_build"]

MAX_WORKERS = 1024

_GLOBAL_STAGE = "dedup_exact"
_EXAMPLES = 3  # quarantined records named in an error


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildOptions:
    """How to build: nothing here changes what comes out."""

    workers: int | None = None
    """Processes; None: the cores this process may use."""
    work: str | None = None
    """URL of the work folder; None: `_work` in the dataset."""
    author: str = ""
    reason: str = ""
    progress: Progress = NO_PROGRESS

    def __post_init__(self) -> None:
        if self.workers is not None and not 1 <= self.workers <= MAX_WORKERS:
            raise UsageError(
                f"workers is {self.workers}; give 1 to {MAX_WORKERS:,}, or none for all cores"
            )
        if self.work is not None and not self.work.strip():
            raise UsageError(
                "the work folder's name is empty; name a folder, or none for `_work` in the dataset"
            )
        for name in ("work", "author", "reason"):
            check_text(getattr(self, name), name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """What is to be done again, in place of what the recipe's paths mean now."""

    recipe: Mapping[str, Any]
    """The resolved recipe, as the manifest has it."""
    sources: Sequence[SourceInputs]
    digests: Mapping[str, str]
    """SHA-256 (hex) of every file, by its path."""


def run_build(
    recipe: Recipe,
    *,
    out: str,
    tokenizer: Tokenizer,
    append: bool,
    options: BuildOptions,
    recorded: Recorded | None = None,
) -> BuildReport:
    """Builds a version from a recipe; on an existing dataset its latest version is the parent.

    Args:
        recipe: what to do.
        out: URL of the dataset, made where there is none.
        tokenizer: the recipe's, loaded.
        append: the new version holds the parent's documents too; inputs that are in already are
            skipped. Otherwise it holds this build's documents alone.
        options: how to do it.
        recorded: the files to read, and the recipe as it is to stand in the manifest; None: the
            recipe's own.

    Raises:
        UsageError: inputs or output can't be used as asked.
        GuardError: more was lost than the recipe allows.
        ResumableError: partly done; the same call goes on.
    """
    started = time.monotonic()
    repository, parent, unreadable = _output(out, tokenizer, append=append)
    workers = options.workers if options.workers is not None else available_cores()
    executor = LocalExecutor(workers)
    build = _Build(recipe, repository, parent, tokenizer, append, options, executor)
    build.unreadable, build.recorded = unreadable, recorded
    try:
        with executor:
            report = build.run()
    except Exception:
        raise
    except BaseException as interruption:
        interruption.add_note(build.standing)
        raise
    return replace(report, seconds=time.monotonic() - started)


def _output(
    out: str, tokenizer: Tokenizer, *, append: bool
) -> tuple[Repository, Dataset | None, LogEntry | None]:
    """Returns the dataset, the version to follow, and the newest one's entry if it is unreadable.

    A build that comes to the same as a version whose manifest is lost can write that again.
    """
    check_text(out, "out")
    repository = Repository(out)
    if "://" not in out and Path(out).is_file():
        raise UsageError(
            f"{out} is a file, and a dataset is a folder; nothing was written. Give --out a new or "
            "empty folder"
        )
    if not repository.exists():
        _check_free(repository)
        return repository, None, None
    unreadable = None if append else repository.unreadable()
    parent = repository.before(unreadable) if unreadable else repository.latest()
    if parent is not None:
        _check_tokenizer(parent, tokenizer)
    return repository, parent, unreadable


def _check_free(repository: Repository) -> None:
    """Raises: UsageError: something else than a dataset is there already."""
    found = (info.path for info in repository.store.list() if not info.path.startswith(WORK_PREFIX))
    first = next(found, None)
    if first is not None:
        raise UsageError(
            f"{repository.url} isn't empty and isn't a dataset: it holds {first}; nothing was "
            "written there. Give --out a new or empty folder"
        )


def _check_tokenizer(parent: Dataset, tokenizer: Tokenizer) -> None:
    recorded = parent.manifest.tokenizer
    for what in ("vocabulary", "canary", "eos_id"):
        theirs, mine = getattr(recorded, what), getattr(tokenizer, what)
        if theirs != mine:
            raise TokenizerMismatchError(
                f"dataset {parent.url} was built with another tokenizer: its {what} is "
                f"{theirs}, this one's {mine}; tokens of two tokenizers can't be mixed. Build "
                "into another --out, or use the tokenizer that lies in the dataset"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pieces:
    """What the passes over the units left behind."""

    scanned: list[Scanned]
    removals: list[Removal]
    encoded: list[merge.Encoded]
    ledgers: list[Ledger]
    quarantine: pa.Table
    inputs: pa.Table
    damaged: tuple[DamagedFile, ...]
    compared: bool


class _Build:
    """One run of the passes; its methods are the steps, in order.

    `standing` says at any time what an interruption leaves.
    """

    def __init__(
        self,
        recipe: Recipe,
        repository: Repository,
        parent: Dataset | None,
        tokenizer: Tokenizer,
        append: bool,
        options: BuildOptions,
        executor: Executor,
    ) -> None:
        self._recipe = recipe
        self._repository = repository
        self._parent = parent
        self._tokenizer = tokenizer
        self._base = parent if append else None
        self._options = options
        self._executor = executor
        self.unreadable: LogEntry | None = None
        """Of the version to write again, where its manifest can't be read."""
        self.recorded: Recorded | None = None
        """What to do again, instead of what the recipe's paths mean."""
        given = options.work
        self.standing = (
            "nothing was committed; run the same command again, finished work is kept in "
            f"{repository.url + '/' + WORK_PREFIX.rstrip('/') if given is None else given}"
        )
        self._notes: list[str] = []
        self._ignored: list[str] = []

    def run(self) -> BuildReport:
        """Runs all steps; returns the report, its seconds still 0."""
        listed = self._list_sources()
        self._repository.create()
        self._work = self._work_folder()
        self._passes = Passes(
            work=self._work, executor=self._executor, progress=self._options.progress
        )
        with begin_transaction(
            self._repository,
            base_version=self._base_version,
            author=self._options.author,
            time_seconds=time.time(),
        ) as transaction:
            self._note_store(transaction)
            self._repository = self._repository.since(transaction.started_seconds)
            await_work(self._repository)
            report = self._run(listed, transaction)
        self._empty_work(committed=report.created)
        return report

    def _work_folder(self) -> Work:
        """Returns the dataset's work folder; one given by the user may serve several datasets."""
        if self._options.work is None:
            return Work(self._repository.url, WORK_PREFIX)
        return Work(self._options.work, f"{read_format(self._repository.store).id}/")

    def _empty_work(self, *, committed: bool) -> None:
        try:
            empty_work(self._repository, self._work, used=self._passes.used, committed=committed)
        except DatasetError as error:  # what was to be done is done
            self._options.progress.note(
                f"the work folder, with texts of the inputs, couldn't be emptied: {error}; the "
                "next build or `datapipe gc` empties it"
            )

    @property
    def _base_version(self) -> int:
        newest = self.unreadable or self._parent
        return newest.version if newest is not None else 0

    def _note(self, message: str) -> None:
        self._notes.append(message)
        self._options.progress.note(message)

    def _list_sources(self) -> list[SourceInputs]:
        if self.recorded is not None:
            return list(self.recorded.sources)
        return list_sources(
            self._recipe.inputs,
            own=(self._repository.url, self._options.work or self._repository.url),
            note=self._note,
        )

    def _hash_files(self, listed: Sequence[SourceInputs]) -> Mapping[str, str]:
        if self.recorded is not None:
            return self.recorded.digests
        files = [file for source in listed for file, _ in source.files]
        return hash_files(files, executor=self._executor, progress=self._options.progress)

    def _note_store(self, transaction: Transaction) -> None:
        if not transaction.is_exclusive:
            self._options.progress.note(
                f'{self._repository.url} ignores "create only if absent": only one writer at a '
                "time is let in"
            )

    def _run(self, listed: list[SourceInputs], transaction: Transaction) -> BuildReport:
        files = [file for source in listed for file, _ in source.files]
        digests = self._hash_files(listed)
        sources = skip_known(listed, digests, self._base)
        known_damage = skipped_damage(self._base, listed, sources, digests)
        self._ignored = ignored_settings(
            listed, digests, self._base, stages=self._resolved_recipe()["stages"]
        )
        if self._base is not None and not any(source.files for source in sources):
            return self._nothing_new(self._base, len(files), known_damage)
        pieces = self._make_pieces(sources, digests)
        shards = self._write_shards(pieces)
        committed = self._commit(sources, pieces, shards, transaction)
        return BuildReport(
            dataset=self._repository.url,
            version=committed.version,
            created=committed.created,
            manifest=committed.manifest,
            logical=committed.logical,
            content=committed.content,
            ledgers=tuple(pieces.ledgers),
            shards=len(shards),
            inputs_read=sum(len(source.files) for source in sources),
            inputs_skipped=len(files) - sum(len(source.files) for source in sources),
            truncated=_truncated(pieces.scanned),
            damaged=known_damage + pieces.damaged,
            allow_damaged=self._recipe.guards.allow_damaged,
            notes=tuple(self._notes),
            eos=self._eos,
            backend=self._tokenizer.backend,
            backend_reason=self._tokenizer.backend_reason,
            seconds=0.0,
            ignored=tuple(self._ignored),
        )

    def _make_pieces(self, sources: Sequence[SourceInputs], digests: Mapping[str, str]) -> _Pieces:
        before, after, compare = split_stages(self._recipe)
        scanned = self._passes.scan(sources, digests, stages=before, compare=compare)
        quarantine = merge.quarantine_table(self._work, scanned)
        inputs = merge.inputs_table(sources, digests, scanned)
        damaged = damaged_files(inputs, quarantine)
        removals = self._passes.remove(
            scanned,
            known=known_documents(self._base, sources),
            compare=compare,
            sources=[source.source for source in sources],
            existing=known_signatures(self._base, compare=compare),
        )
        self._check(sources, add_up(sources, scanned, removals, []), quarantine, damaged)
        encoded = self._encode(scanned, removals, after)
        ledgers = add_up(sources, scanned, removals, [record for _, record in encoded])
        self._check(sources, ledgers, quarantine, damaged)
        return _Pieces(
            scanned=scanned,
            removals=removals,
            encoded=encoded,
            ledgers=ledgers,
            quarantine=quarantine,
            inputs=inputs,
            damaged=damaged,
            compared=compare,
        )

    def _check(
        self,
        sources: Sequence[SourceInputs],
        ledgers: Sequence[Ledger],
        quarantine: pa.Table,
        damaged: Sequence[DamagedFile],
    ) -> None:
        guards = self._recipe.guards
        check_guards(ledgers, guards, examples=_examples(quarantine))
        refuse_unreadable(damaged, sources, ledgers, allowed=guards.allow_damaged)

    def _encode(
        self, scanned: Sequence[Scanned], removals: Sequence[Removal], stages: StageList
    ) -> list[merge.Encoded]:
        settings = {
            "stages": stages,
            "append_eos": self._recipe.tokenize.append_eos,
            "check_one_in": self._recipe.tokenize.check_one_in,
            "shard_tokens": self._shard_tokens,
            "shuffle_seed": self._recipe.output.shuffle_seed,
        }
        return self._passes.encode(
            scanned, removals, tokenizer=self._tokenizer_files(), settings=settings
        )

    def _tokenizer_files(self) -> TokenizerFiles:
        files = self._tokenizer.files
        key = piece_key(
            pass_="tokenizer",
            vocabulary=self._tokenizer.vocabulary,
            files={name: sha256_hex(data) for name, data in files.items()},
        )
        piece = Piece(SHARED_STAGE, key)
        for name, data in files.items():
            self._work.put_bytes(piece, name, memoryview(data))
        self._passes.used.add(piece)
        named = TokenizerFiles(
            piece, tuple(sorted(files)), self._tokenizer.eos_id, self._tokenizer.backend
        )
        keep_tokenizer(named, self._tokenizer)
        return named

    @property
    def _eos(self) -> tuple[int, str]:
        return self._tokenizer.eos_id, self._tokenizer.decode([self._tokenizer.eos_id])

    @property
    def _shard_tokens(self) -> int:
        return max(1, self._recipe.output.shard_bytes // self._tokenizer.token_dtype.itemsize)

    def _write_shards(self, pieces: _Pieces) -> list[ShardRecord]:
        units: dict[str, list[Piece]] = {}
        for item, (piece, _) in zip(pieces.scanned, pieces.encoded, strict=True):
            units.setdefault(item.unit.source, []).append(piece)
        parents = self._base.sources if self._base is not None else ()
        return self._passes.write_shards(
            self._repository,
            units,
            first_numbers={source.name: source.num_shards for source in parents},
            shard_tokens=self._shard_tokens,
            dtype=self._tokenizer.token_dtype,
        )

    def _commit(
        self,
        sources: Sequence[SourceInputs],
        pieces: _Pieces,
        shards: list[ShardRecord],
        transaction: Transaction,
    ) -> Committed:
        removed = [item.left for item in pieces.removals]
        draft = VersionDraft(
            operation="append" if self._base is not None else "build",
            parent=self._parent,
            recipe=self._resolved_recipe(),
            shards=shards,
            dropped=merge.dropped_table(self._work, pieces.scanned, removed, pieces.encoded),
            quarantine=pieces.quarantine,
            inputs=pieces.inputs,
            signatures=merge.signatures_table(self._work, pieces.scanned, pieces.encoded)
            if pieces.compared
            else None,
            counts=[ledger.counts() for ledger in pieces.ledgers],
            tokenizer=_tokenizer_record(self._tokenizer),
            environment=environment(),
            licences={source.source: source.licence for source in sources if source.licence},
        )
        self.standing = (
            "it was committing: run the same command again, or see with `datapipe log "
            f"{self._repository.url}` whether the version is there"
        )
        if self.unreadable is not None:
            return remake_version(self._repository, draft, self.unreadable, transaction=transaction)
        committed = commit_version(
            self._repository,
            draft,
            author=self._options.author,
            reason=self._options.reason,
            input_roots=[{"source": name, "root": root} for name, root in input_roots(sources)],
            time_seconds=time.time(),
            transaction=transaction,
        )
        self.standing = (
            f"version {committed.version} of {self._repository.url} was committed and is complete"
        )
        return committed

    def _resolved_recipe(self) -> dict[str, Any]:
        if self.recorded is not None:
            return dict(self.recorded.recipe)
        return self._recipe.resolved(tokenizer=_tokenizer_record(self._tokenizer).sha256)

    def _nothing_new(
        self, base: Dataset, num_skipped: int, damaged: tuple[DamagedFile, ...]
    ) -> BuildReport:
        digests = base.manifest.digests
        return BuildReport(
            dataset=self._repository.url,
            version=base.version,
            created=False,
            manifest=base.manifest_sha256,
            logical=digests.logical,
            content=digests.content,
            ledgers=(),
            shards=0,
            inputs_read=0,
            inputs_skipped=num_skipped,
            truncated=(),
            damaged=damaged,
            allow_damaged=self._recipe.guards.allow_damaged,
            notes=tuple(self._notes),
            eos=self._eos,
            backend=self._tokenizer.backend,
            backend_reason=self._tokenizer.backend_reason,
            seconds=0.0,
            ignored=tuple(self._ignored),
        )


def split_stages(recipe: Recipe) -> tuple[StageList, StageList, bool]:
    """Returns the stages before and behind the one that looks at all documents, if there is one."""
    stages = tuple((stage.name, stage.options) for stage in recipe.stages)
    names = [name for name, _ in stages]
    if _GLOBAL_STAGE not in names:
        return stages, (), False
    place = names.index(_GLOBAL_STAGE)
    return stages[:place], stages[place + 1 :], True


def _tokenizer_record(tokenizer: Tokenizer) -> TokenizerRecord:
    return TokenizerRecord(
        files=tokenizer.files,
        vocabulary=tokenizer.vocabulary,
        canary=tokenizer.canary,
        vocab_size=tokenizer.vocab_size,
        max_id=tokenizer.max_id,
        eos_id=tokenizer.eos_id,
        backend=tokenizer.backend,
    )


def _examples(quarantine: pa.Table) -> list[str]:
    columns = ("source_file", "source_offset", "error")
    first = quarantine.slice(0, _EXAMPLES).select(list(columns)).to_pylist()
    return [f"{row['source_file']}:{row['source_offset']} {row['error']}" for row in first]


def _truncated(scanned: Sequence[Scanned]) -> tuple[str, ...]:
    names = {
        file
        for item in scanned
        for file, counts in item.record["files"].items()
        if counts["truncated"]
    }
    return tuple(sorted(names))
