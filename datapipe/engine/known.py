"""What an append leaves out because the dataset has it already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from datapipe.dataset import Dataset
from datapipe.engine.sources import SourceInputs
from datapipe.errors import UsageError

__all__ = ["known_documents", "known_signatures", "skip_known"]


def skip_known(
    sources: Sequence[SourceInputs], digests: Mapping[str, str], base: Dataset | None
) -> list[SourceInputs]:
    """Returns the sources without the files that `base` read: same source and bytes.

    The name doesn't matter: what a file is called depends on the paths that were given with it.
    """
    if base is None:
        return list(sources)
    known = {
        (source, digest) for (source, _), found in _known_files(base).items() for digest in found
    }
    return [
        replace(
            source,
            files=tuple(
                (file, format_)
                for file, format_ in source.files
                if (source.source, digests[file.path]) not in known
            ),
        )
        for source in sources
    ]


def known_documents(base: Dataset | None, sources: Sequence[SourceInputs]) -> pa.Array | None:
    """Returns the ids of documents in `base` that may come again, or None where none can.

    That is so when a file of a known name has other bytes now: a file that grew holds its old
    records at their old places.
    """
    if base is None:
        return None
    known = _known_files(base)
    again = {
        source.source
        for source in sources
        for file, _ in source.files
        if (source.source, file.relative) in known
    }
    chunks = [
        base.docmap(source.name, number)["doc_id"].combine_chunks()
        for source in base.sources
        if source.name in again
        for number in range(source.num_shards)
    ]
    return pa.concat_arrays(chunks) if chunks else None


def known_signatures(base: Dataset | None, *, compare: bool) -> pa.Table | None:
    """Returns what deduplication compared of all documents in `base`; None where it isn't needed.

    Raises:
        UsageError: some of them were added without deduplication, so they can't be compared.
    """
    if base is None or not compare:
        return None
    signatures = base.signatures()
    num_compared = signatures.num_rows if signatures is not None else 0
    if num_compared != base.manifest.totals.kept:
        raise UsageError(
            f"{base.url} holds {base.manifest.totals.kept:,} documents and keys of "
            f"{num_compared:,}: the others were added without dedup_exact, so new ones can't be "
            "compared with them. Leave dedup_exact out of this append, or build anew with it"
        )
    return signatures


def _known_files(base: Dataset) -> dict[tuple[str, str], set[str]]:
    table = base.inputs()
    names = zip(table["source"].to_pylist(), table["file"].to_pylist(), strict=True)
    known: dict[tuple[str, str], set[str]] = {}
    for name, digest in zip(names, table["sha256"].to_pylist(), strict=True):
        known.setdefault(name, set()).add(digest.hex())
    return known
