"""The difference of two versions: by source, reason, licence, language, and by document.

Shards that both have are never read: they differ in nothing. Sums by source and reason stand in
the manifests; those by licence and language need the docmaps of the other shards, and so does the
list of documents, which takes about 100 bytes of memory a document of those shards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from datapipe.dataset.reader import Dataset

__all__ = ["Amount", "Change", "Documents", "VersionDiff", "diff_versions"]

UNKNOWN = "unknown"
"""Licence or language of documents that have none."""

_COLUMNS = [
    "doc_id",
    "source_file",
    "source_offset",
    "source_length",
    "record_id",
    "num_tokens",
    "text_bytes",
    "licence",
    "language",
]


@dataclass(frozen=True, slots=True)
class Amount:
    """So many documents; of a difference, any of the three may be negative."""

    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.documents + other.documents,
            self.tokens + other.tokens,
            self.text_bytes + other.text_bytes,
        )

    def __neg__(self) -> Amount:
        return Amount(-self.documents, -self.tokens, -self.text_bytes)

    def __sub__(self, other: Amount) -> Amount:
        return self + -other

    def to_json(self) -> dict[str, int]:
        """Returns it as JSON values."""
        return {
            "documents": self.documents,
            "tokens": self.tokens,
            "text_bytes": self.text_bytes,
        }


@dataclass(frozen=True, slots=True)
class Change:
    """What was, and what is."""

    before: Amount
    after: Amount

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        return {
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "change": (self.after - self.before).to_json(),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Documents:
    """The documents that only one of two versions has, as rows with their `reason`.

    The reason is what the other version says of them: the "stage.rule" that dropped them there,
    the error they were quarantined with, or that it never read them.
    """

    rows: pa.Table
    """doc_id, source, source_file, source_offset, source_length, record_id, num_tokens,
    text_bytes, licence, language, reason; ordered by origin."""

    def by_reason(self) -> dict[str, Amount]:
        """Returns sums by reason."""
        return _sums(self.rows, "reason")

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values; ids in hex."""
        rows = [{**row, "doc_id": row["doc_id"].hex()} for row in self.rows.to_pylist()]
        reasons = {reason: amount.to_json() for reason, amount in self.by_reason().items()}
        return {"by_reason": reasons, "documents": rows}


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionDiff:
    """How version `after` differs from version `before`."""

    before: Dataset
    after: Dataset
    sources: Mapping[str, Change]
    """Every source of either."""
    reasons: Mapping[str, tuple[int, int]]
    """Documents and records by "dropped: stage.rule" and "quarantined: error", where they differ:
    before and after. They have no tokens."""
    licences: Mapping[str, Amount]
    """Change by licence, where there is one."""
    languages: Mapping[str, Amount]
    """Change by language, where there is one."""
    shards_shared: int
    shards_removed: int
    shards_added: int
    added: Documents | None = field(default=None)
    """None: not asked for."""
    removed: Documents | None = field(default=None)

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        asked = {"added": self.added, "removed": self.removed}
        return {
            "dataset": self.after.url,
            "before": self.before.version,
            "after": self.after.version,
            "sources": {name: change.to_json() for name, change in self.sources.items()},
            "reasons": {
                name: {"before": before, "after": after, "change": after - before}
                for name, (before, after) in self.reasons.items()
            },
            "licences": {name: amount.to_json() for name, amount in self.licences.items()},
            "languages": {name: amount.to_json() for name, amount in self.languages.items()},
            "shards": {
                "shared": self.shards_shared,
                "removed": self.shards_removed,
                "added": self.shards_added,
            },
            **{name: found.to_json() for name, found in asked.items() if found is not None},
        }


def diff_versions(before: Dataset, after: Dataset, *, documents: bool = False) -> VersionDiff:
    """Returns how one version differs from another.

    Args:
        before: a version.
        after: another one, newer or not.
        documents: list the documents that only one of them has.

    Raises:
        DamagedError: a table or docmap can't be read.
    """
    old, new = _docmaps_of(before), _docmaps_of(after)
    gone, come = _without(old, new), _without(new, old)
    licences: dict[str, Amount] = {}
    languages: dict[str, Amount] = {}
    removed: list[pa.Table] = []
    added: list[pa.Table] = []
    for dataset, places, sign, rows in ((before, gone, -1, removed), (after, come, 1, added)):
        for table in _read_docmaps(dataset, places):
            _add(licences, _sums(table, "licence"), sign)
            _add(languages, _sums(table, "language"), sign)
            if documents:
                rows.append(table)
    return VersionDiff(
        before=before,
        after=after,
        sources=_sources(before, after),
        reasons=_reasons(before, after),
        licences=_changed(licences),
        languages=_changed(languages),
        shards_shared=sum(map(len, old.values())) - len(gone),
        shards_removed=len(gone),
        shards_added=len(come),
        added=_only_in(added, removed, other=before) if documents else None,
        removed=_only_in(removed, added, other=after) if documents else None,
    )


_Place = tuple[str, int]


def _docmaps_of(dataset: Dataset) -> dict[str, list[_Place]]:
    """Returns where each docmap, by digest, stands: source and shard."""
    found: dict[str, list[_Place]] = {}
    for source in dataset.sources:
        for number, sha256 in enumerate(dataset.shards(source.name).docmap_sha256):
            found.setdefault(sha256, []).append((source.name, number))
    return found


def _without(
    docmaps: Mapping[str, list[_Place]], others: Mapping[str, list[_Place]]
) -> list[_Place]:
    """Returns the places of docmaps that the others don't have, or not so often."""
    return [
        place
        for sha256, places in docmaps.items()
        for place in places[len(others.get(sha256, ())) :]
    ]


def _read_docmaps(dataset: Dataset, places: list[_Place]) -> Iterator[pa.Table]:
    for source, number in places:
        table = dataset.docmap(source, number).select(_COLUMNS)
        columns = {name: _plain(table[name]) for name in _COLUMNS}
        names = pa.array([source] * table.num_rows, pa.large_string())
        yield pa.table({"doc_id": columns.pop("doc_id"), "source": names, **columns})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    is_text = pa.types.is_dictionary(column.type) or pa.types.is_string(column.type)
    return column.cast(pa.large_string()) if is_text else column


def _sums(table: pa.Table, name: str) -> dict[str, Amount]:
    if not table.num_rows:
        return {}
    keys = pc.fill_null(table[name], UNKNOWN)
    plain = pa.table({"key": keys, "tokens": table["num_tokens"], "bytes": table["text_bytes"]})
    groups = plain.group_by("key").aggregate(
        [([], "count_all"), ("tokens", "sum"), ("bytes", "sum")]
    )
    rows = sorted(groups.to_pylist(), key=lambda row: str(row["key"]))
    return {
        row["key"]: Amount(row["count_all"], row["tokens_sum"], row["bytes_sum"]) for row in rows
    }


def _add(total: dict[str, Amount], found: Mapping[str, Amount], sign: int) -> None:
    for name, amount in found.items():
        total[name] = total.get(name, Amount()) + (amount if sign > 0 else -amount)


def _changed(amounts: Mapping[str, Amount]) -> dict[str, Amount]:
    return {name: amounts[name] for name in sorted(amounts) if amounts[name] != Amount()}


def _sources(before: Dataset, after: Dataset) -> dict[str, Change]:
    old, new = _source_amounts(before), _source_amounts(after)
    names = dict.fromkeys([*old, *new])
    return {name: Change(old.get(name, Amount()), new.get(name, Amount())) for name in names}


def _source_amounts(dataset: Dataset) -> dict[str, Amount]:
    return {
        source.name: Amount(source.num_documents, source.num_tokens, source.text_bytes)
        for source in dataset.sources
    }


def _reasons(before: Dataset, after: Dataset) -> dict[str, tuple[int, int]]:
    old, new = _reason_counts(before), _reason_counts(after)
    names = sorted({*old, *new})
    return {name: (old[name], new[name]) for name in names if old[name] != new[name]}


def _reason_counts(dataset: Dataset) -> Counter[str]:
    counts: Counter[str] = Counter()
    for row in dataset.manifest.conservation:
        counts.update({f"dropped: {rule}": count for rule, count in row.dropped.items()})
        counts.update({f"quarantined: {error}": n for error, n in row.quarantined.items()})
    return counts


# -- document by document


def _only_in(own: list[pa.Table], others: list[pa.Table], *, other: Dataset) -> Documents:
    """Returns the documents of `own` that aren't among `others`, in whatever shard."""
    if not own:
        return Documents(rows=_empty())
    rows = pa.concat_tables(own)
    if others:
        known = pa.concat_tables(others)["doc_id"].combine_chunks()
        rows = rows.filter(pc.invert(pc.is_in(rows["doc_id"], value_set=known)))
    rows = rows.sort_by(
        [(name, "ascending") for name in ("source", "source_file", "source_offset")]
    )
    reasons = pa.array(_reasons_in(other, rows), pa.large_string())
    return Documents(rows=rows.append_column("reason", reasons))


def _empty() -> pa.Table:
    text, number = pa.large_string(), pa.int64()
    kinds = {"num_tokens": number, "text_bytes": number, "doc_id": pa.binary(16)}
    names = ["doc_id", "source", *_COLUMNS[1:], "reason"]
    kinds |= {"source_offset": number, "source_length": number}
    return pa.schema([(name, kinds.get(name, text)) for name in names]).empty_table()


def _reasons_in(other: Dataset, rows: pa.Table) -> list[str]:
    """Returns what the other version says of documents that it doesn't hold."""
    if not rows.num_rows:
        return []
    ids = rows["doc_id"].combine_chunks()
    dropped = other.dropped()
    dropped = dropped.filter(pc.is_in(dropped["doc_id"], value_set=ids))
    names = zip(dropped["stage"].to_pylist(), dropped["rule"].to_pylist(), strict=True)
    found = {
        doc_id: f"dropped: {stage}.{rule}"
        for doc_id, (stage, rule) in zip(dropped["doc_id"].to_pylist(), names, strict=True)
    }
    bad = _quarantined(other)
    origins = zip(*(rows[name].to_pylist() for name in _ORIGIN), strict=True)
    return [
        found.get(doc_id) or bad.get(origin) or "not read"
        for doc_id, origin in zip(ids.to_pylist(), origins, strict=True)
    ]


_ORIGIN = ("source", "source_file", "source_offset", "source_length")


def _quarantined(dataset: Dataset) -> dict[tuple[Any, ...], str]:
    table = dataset.quarantine()
    origins = zip(*(table[name].to_pylist() for name in _ORIGIN), strict=True)
    errors = table["error"].to_pylist()
    return {origin: f"quarantined: {error}" for origin, error in zip(origins, errors, strict=True)}
