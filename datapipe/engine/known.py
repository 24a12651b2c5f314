"""What an append leaves out because the dataset has it already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from datapipe.dataset import Dataset
from datapipe.engine.sources import SourceInputs
from datapipe.errors import UsageError
from datapipe.read import Format
from datapipe.recipe import Fields

__all__ = ["ignored_settings", "known_documents", "known_signatures", "skip_known"]


@dataclass(frozen=True, slots=True)
class _Known:
    """How a file was read that is in a version."""

    format: str
    fields: Fields
    licence: str | None

    def gives_text_of(self, source: SourceInputs, format_: Format) -> bool:
        """Returns whether reading the file again, as `source` says, gives the same raw texts."""
        same_field = format_.kind == "text" or self.fields.text == source.fields.text
        return self.format == str(format_) and same_field

    def says_the_same(self, source: SourceInputs) -> bool:
        """Returns whether documents would be described alike."""
        return (self.fields, self.licence) == (source.fields, source.licence)


def skip_known(
    sources: Sequence[SourceInputs], digests: Mapping[str, str], base: Dataset | None
) -> list[SourceInputs]:
    """Returns the sources without the files that `base` read: same source, bytes and texts.

    The name doesn't matter: what a file is called depends on the paths that were given with it.
    Another format or field of the text gives other texts, so such a file is read again. Stages
    don't count: a document stays as it was cleaned when it came in.
    """
    known = _known_by_bytes(base) if base is not None else {}
    return [
        replace(
            source,
            files=tuple(
                (file, format_)
                for file, format_ in source.files
                if not any(
                    found.gives_text_of(source, format_)
                    for found in known.get((source.source, digests[file.path]), ())
                )
            ),
        )
        for source in sources
    ]


def ignored_settings(
    sources: Sequence[SourceInputs],
    digests: Mapping[str, str],
    base: Dataset | None,
    *,
    stages: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Returns what an append asked for that files don't get because they are in already.

    Args:
        sources: all that was given.
        digests: of their files, by path.
        base: what is appended to.
        stages: the recipe's, resolved.
    """
    if base is None:
        return []
    known = _known_by_bytes(base)
    described = skipped = 0
    for source in sources:
        for file, format_ in source.files:
            found = known.get((source.source, digests[file.path]), [])
            found = [one for one in found if one.gives_text_of(source, format_)]
            skipped += bool(found)
            described += bool(found) and not any(one.says_the_same(source) for one in found)
    notes = []
    if described:
        notes.append(
            f"{described:,} files are in already with another licence, or other fields of id, url, "
            "date or language; their documents stay as they are described; build anew to change it"
        )
    if skipped and list(stages) != base.manifest.recipe["stages"]:
        notes.append(
            f"{skipped:,} files are in already, cleaned by other stages than this recipe has; "
            "their documents stay as they are; build anew to clean them again"
        )
    return notes


def known_documents(base: Dataset | None, sources: Sequence[SourceInputs]) -> pa.Array | None:
    """Returns the ids of documents in `base` that may come again, or None where none can.

    That is so when a file of a known name is read again, because it has other bytes now or other
    texts are wanted of it: a file that grew holds its old records at their old places.
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


def _known_files(base: Dataset) -> set[tuple[str, str]]:
    table = base.inputs()
    return set(zip(table["source"].to_pylist(), table["file"].to_pylist(), strict=True))


def _known_by_bytes(base: Dataset) -> dict[tuple[str, str], list[_Known]]:
    """Returns how files were read, by source and SHA-256."""
    table = base.inputs()
    columns = ("source", "sha256", "format", "fields", "licence")
    known: dict[tuple[str, str], list[_Known]] = {}
    parse = lru_cache(Fields.model_validate_json)
    for source, digest, format_, fields, licence in zip(
        *(table[name].to_pylist() for name in columns), strict=True
    ):
        how = _Known(format_, parse(fields), licence)
        known.setdefault((source, digest.hex()), []).append(how)
    return known
