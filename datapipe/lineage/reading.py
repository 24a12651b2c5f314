"""Reading documents and samples back as text, with the dataset's own tokenizer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from datapipe.dataset import Dataset, open_dataset
from datapipe.dataset.objects import to_repair
from datapipe.errors import DamagedError, UnknownReferenceError, UsageError
from datapipe.lineage.batches import samples_of_batch, shard_of
from datapipe.lineage.docmaps import Docmaps, DocumentPlace, ShardOf
from datapipe.lineage.lookup import find_document, unknown_document
from datapipe.lineage.run import OpenRun, open_run
from datapipe_tokenizers import Tokenizer, load_files
from tiering.checksums import BLOCK_BYTES, block_checksum

__all__ = ["read_documents", "read_sample"]


def read_documents(
    dataset: Dataset | str, *, doc: str | None = None, head: int = 1, source: str | None = None
) -> list[dict[str, Any]]:
    """Returns documents with their text, as JSON values.

    Args:
        dataset: a dataset version.
        doc: one document, by doc_id or record id; None: the first ones.
        head: how many from the start, where `doc` isn't given.
        source: only documents of this source.

    Returns:
        One dict a document: doc_id, record_id, source, source_file, source_offset, num_tokens,
        text (without the closing end-of-text token).

    Raises:
        UnknownReferenceError: no such dataset, document or source, or several documents of this
            record id.
        UsageError: `head` is below 0.
        DamagedError: a shard or docmap isn't what its digest says.
        DatasetError: the dataset can't be opened or read.
    """
    opened = open_dataset(dataset) if isinstance(dataset, str) else dataset
    if head < 0:
        raise UsageError(f"head={head}: it is the number of documents to read, 0 or more")
    if source is not None:
        opened.shards(source)  # raises for an unknown one
    docmaps = Docmaps()
    if doc is None:
        places = list(islice(_all_places(opened, docmaps, source), head))
    else:
        at = find_document(opened, doc, source=source)
        if at is None:
            raise unknown_document(opened, doc, source=source)
        places = [docmaps.place(_shard(opened, at.source, at.shard), at.row)]
    tokenizer = _tokenizer(opened)
    return [_document(opened, place, tokenizer) for place in places]


def read_sample(
    dataset: Dataset | str, sample: int, *, run: str, runs: str | None = None
) -> dict[str, Any]:
    """Returns one sample of a run by its number: its place, documents, token ids and text.

    Returns:
        The sample as `documents_of_batch` has it, with token_ids (inputs and the last label;
        padding left out) and text.

    Raises:
        UnknownReferenceError: no such run, or the run doesn't deliver this sample number.
        DamagedError: the record, a shard or a docmap isn't what its digest says.
        DatasetError: the dataset or the record can't be opened or read.
    """
    given = open_dataset(dataset) if isinstance(dataset, str) else dataset
    opened = open_run(given, run=run, runs=runs)
    batch = _batch_of(opened, sample)
    found = next(
        row for row in samples_of_batch(opened, batch, docmaps=Docmaps()) if row.sample == sample
    )
    view = opened.segments[opened.stretch_of(batch).index]
    place = view.order.locate([sample])
    shard = shard_of(view, int(place.source[0]), int(place.shard[0]))
    ids = _read_tokens(shard, start=found.token_start, count=found.num_tokens)
    text = _tokenizer(shard.dataset).decode(ids)
    return {"run": run, **found.to_json(), "token_ids": ids.tolist(), "text": text}


def _batch_of(opened: OpenRun, sample: int) -> int:
    for stretch in opened.history.stretches if 0 <= sample < 1 << 53 else ():
        batch = int(stretch.batches.batch_of(sample)[0])
        if batch >= 0 and stretch.holds(batch):
            return batch
    raise UnknownReferenceError(
        f"run {opened.name} delivers no sample {sample}: it is skipped, left out of the last batch "
        "or behind the run's end; samples are numbered from 0 over all ranks"
    )


def _all_places(dataset: Dataset, docmaps: Docmaps, source: str | None) -> Iterator[DocumentPlace]:
    for summary in dataset.sources:
        if source in (None, summary.name):
            for number in range(summary.num_shards):
                shard = _shard(dataset, summary.name, number)
                for row in range(docmaps.table(shard).num_rows):
                    yield docmaps.place(shard, row)


def _shard(dataset: Dataset, source: str, number: int) -> ShardOf:
    return ShardOf(dataset=dataset, source=source, number=number, label=source)


def _document(dataset: Dataset, place: DocumentPlace, tokenizer: Tokenizer) -> dict[str, Any]:
    ids = _read_tokens(place.shard, start=place.token_start, count=place.num_tokens)
    if ids.size and ids[-1] == dataset.eos_id:
        ids = ids[:-1]
    return {
        "doc_id": place.doc_id,
        "record_id": place.record_id,
        "source": place.shard.label,
        "source_file": place.source_file,
        "source_offset": place.source_offset,
        "num_tokens": place.num_tokens,
        "text": tokenizer.decode(ids),
    }


def _tokenizer(dataset: Dataset) -> Tokenizer:
    return load_files(dataset.tokenizer_files(), eos=dataset.eos_id, backend="reference")


def _read_tokens(shard: ShardOf, *, start: int, count: int) -> npt.NDArray[Any]:
    """Returns tokens of a shard; the blocks that hold them are checked."""
    dtype = shard.dataset.token_dtype
    first, stop = start * dtype.itemsize, (start + count) * dtype.itemsize
    base = first // BLOCK_BYTES * BLOCK_BYTES
    with shard.dataset.open_shard(shard.source, shard.number) as view:
        end = min(-(-stop // BLOCK_BYTES) * BLOCK_BYTES, view.size)
        data = memoryview(bytearray(max(end - base, 0)))
        view.read_into(data, base)
    expected = shard.dataset.block_checksums(shard.source, shard.number)
    for offset in range(0, len(data), BLOCK_BYTES):
        block = (base + offset) // BLOCK_BYTES
        if block_checksum(data[offset : offset + BLOCK_BYTES]) != int(expected[block]):
            raise DamagedError(
                f"shard {shard.number} of {shard.source} in {shard.dataset.url} is damaged: block "
                f"{block} isn't what its checksum says; none of its text is shown; "
                f"{to_repair(shard.dataset.url, shard.dataset.version)}"
            )
    return np.frombuffer(data[first - base : stop - base], dtype=dtype)
