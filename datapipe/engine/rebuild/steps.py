"""Doing the steps of a version again, each in a throw-away dataset that holds what it stood on.

A version is a build, or a build and the appends behind it. Each of these steps is repeated on the
version before as it is recorded, checked by digest: so the steps are independent of each other,
and if every one comes out as recorded, so does the whole.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from datapipe.dataset import Dataset, Repository, layout
from datapipe.dataset.index.complete import MOST_FILES
from datapipe.dataset.local import local_path
from datapipe.dataset.log import read_entry
from datapipe.dataset.objects import read_object, writing
from datapipe.engine.building import run_build
from datapipe.engine.executors import LocalExecutor
from datapipe.engine.executors.local import available_cores
from datapipe.engine.options import BuildOptions, Recorded
from datapipe.engine.own import installed_stages, stages_of_files
from datapipe.engine.rebuild.compare import changed_environment, compare, other_bytes
from datapipe.engine.rebuild.inputs import (
    RecordedFile,
    check_sources,
    find_files,
    group_files,
    recorded_files,
)
from datapipe.engine.rebuild.recipe import recorded_recipe
from datapipe.engine.rebuild.report import Difference, RebuildReport, Step, Verdict
from datapipe.engine.sources import SourceInputs, hash_files
from datapipe.errors import GuardError, RecipeError, UsageError
from datapipe.observe import NO_PROGRESS, Progress
from datapipe.recipe import OwnStage, Recipe
from datapipe_tokenizers import TokenizerError, load_files

__all__ = ["RebuildOptions", "rebuild_dataset"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RebuildOptions:
    """How to rebuild: nothing here changes the verdict."""

    inputs: str | None = None
    """The only folder in which inputs are looked for; None: where they were."""
    last_step: bool = False
    """Only the version's own build or append, not those that it stands on."""
    work: str | None = None
    """Folder for the throw-away dataset; None: the system's for temporary files."""
    workers: int | None = None
    """Processes; None: the cores this process may use."""
    stages: tuple[str, ...] = ()
    """Python files that define stages."""
    allow_stages: tuple[str, ...] = ()
    """Names of stages that don't come with the program and may run."""
    data_files: tuple[str, ...] = ()
    """Paths of files that stages read, such as models."""
    progress: Progress = NO_PROGRESS


def rebuild_dataset(version: Dataset, *, options: RebuildOptions) -> RebuildReport:
    """Runs the recorded recipe on the recorded inputs, and compares what comes out.

    Steps are done oldest first, and none behind the first that comes out different or not at all.

    Args:
        version: what to do again; it is only read.
        options: how.

    Raises:
        UsageError: `work` isn't a folder.
        InputError: inputs aren't there.
        DamagedError: what a step stood on is damaged.
        SpaceError: there is no space for the throw-away dataset.
    """
    started = time.monotonic()
    if options.work is not None and not local_path(options.work, "--work").is_dir():
        raise UsageError(f"--work {options.work} isn't a local folder; nothing was rebuilt")
    steps: list[Step] = []
    for step in _steps(version)[-1:] if options.last_step else _steps(version):
        steps.append(_do_again(step, options))
        if steps[-1].difference is not None:
            break
    return RebuildReport(
        dataset=version.url,
        version=version.version,
        steps=steps,
        seconds=time.monotonic() - started,
    )


def _steps(version: Dataset) -> list[Dataset]:
    """Returns the versions from the last build on up to this one, but those that only index."""
    steps = [version]
    while steps[-1].manifest.operation != "build":
        steps.append(version.repository.open(steps[-1].version - 1))
    return [step for step in reversed(steps) if step.manifest.operation != "index"]


def _do_again(version: Dataset, options: RebuildOptions) -> Step:
    parent = version.repository.open(version.version - 1) if version.version > 1 else None
    entry, _ = read_entry(version.repository.store, version.version)
    recorded = recorded_files(version, parent)
    step = Step(
        version=version.version,
        operation=version.manifest.operation,
        verdict=Verdict.DIFFERENT,
        manifest=version.manifest_sha256,
        rebuilt=None,
        num_inputs=len(recorded),
        bytes_in=sum(file.size_bytes for file in recorded),
        environment={},
    )
    try:
        recipe = recorded_recipe(
            version, own=_allowed_stages(options), data_files=options.data_files
        )
        check_sources(version.manifest.recipe["inputs"], recorded)
    except RecipeError as error:
        return replace(step, verdict=Verdict.NOT_REBUILT, difference=_refused(error))
    files = find_files(recorded, roots=entry.input_roots, inputs=options.inputs)
    sources = group_files(version.manifest.recipe["inputs"], recipe, files)
    digests = _hash(sources, options)
    changed = _changed_input(files, digests)
    if changed is not None:
        return replace(step, difference=changed)
    material = Recorded(recipe=version.manifest.recipe, sources=sources, digests=digests)
    with tempfile.TemporaryDirectory(prefix="datapipe-rebuild-", dir=options.work) as folder:
        try:
            rebuilt = _build(version, parent, recipe, material, Path(folder), options)
        except ImportError:  # an optional package, whose absence says nothing of the recipe
            raise
        except (UsageError, GuardError, TokenizerError) as error:
            return replace(step, verdict=Verdict.NOT_REBUILT, difference=_refused(error))
        if rebuilt.version != version.version:
            return replace(step, difference=_nothing_added(version))
        return _judged(step, version, rebuilt)


def _refused(error: Exception) -> Difference:
    return Difference(cause="recipe", what=str(error).rstrip("."))


def _nothing_added(version: Dataset) -> Difference:
    return Difference(
        cause="code",
        what=f"version {version.version} of {version.url} added nothing when it was done again: "
        "its inputs give what the version before holds already; the log doesn't tell how it came "
        "about; compare them with `datapipe diff`",
    )


def _allowed_stages(options: RebuildOptions) -> dict[str, OwnStage]:
    known = {**installed_stages(), **stages_of_files(options.stages)}
    unknown = [name for name in options.allow_stages if name not in known]
    if unknown:
        there = ", ".join(sorted(known)) or "none"
        raise UsageError(
            f"--allow-stage {unknown[0]!r}: no file given with --stages and no installed package "
            f"has that stage (there are {there}); nothing was rebuilt; give the file with --stages"
        )
    return {name: known[name] for name in options.allow_stages}


def _hash(sources: Sequence[SourceInputs], options: RebuildOptions) -> dict[str, str]:
    files = [file for source in sources for file, _ in source.files]
    with LocalExecutor(options.workers or available_cores()) as executor:
        return hash_files(files, executor=executor, progress=options.progress)


def _changed_input(files: Sequence[RecordedFile], digests: Mapping[str, str]) -> Difference | None:
    changed = [file for file in files if digests[str(file.path)] != file.sha256]
    if not changed:
        return None
    first = changed[0]
    where: dict[str, Any] = {
        "source": first.source,
        "file": first.relative,
        "recorded": first.sha256,
        "found": digests[str(first.path)],
        "changed_files": len(changed),
    }
    more = f" and {len(changed) - 1} more files" if len(changed) > 1 else ""
    return Difference(
        cause="input",
        what=f"{first.path} ({first.relative} of {first.source}) isn't what was read then{more}: "
        f"SHA-256 {first.sha256} recorded, {digests[str(first.path)]} found",
        where=where,
    )


def _build(
    version: Dataset,
    parent: Dataset | None,
    recipe: Recipe,
    recorded: Recorded,
    folder: Path,
    options: RebuildOptions,
) -> Dataset:
    """Returns the version that the step makes now, in a dataset below `folder`."""
    is_append = version.manifest.operation == "append"
    repository = Repository(str(folder / "dataset"))
    repository.create()
    if parent is not None:
        needed = _needed_by_append(version, parent, recorded.sources) if is_append else {}
        _seed(repository, parent, needed)
    report = run_build(
        recipe,
        out=repository.url,
        tokenizer=load_files(
            version.tokenizer_files(),
            eos=version.eos_id,
            backend=recipe.tokenize.backend,
            special_text=recipe.tokenize.special_text,
        ),
        append=is_append,
        options=BuildOptions(workers=options.workers, reason="rebuild", progress=options.progress),
        recorded=recorded,
    )
    return repository.open(report.version)


def _seed(repository: Repository, parent: Dataset, needed: Mapping[str, str]) -> None:
    """Copies what a step needs of the version that it stands on, checked by digest; no tokens."""
    store = parent.repository.store
    _, entry = read_entry(store, parent.version)
    digests = {layout.manifest_path(parent.manifest_sha256): parent.manifest_sha256, **needed}
    with writing(repository.store):
        for path, sha256 in digests.items():
            repository.store.put(path, read_object(store, path, sha256=sha256))
        repository.store.put(layout.entry_path(parent.version), entry)
        repository.store.put(layout.HINT_PATH, b"%d" % parent.version)


def _needed_by_append(
    version: Dataset, parent: Dataset, sources: Sequence[SourceInputs]
) -> dict[str, str]:
    """Returns digests by path of the parent's tables, and of docmaps that an append looks into.

    It looks into one for its columns, and into all of a source of which it reads a file again, or
    into all if it made an index; and it takes in files of an index that has enough of them.
    """
    digests = {
        kind.path(file.sha256): file.sha256
        for name, kind in layout.TABLE_KINDS.items()
        for file in parent.manifest.files(name)
    }
    for kind_name, files in parent.manifest.indexes.items():
        if len(files) >= MOST_FILES:
            digests |= {layout.index_path(kind_name, file.sha256): file.sha256 for file in files}
    makes_index = not version.manifest.indexes.keys() <= parent.manifest.indexes.keys()
    again = _read_again(parent, sources)
    for source in parent.sources:
        docmaps = parent.shards(source.name).docmap_sha256
        wanted = docmaps if makes_index or source.name in again else docmaps[:1]
        digests |= {layout.docmap_path(sha256): sha256 for sha256 in wanted}
    return digests


def _read_again(parent: Dataset, sources: Sequence[SourceInputs]) -> set[str]:
    table = parent.inputs()
    known = set(zip(table["source"].to_pylist(), table["file"].to_pylist(), strict=True))
    return {
        source.source
        for source in sources
        for file, _ in source.files
        if (source.source, file.relative) in known
    }


def _judged(step: Step, version: Dataset, rebuilt: Dataset) -> Step:
    verdict, difference = compare(version, rebuilt)
    is_logical = verdict is Verdict.LOGICALLY_IDENTICAL
    return replace(
        step,
        verdict=verdict,
        rebuilt=rebuilt.manifest_sha256,
        environment=changed_environment(version, rebuilt),
        other_bytes=other_bytes(version, rebuilt) if is_logical else (),
        difference=difference,
    )
