from __future__ import annotations

import pytest

from datapipe.dataset.index.covered import Covered, TableName, renumbering, united
from datapipe.dataset.manifest import Manifest, ShardRange, SourceSummary


def covered(*ranges: tuple[str, int, int], dropped: tuple[int, int] = (0, 0)) -> Covered:
    shards = tuple(ShardRange(source=s, first=first, end=end) for s, first, end in ranges)
    return Covered(shards, dropped)


OLD = covered(("web", 0, 2), ("code", 0, 1), dropped=(0, 1))
NEW = covered(("web", 2, 3), ("books", 0, 2), dropped=(1, 3))


class FakeManifest:
    """Only its sources are looked at."""

    sources = tuple(
        SourceSummary(
            name=name, order_digest="0" * 64, num_shards=0, num_documents=0, num_tokens=0,
            text_bytes=0,
        )
        for name in ("web", "code", "books")
    )  # fmt: skip


def test_tables_are_numbered_by_source_shard_and_then_dropped() -> None:
    names = [("web", 0), ("web", 1), ("code", 0), (None, 0)]
    assert list(OLD.names()) == names
    assert [OLD.name(number) for number in range(OLD.num_tables)] == names
    for outside in (-1, 4):
        with pytest.raises(IndexError, match=f"table {outside} of 4"):
            OLD.name(outside)


def test_united_files_hold_the_tables_of_both_in_manifest_order() -> None:
    manifest: Manifest = FakeManifest()  # type: ignore[assignment]
    both = united([OLD, NEW], manifest)
    assert both == covered(("web", 0, 3), ("code", 0, 1), ("books", 0, 2), dropped=(0, 3))
    for part in (OLD, NEW):
        numbers = renumbering(part, both).tolist()
        assert [both.name(number) for number in numbers] == list(part.names())
        assert numbers == sorted(numbers)


def test_nothing_has_no_tables() -> None:
    assert list(covered().names()) == []
    assert renumbering(covered(), OLD).tolist() == []
    assert TableName("web", 0).source == "web"
