"""From what the user names as data to the sources of an order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from datapipe.dataset import Dataset, SourceSummary, canonical_json, open_dataset, sha256_hex
from datapipe.dataset.parts import Part, SourceParts
from datapipe.errors import TokenizerMismatchError, UsageError
from datapipe.load.arguments import check_place, check_text, nearest
from datapipe.order import OrderSource, Phase

__all__ = ["Data", "NamedDataset", "StreamSources", "choose_sources", "open_data"]

Place = Dataset | str | os.PathLike[str]
"""A dataset, or its URL or path."""

Data = Place | Sequence[Place] | Mapping[str, Place]
"""A dataset or its URL or path, a list of them, or name -> dataset."""

_SPLIT_MARK = "@"
_TRAIN = "train"


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedDataset:
    """A dataset and what its sources' names begin with."""

    name: str | None
    "None: the only one, sources go by their own names."
    dataset: Dataset

    def source_name(self, source: str) -> str:
        """Returns what a stream calls one of its sources."""
        return source if self.name is None else f"{self.name}/{source}"


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamSources:
    """The sources of a stream's order, by index: what the spec says, and what they consist of."""

    spec: tuple[OrderSource, ...]
    parts: tuple[SourceParts, ...]
    phases: tuple[Phase, ...]


def open_data(data: Data) -> list[NamedDataset]:
    """Returns the datasets of a stream, opened, in the order given.

    Raises:
        UsageError: none, two of one name, or something else than datasets.
        UnknownReferenceError: a dataset or version that isn't there.
        DatasetError: one that can't be opened.
        TokenizerMismatchError: their token ids don't mean the same.
    """
    if isinstance(data, Mapping):
        named = [
            NamedDataset(name=check_text("a name in data", name), dataset=_opened(item))
            for name, item in data.items()
        ]
    elif isinstance(data, Sequence) and not isinstance(data, str | bytes):
        opened = [_opened(item) for item in data]
        names = [None] if len(opened) == 1 else [PurePosixPath(ds.url).name for ds in opened]
        named = [NamedDataset(name=n, dataset=ds) for n, ds in zip(names, opened, strict=True)]
    else:
        named = [NamedDataset(name=None, dataset=_opened(data))]
    _check_names(named)
    _check_tokenizers(named)
    return named


def choose_sources(
    named: Sequence[NamedDataset],
    *,
    split: str,
    phases: tuple[Phase, ...] | None,
) -> StreamSources:
    """Returns the sources that a stream reads.

    Without a mixture the split's sources form one, with their shards numbered through. It has the
    name and order digest of its source if it is only one; else the split's name, and the SHA-256
    of the canonical JSON [[name, order digest, number of shards], ...] in the order of the
    datasets and their manifests. With a mixture the sources are those that it names, numbered in
    the order of the phases and by name inside a phase, so that a new one comes last.

    Raises:
        UsageError: a split or source that isn't there.
    """
    found = _sources_of_split(named, split)
    if phases is None:
        source, parts = _one_source(found, split)
        return StreamSources(spec=(source,), parts=(parts,), phases=())
    by_name = {name: (summary, part) for name, summary, part in found}
    names = _names_in_order(phases)
    _check_known(names, by_name, named, split)
    return StreamSources(
        spec=tuple(_order_source(name, by_name[name][0]) for name in names),
        parts=tuple(SourceParts(name=name, parts=(by_name[name][1],)) for name in names),
        phases=phases,
    )


_Found = tuple[str, SourceSummary, Part]


def _sources_of_split(named: Sequence[NamedDataset], split: str) -> list[_Found]:
    found = [
        (
            item.source_name(source.name),
            source,
            Part(dataset=index, source=source.name, num_shards=source.num_shards),
        )
        for index, item in enumerate(named)
        for source in item.dataset.sources
        if _split_of(source.name) == split and source.num_shards
    ]
    if not found:
        every = sorted({_split_of(s.name) for item in named for s in item.dataset.sources})
        urls = ", ".join(item.dataset.url for item in named)
        if not any(s.num_shards for item in named for s in item.dataset.sources):
            raise UsageError(
                f"{urls} holds no tokens: there is nothing to stream; build it from documents, or "
                "name another version"
            )
        raise UsageError(
            f"no source of {urls} belongs to split {split!r}: there is nothing to stream; the "
            f"splits are {', '.join(every)}. This version builds no splits: keep validation data "
            "as a source of its own and stream it with mixture={'SOURCE': 1.0}, or as a dataset "
            "of its own"
        )
    return found


def _split_of(source: str) -> str:
    return source.rpartition(_SPLIT_MARK)[2] if _SPLIT_MARK in source else _TRAIN


def _one_source(found: Sequence[_Found], split: str) -> tuple[OrderSource, SourceParts]:
    if len(found) == 1:
        name, summary, part = found[0]
        return _order_source(name, summary), SourceParts(name=name, parts=(part,))
    parts = SourceParts(name=split, parts=tuple(part for _, _, part in found))
    rows = [[name, summary.order_digest, summary.num_shards] for name, summary, _ in found]
    digest = sha256_hex(canonical_json(rows))
    return OrderSource(name=split, order_digest=digest, shards_to=parts.num_shards), parts


def _order_source(name: str, summary: SourceSummary) -> OrderSource:
    return OrderSource(name=name, order_digest=summary.order_digest, shards_to=summary.num_shards)


def _names_in_order(phases: Iterable[Phase]) -> list[str]:
    names: dict[str, None] = {}
    for phase in phases:
        names.update(dict.fromkeys(sorted(phase.weights)))
    return list(names)


def _check_known(
    names: Sequence[str],
    known: Mapping[str, object],
    named: Sequence[NamedDataset],
    split: str,
) -> None:
    for name in names:
        if name not in known:
            every = [item.source_name(s.name) for item in named for s in item.dataset.sources]
            why = f"it isn't in split {split!r}" if name in every else "there is no such source"
            raise UsageError(
                f"the mixture names {name}: {why}; nothing could be drawn from it; the sources of "
                f"the split are {', '.join(known)}{nearest(name, known)}"
            )


def _opened(item: object) -> Dataset:
    if isinstance(item, Dataset):
        return item
    what = "a dataset, its URL or path, a list of them, or {name: dataset}"
    return open_dataset(check_place("data", item, what=what))


def _check_names(named: Sequence[NamedDataset]) -> None:
    names = [item.name for item in named]
    if not named:
        raise UsageError("no dataset was given: there is nothing to stream; name at least one")
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"two datasets are named {name}: their sources couldn't be told apart; give "
                "{name: dataset, ...} with names of your own"
            )


def _check_tokenizers(named: Sequence[NamedDataset]) -> None:
    first = named[0].dataset
    for item in named[1:]:
        mine, other = first.manifest.tokenizer, item.dataset.manifest.tokenizer
        if (mine.vocabulary, mine.eos_id) != (other.vocabulary, other.eos_id):
            raise TokenizerMismatchError(
                f"{first.url} and {item.dataset.url} were encoded with tokenizers of the "
                f"vocabularies {mine.vocabulary[:16]} and {other.vocabulary[:16]} (EOS "
                f"{mine.eos_id} and {other.eos_id}): one id would mean two things; encode both "
                "with one tokenizer"
            )
