"""Building and appending: from a recipe to a committed version.

The order of work: list and hash the inputs, scan the units, remove duplicates, tokenize, write the
shards, add up the ledger, look at the guards, commit, empty the work folder. Whatever is
interrupted goes on from its finished pieces when it is run again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from datapipe.dataset import (
    Committed,
    Dataset,
    ShardRecord,
    TokenizerRecord,
    Transaction,
    VersionDraft,
    begin_transaction,
    commit_version,
    note_committed,
    remake_version,
)
from datapipe.dataset.layout import INDEX_KINDS, WORK_PREFIX
from datapipe.dataset.repository import read_format
from datapipe.dataset.workplace import await_work
from datapipe.engine import merge
from datapipe.engine.code import environment
from datapipe.engine.damage import skipped_damage
from datapipe.engine.executors import Executor, LocalExecutor
from datapipe.engine.executors.local import available_cores
from datapipe.engine.known import KnownInputs, ignored_settings, skip_known
from datapipe.engine.leftovers import empty_work
from datapipe.engine.options import BuildOptions, Recorded
from datapipe.engine.output import Output, find_output
from datapipe.engine.passes import Passes
from datapipe.engine.pieces import PieceMaker, Pieces
from datapipe.engine.report import BuildReport
from datapipe.engine.sources import SourceInputs, hash_files, input_roots, list_sources
from datapipe.engine.stages import file_digests
from datapipe.engine.work import Work
from datapipe.errors import DatasetError
from datapipe.recipe import Recipe
from datapipe_tokenizers import Tokenizer
from tiering.store import printable_url

__all__ = ["run_build"]


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
    output = find_output(out, tokenizer, append=append, is_whole=recorded is None)
    workers = options.workers if options.workers is not None else available_cores()
    executor = LocalExecutor(workers)
    build = _Build(recipe, output, tokenizer, append, options, executor, recorded)
    try:
        with executor:
            report = build.run()
    except Exception:
        raise
    except BaseException as interruption:
        interruption.add_note(build.standing)
        raise
    return replace(report, seconds=time.monotonic() - started)


class _Build:
    """One run of the passes; its methods are the steps, in order.

    `standing` says at any time what an interruption leaves.
    """

    def __init__(
        self,
        recipe: Recipe,
        output: Output,
        tokenizer: Tokenizer,
        append: bool,
        options: BuildOptions,
        executor: Executor,
        recorded: Recorded | None,
    ) -> None:
        self._recipe = recipe
        self._output = output
        self._repository = output.repository
        self._tokenizer = tokenizer
        self._base = output.parent if append else None
        self._options = options
        self._executor = executor
        self._recorded = recorded
        own = f"{self._repository.url}/{WORK_PREFIX.rstrip('/')}"
        self.standing = (
            "nothing was committed; run the same command again, finished work is kept in "
            f"{own if options.work is None else printable_url(options.work)}"
        )
        self._notes: list[str] = []
        self._ignored: list[str] = []

    def run(self) -> BuildReport:
        """Runs all steps; returns the report, its seconds still 0."""
        listed = self._list_sources()
        self._files = file_digests(self._recipe)
        self._repository.create()
        self._work = self._work_folder()
        self._passes = Passes(
            work=self._work, executor=self._executor, progress=self._options.progress
        )
        with begin_transaction(
            self._repository,
            base_version=self._output.newest_version,
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

    def _note(self, message: str) -> None:
        self._notes.append(message)
        self._options.progress.note(message)

    def _list_sources(self) -> list[SourceInputs]:
        if self._recorded is not None:
            return list(self._recorded.sources)
        return list_sources(
            self._recipe.inputs,
            own=(self._repository.url, self._options.work or self._repository.url),
            note=self._note,
        )

    def _hash_files(self, listed: Sequence[SourceInputs]) -> Mapping[str, str]:
        if self._recorded is not None:
            return self._recorded.digests
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
        known = KnownInputs(self._base) if self._base is not None else None
        sources = skip_known(listed, digests, known)
        known_damage = skipped_damage(known, listed, sources, digests)
        self._ignored = ignored_settings(
            listed, digests, known, stages=self._resolved_recipe()["stages"]
        )
        if self._base is not None and not any(source.files for source in sources):
            same = _unchanged(self._base)
            return replace(self._report(same, inputs_skipped=len(files)), damaged=known_damage)
        maker = PieceMaker(
            self._recipe,
            self._tokenizer,
            known=known,
            work=self._work,
            passes=self._passes,
            files=self._files,
        )
        pieces = maker.make(sources, digests)
        shards = maker.write_shards(self._repository, pieces)
        committed = self._commit(sources, pieces, shards, transaction)
        num_read = sum(len(source.files) for source in sources)
        return replace(
            self._report(committed, inputs_skipped=len(files) - num_read),
            ledgers=tuple(pieces.ledgers),
            shards=len(shards),
            inputs_read=num_read,
            truncated=pieces.truncated,
            damaged=known_damage + pieces.damaged,
            special_text={"policy": self._tokenizer.special_text, **pieces.special_text},
        )

    def _commit(
        self,
        sources: Sequence[SourceInputs],
        pieces: Pieces,
        shards: list[ShardRecord],
        transaction: Transaction,
    ) -> Committed:
        removed = [item.left for item in pieces.removals]
        draft = VersionDraft(
            operation="append" if self._base is not None else "build",
            parent=self._output.parent,
            recipe=self._resolved_recipe(),
            shards=shards,
            dropped=merge.dropped_table(self._work, pieces.scanned, removed, pieces.encoded),
            quarantine=pieces.quarantine,
            inputs=pieces.inputs,
            signatures=merge.signatures_table(self._work, pieces.scanned, pieces.encoded)
            if pieces.compared
            else None,
            signals=merge.signals_table(self._work, pieces.scanned, pieces.encoded),
            counts=[ledger.counts() for ledger in pieces.ledgers],
            tokenizer=self._tokenizer_record,
            environment=environment(),
            licences={source.source: source.licence for source in sources if source.licence},
            indexes=self._index_kinds,
        )
        self.standing = (
            "it was committing: run the same command again, or see with `datapipe log "
            f"{self._repository.url}` whether the version is there"
        )
        if self._output.unreadable is not None:
            return remake_version(
                self._repository, draft, self._output.unreadable, transaction=transaction
            )
        committed = commit_version(
            self._repository,
            draft,
            author=self._options.author,
            reason=self._options.reason,
            input_roots=[{"source": name, "root": root} for name, root in input_roots(sources)],
            time_seconds=time.time(),
            transaction=transaction,
            progress=self._options.progress,
        )
        self.standing = (
            f"version {committed.version} of {self._repository.url} was committed and is complete"
        )
        if self._recorded is None:  # a rebuild's dataset won't be seen again
            note_committed(self._repository, committed.version)
        return committed

    @property
    def _index_kinds(self) -> frozenset[str] | None:
        wanted = self._recipe.output.index
        return None if wanted is None else frozenset(INDEX_KINDS if wanted else ())

    def _resolved_recipe(self) -> dict[str, Any]:
        if self._recorded is not None:
            return dict(self._recorded.recipe)
        return self._recipe.resolved(tokenizer=self._tokenizer_record.sha256, files=self._files)

    def _report(self, committed: Committed, *, inputs_skipped: int) -> BuildReport:
        """Returns the report of a run that read nothing."""
        return BuildReport(
            dataset=self._repository.url,
            version=committed.version,
            created=committed.created,
            manifest=committed.manifest,
            logical=committed.logical,
            content=committed.content,
            ledgers=(),
            shards=0,
            inputs_read=0,
            inputs_skipped=inputs_skipped,
            truncated=(),
            damaged=(),
            allow_damaged=self._recipe.guards.allow_damaged,
            notes=tuple(self._notes),
            eos=self._eos,
            backend=self._tokenizer.backend,
            backend_reason=self._tokenizer.backend_reason,
            special_text={"policy": self._tokenizer.special_text, "documents": 0, "with_eos": 0},
            seconds=0.0,
            ignored=tuple(self._ignored),
        )

    @property
    def _eos(self) -> tuple[int, str]:
        return self._tokenizer.eos_id, self._tokenizer.decode([self._tokenizer.eos_id])

    @property
    def _tokenizer_record(self) -> TokenizerRecord:
        tokenizer = self._tokenizer
        return TokenizerRecord(
            files=tokenizer.files,
            vocabulary=tokenizer.vocabulary,
            canary=tokenizer.canary,
            vocab_size=tokenizer.vocab_size,
            max_id=tokenizer.max_id,
            eos_id=tokenizer.eos_id,
            backend=tokenizer.backend,
        )


def _unchanged(version: Dataset) -> Committed:
    digests = version.manifest.digests
    return Committed(
        version=version.version,
        manifest=version.manifest_sha256,
        logical=digests.logical,
        content=digests.content,
        created=False,
    )
