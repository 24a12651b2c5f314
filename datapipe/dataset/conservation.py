"""Conservation: documents in = kept + dropped + quarantined, proved from the tables at commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from datapipe.dataset.draft import SourceCounts, VersionDraft
from datapipe.dataset.manifest import ConservationRow
from datapipe.errors import ConservationError

__all__ = ["check_conservation", "count_rows", "differences", "sum_counts"]


def check_conservation(draft: VersionDraft) -> None:
    """Compares what a draft says it counted with what its shards and tables hold.

    Raises:
        ConservationError: they differ, in any source, reason or error.
    """
    problems = [f"{name} was counted twice" for name in _repeated(c.source for c in draft.counts)]
    for name, stated, found in (
        ("kept documents", {c.source: c.kept for c in draft.counts}, _kept(draft)),
        ("text bytes", {c.source: c.text_bytes for c in draft.counts}, _text_bytes(draft)),
        ("dropped", _by_reason(draft.counts, "dropped"), count_rows(draft.dropped, "dropped")),
        (
            "quarantined",
            _by_reason(draft.counts, "quarantined"),
            count_rows(draft.quarantine, "quarantine"),
        ),
    ):
        problems += differences(name, stated, found)
    if draft.inputs is not None:
        unknown = set(draft.inputs.column("source").to_pylist()) - {c.source for c in draft.counts}
        problems += [f"{name} has inputs and no counts" for name in sorted(unknown)]
    if problems:
        raise ConservationError(
            f"the numbers don't add up: {'; '.join(problems)}. Nothing was committed. This is a "
            "fault of the program, not of the input; please report it with these numbers"
        )


def sum_counts(
    before: Sequence[ConservationRow], counts: Sequence[SourceCounts]
) -> tuple[ConservationRow, ...]:
    """Returns the rows of a version that adds `counts` to `before`; new sources behind."""
    rows = {row.source: row for row in before}
    for added in counts:
        rows[added.source] = _added(rows.get(added.source), added)
    return tuple(rows.values())


def count_rows(table: pa.Table | None, name: str) -> dict[str, int]:
    """Returns the rows of a dropped or quarantine table by "source: reason"."""
    if table is None or not table.num_rows:
        return {}
    keys = ["source", "stage", "rule"] if name == "dropped" else ["source", "error"]
    plain = pa.table([_decoded(table.column(key)) for key in keys], names=keys)
    groups = plain.group_by(keys).aggregate([([], "count_all")]).to_pylist()
    return {_key(group, keys): group["count_all"] for group in groups}


def differences(name: str, stated: Mapping[str, int], found: Mapping[str, int]) -> list[str]:
    """Returns one sentence for each key whose numbers differ; an absent key is 0."""
    keys = sorted({key for key, count in [*stated.items(), *found.items()] if count})
    return [
        f"{name} of {key}: {stated.get(key, 0)} counted, {found.get(key, 0)} written"
        for key in keys
        if stated.get(key, 0) != found.get(key, 0)
    ]


def _kept(draft: VersionDraft) -> Counter[str]:
    kept: Counter[str] = Counter()
    for shard in draft.shards:
        kept[shard.source] += shard.num_documents
    return kept


def _text_bytes(draft: VersionDraft) -> Counter[str]:
    text_bytes: Counter[str] = Counter()
    for shard in draft.shards:
        text_bytes[shard.source] += shard.text_bytes
    return text_bytes


def _by_reason(counts: Sequence[SourceCounts], name: str) -> dict[str, int]:
    return {
        f"{row.source}: {reason}": count
        for row in counts
        for reason, count in (row.dropped if name == "dropped" else row.quarantined).items()
    }


def _key(group: Mapping[str, str], keys: Sequence[str]) -> str:
    return f"{group['source']}: {'.'.join(group[key] for key in keys[1:])}"


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.large_string())


def _added(before: ConservationRow | None, added: SourceCounts) -> ConservationRow:
    if before is None:
        before = ConservationRow(
            source=added.source,
            kept=0,
            text_bytes=0,
            bytes_in=0,
            blank_lines=0,
            dropped={},
            quarantined={},
        )
    return ConservationRow(
        source=added.source,
        kept=before.kept + added.kept,
        text_bytes=before.text_bytes + added.text_bytes,
        bytes_in=before.bytes_in + added.bytes_in,
        blank_lines=before.blank_lines + added.blank_lines,
        dropped=_added_reasons(before.dropped, added.dropped),
        quarantined=_added_reasons(before.quarantined, added.quarantined),
    )


def _added_reasons(before: Mapping[str, int], added: Mapping[str, int]) -> dict[str, int]:
    total = Counter(before) + Counter(added)
    return {reason: count for reason, count in sorted(total.items()) if count}


def _repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)
