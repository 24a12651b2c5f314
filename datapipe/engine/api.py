"""The public functions: build, append, and what they would read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datapipe.dataset import Dataset, Repository, open_dataset
from datapipe.engine.building import run_build
from datapipe.engine.options import BuildOptions
from datapipe.engine.report import BuildReport
from datapipe.engine.request import Request
from datapipe.engine.sources import list_sources
from datapipe.errors import UnknownReferenceError

__all__ = ["append", "append_dataset", "build", "build_dataset", "plan_build"]


def build(
    inputs: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    tokenizer: str | Path | None = None,
    eos: str | None = None,
    text_field: str | None = None,
    source: str | None = None,
    max_quarantined_fraction: float | None = None,
    max_dropped_fraction: float | None = None,
    allow_damaged: bool = False,
    stages: Sequence[str | Path] = (),
    workers: int | None = None,
    work: str | None = None,
    author: str = "",
    reason: str = "",
) -> Dataset:
    """Builds a dataset's next version from a recipe or from paths; returns it, opened.

    Args:
        inputs: one recipe (*.yaml), or files, folders and patterns of JSONL, Parquet or text.
        out: the dataset's folder; made where there is none.
        tokenizer: a tokenizer's file or folder, or the name of an encoding of tiktoken; default:
            the recipe's.
        eos: token that closes documents, where the tokenizer names none.
        text_field: field that holds the text; default "text". Not beside a recipe.
        source: name of the documents in a mixture; default "documents". Not beside a recipe.
        max_quarantined_fraction: share of unreadable records that stops the build.
        max_dropped_fraction: share of a source's documents whose loss stops the build.
        allow_damaged: whether cut or damaged input files are accepted without a warning.
        stages: Python files that define stages of your own.
        workers: processes; default: the cores this process may use. With more than one, the
            calling script needs the `if __name__ == "__main__":` guard of multiprocessing.
        work: folder for unfinished work; default: `_work` in the dataset.
        author: who; stands in the log.
        reason: why; stands in the log.

    Warns:
        UserWarning: input files are damaged; the version holds what is whole of them.

    Raises:
        UsageError: inputs or output can't be used as asked.
        GuardError: more was lost than the recipe allows.
        FailedError: a named file can't be read at all, or no document is left of damaged ones.
        ResumableError: partly done; the same call goes on.
    """
    request = Request(
        inputs=_paths(inputs),
        tokenizer=None if tokenizer is None else str(tokenizer),
        eos=eos,
        text_field=text_field,
        source=source,
        max_quarantined_fraction=max_quarantined_fraction,
        max_dropped_fraction=max_dropped_fraction,
        allow_damaged=allow_damaged,
        stages=_paths(stages),
    )
    options = BuildOptions(workers=workers, work=work, author=author, reason=reason)
    report = build_dataset(request, out=str(out), options=options)
    return _opened(str(out), report)


def append(
    dataset: str | Path,
    inputs: str | Path | Sequence[str | Path],
    *,
    text_field: str | None = None,
    source: str | None = None,
    max_quarantined_fraction: float | None = None,
    max_dropped_fraction: float | None = None,
    allow_damaged: bool = False,
    stages: Sequence[str | Path] = (),
    workers: int | None = None,
    work: str | None = None,
    author: str = "",
    reason: str = "",
) -> Dataset:
    """Adds documents to a dataset as its next version; returns it, opened. Arguments as `build`."""
    request = Request(
        inputs=_paths(inputs),
        text_field=text_field,
        source=source,
        max_quarantined_fraction=max_quarantined_fraction,
        max_dropped_fraction=max_dropped_fraction,
        allow_damaged=allow_damaged,
        stages=_paths(stages),
    )
    options = BuildOptions(workers=workers, work=work, author=author, reason=reason)
    report = append_dataset(str(dataset), request, options=options)
    return _opened(str(dataset), report)


def build_dataset(request: Request, *, out: str, options: BuildOptions) -> BuildReport:
    """Builds what is asked for into `out`; see `build`."""
    recipe = request.recipe(None)
    tokenizer = request.load_tokenizer(recipe, None)
    return run_build(recipe, out=out, tokenizer=tokenizer, append=False, options=options)


def append_dataset(dataset: str, request: Request, *, options: BuildOptions) -> BuildReport:
    """Appends what is asked for to `dataset`; see `append`."""
    base = _base(dataset)
    recipe = request.recipe(base)
    tokenizer = request.load_tokenizer(recipe, base)
    return run_build(recipe, out=dataset, tokenizer=tokenizer, append=True, options=options)


def plan_build(
    request: Request, *, dataset: str | None = None, own: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns what a build (or, with `dataset`, an append) would read, as JSON values.

    Args:
        request: what is asked for.
        dataset: the dataset to append to.
        own: paths or URLs of further folders that would be written to.
    """
    recipe = request.recipe(_base(dataset) if dataset is not None else None)
    notes: list[str] = []
    own = [*own, *([] if dataset is None else [dataset])]
    for place in own:
        Repository(place)  # refuses what is no place
    sources = list_sources(recipe.inputs, own=own, note=notes.append)
    return {
        "notes": notes,
        "sources": [
            {
                "source": source.source,
                "files": len(source.files),
                "bytes": sum(file.size_bytes for file, _ in source.files),
                "formats": sorted({str(format) for _, format in source.files}),
            }
            for source in sources
        ],
        "stages": [stage.name for stage in recipe.stages],
        "shard_bytes": recipe.output.shard_bytes,
    }


def _opened(url: str, report: BuildReport) -> Dataset:
    if not report.is_complete:
        warnings.warn(report.incomplete, stacklevel=3)
    return Repository(url).open(report.version)


def _base(dataset: str) -> Dataset:
    repository = Repository(dataset)
    if not repository.exists():
        raise UnknownReferenceError(
            f"there is no dataset at {repository.url} to append to; `datapipe build` makes one"
        )
    return open_dataset(dataset)


def _paths(inputs: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    given = [inputs] if isinstance(inputs, str | Path) else inputs
    return tuple(str(path) for path in given)
