"""Previewing a recipe: sample, run, estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from datapipe.documents import Stage
from datapipe.engine.executors.local import available_cores
from datapipe.engine.preview.estimate import Encoder, estimate, num_text_bytes
from datapipe.engine.preview.measure import ExactDuplicates, Measured, run_stages
from datapipe.engine.preview.report import PreviewReport, SourceReport
from datapipe.engine.preview.sample import Sample, sample_source, source_bytes
from datapipe.engine.request import Request
from datapipe.engine.sources import SourceInputs, list_sources
from datapipe.engine.stages import StageCall, file_digests, stage_calls
from datapipe.errors import InputError
from datapipe.observe import NO_PROGRESS, Progress
from datapipe.recipe import Recipe
from datapipe_tokenizers import Tokenizer

__all__ = ["PreviewOptions", "preview_recipe"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PreviewOptions:
    """How to preview."""

    sample_bytes: int = 16_000_000
    """UTF-8 bytes of text to read in all, every source by its size but at least a tenth of its
    even share."""
    examples: int = 3
    """Documents to show on each side of a threshold."""
    workers: int | None = None
    """Of the build whose time is estimated; None: the cores this process may use."""
    progress: Progress = NO_PROGRESS


def preview_recipe(request: Request, *, options: PreviewOptions | None = None) -> PreviewReport:
    """Runs what is asked for on a sample of the inputs; writes nothing.

    The sample is the same whenever it is taken, so a changed threshold shows on the same documents.
    Duplicates are looked for within it, so fewer are found than in the whole.

    Raises:
        RecipeError, InputError, UsageError, TokenizerError: as a build of it would.
    """
    options = options or PreviewOptions()
    recipe = request.recipe(None)
    tokenizer = _tokenizer(request, recipe)
    notes: list[str] = []
    sources = list_sources(recipe.inputs, note=notes.append)
    samples = _samples(sources, options)
    if not any(sample.num_documents for sample in samples):
        raise InputError(
            "the inputs hold no document that can be read: there is nothing to preview"
        )
    calls = stage_calls(recipe, file_digests(recipe))
    stages = [Measured(_stage(call), examples=options.examples) for call in calls]
    encoder = Encoder(tokenizer, append_eos=recipe.tokenize.append_eos)
    reports = _run(samples, sources, stages, encoder, options.progress)
    return PreviewReport(
        recipe=recipe.name,
        sources=reports,
        stages=[stage.report for stage in stages],
        notes=notes,
        estimate=estimate(
            reports,
            stages=[stage.report for stage in stages],
            encoder=encoder,
            workers=options.workers or available_cores(),
        ),
    )


def _tokenizer(request: Request, recipe: Recipe) -> Tokenizer | None:
    if request.tokenizer is None and recipe.tokenize.tokenizer is None:
        return None
    return request.load_tokenizer(recipe, None)


def _stage(call: StageCall) -> Stage:
    return ExactDuplicates() if call.name == ExactDuplicates.name else call.make()


def _samples(sources: Sequence[SourceInputs], options: PreviewOptions) -> list[Sample]:
    groups = _by_source(sources)
    sizes = {name: source_bytes(entries) for name, entries in groups.items()}
    total = sum(sizes.values()) or 1
    least = options.sample_bytes // (10 * len(groups))
    options.progress.begin("read a sample", options.sample_bytes, "bytes")
    samples = []
    for name, entries in groups.items():
        share = max(options.sample_bytes * sizes[name] // total, least)
        samples.append(sample_source(entries, max_bytes=share))
        options.progress.advance(samples[-1].num_bytes)
    options.progress.end()
    return samples


def _by_source(sources: Sequence[SourceInputs]) -> dict[str, list[SourceInputs]]:
    groups: dict[str, list[SourceInputs]] = {}
    for entry in sources:
        groups.setdefault(entry.source, []).append(entry)
    return groups


def _fraction(sample: Sample, entries: Sequence[SourceInputs]) -> float:
    if sample.is_whole:
        return 1.0
    return min(1.0, sample.input_bytes / max(source_bytes(entries), 1))


def _run(
    samples: Sequence[Sample],
    sources: Sequence[SourceInputs],
    stages: Sequence[Measured],
    encoder: Encoder,
    progress: Progress,
) -> list[SourceReport]:
    groups = _by_source(sources)
    progress.begin("run stages", sum(sample.num_documents for sample in samples), "documents")
    reports = []
    for sample in samples:
        left = run_stages(sample.batches, stages)
        reports.append(
            SourceReport(
                source=sample.source,
                documents=sample.num_documents,
                text_bytes=sample.num_bytes,
                quarantined=dict(sorted(sample.quarantined.items())),
                kept=sum(batch.num_rows for batch in left),
                kept_bytes=sum(num_text_bytes(batch) for batch in left),
                tokens=encoder.count_tokens(left),
                fraction=_fraction(sample, groups[sample.source]),
            )
        )
        progress.advance(sample.num_documents)
    progress.end()
    return reports
