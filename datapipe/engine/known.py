"""What an append leaves out because the dataset has it already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from datapipe.dataset import Dataset
from datapipe.engine.sources import SourceInputs
from datapipe.errors import UsageError
from datapipe.read import Format
from datapipe.recipe import Fields

__all__ = ["KnownInputs", "ignored_settings", "known_documents", "known_signatures", "skip_known"]


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


class KnownInputs:
    """The input files of the version that is appended to: read once, asked several questions."""

    def __init__(self, base: Dataset) -> None:
        self.base = base
        self.table: pa.Table = base.inputs()
        """INPUTS rows."""

    @cached_property
    def names(self) -> set[tuple[str, str]]:
        """Source and relative name of every file."""
        columns = (self.table[name].to_pylist() for name in ("source", "file"))
        return set(zip(*columns, strict=True))

    @cached_property
    def by_bytes(self) -> dict[tuple[str, str], list[_Known]]:
        """How files were read, by source and SHA-256."""
        columns = ("source", "sha256", "format", "fields", "licence")
        known: dict[tuple[str, str], list[_Known]] = {}
        parse = lru_cache(Fields.model_validate_json)
        for source, digest, format_, fields, licence in zip(
            *(self.table[name].to_pylist() for name in columns), strict=True
        ):
            how = _Known(format_, parse(fields), licence)
            known.setdefault((source, digest.hex()), []).append(how)
        return known


def skip_known(
    sources: Sequence[SourceInputs], digests: Mapping[str, str], known: KnownInputs | None
) -> list[SourceInputs]:
    """Returns the sources without the files that are known: same source, bytes and texts.

    The name doesn't matter: what a file is called depends on the paths that were given with it.
    Another format or field of the text gives other texts, so such a file is read again. Stages
    don't count: a document stays as it was cleaned when it came in.
    """
    by_bytes = known.by_bytes if known is not None else {}
    return [
        replace(
            source,
            files=tuple(
                (file, format_)
                for file, format_ in source.files
                if not any(
                    found.gives_text_of(source, format_)
                    for found in by_bytes.get((source.source, digests[file.path]), ())
                )
            ),
        )
        for source in sources
    ]


def ignored_settings(
    sources: Sequence[SourceInputs],
    digests: Mapping[str, str],
    known: KnownInputs | None,
    *,
    stages: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Returns what an append asked for that files don't get because they are in already.

    Args:
        sources: all that was given.
        digests: of their files, by path.
        known: what is appended to.
        stages: the recipe's, resolved.
    """
    if known is None:
        return []
    described = skipped = 0
    for source in sources:
        for file, format_ in source.files:
            found = known.by_bytes.get((source.source, digests[file.path]), [])
            found = [one for one in found if one.gives_text_of(source, format_)]
            skipped += bool(found)
            described += bool(found) and not any(one.says_the_same(source) for one in found)
    notes = []
    if described:
        notes.append(
            f"{described:,} files are in already with another licence, or other fields of id, url, "
            "date or language; their documents stay as they are described; build anew to change it"
        )
    if skipped and list(stages) != known.base.manifest.recipe["stages"]:
        notes.append(
            f"{skipped:,} files are in already, cleaned by other stages than this recipe has; "
            "their documents stay as they are; build anew to clean them again"
        )
    return notes


def known_documents(known: KnownInputs | None, sources: Sequence[SourceInputs]) -> pa.Array | None:
    """Returns the ids of documents in the base that may come again, or None where none can.

    That is so when a file of a known name is read again, because it has other bytes now or other
    texts are wanted of it: a file that grew holds its old records at their old places.
    """
    if known is None:
        return None
    again = {
        source.source
        for source in sources
        for file, _ in source.files
        if (source.source, file.relative) in known.names
    }
    chunks = [
        known.base.docmap(source.name, number)["doc_id"].combine_chunks()
        for source in known.base.sources
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
