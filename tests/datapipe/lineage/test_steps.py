"""Batches to documents and documents to batches, against each other and what was delivered."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from datapipe.dataset import Dataset
from datapipe.dataset.runs import RunStore
from datapipe.errors import DamagedError, UnknownReferenceError
from datapipe.lineage import documents_of_batch, documents_of_step, steps_of_document
from datapipe.load import Phase, TokenStream
from datapipe.testing import make_dataset, read_shard

T = 16


def stream(data: Any, **options: Any) -> TokenStream:
    return TokenStream(
        data, **{"seq_len": T, "batch_size": 4, "run": "r", "window_shards": 2, **options}
    )


class Delivered(NamedTuple):
    """A row as the loader gave it: real inputs and the last real label."""

    batch: int
    rank: int
    row: int
    tokens: tuple[int, ...]


def take(
    data: Any, num: int | None, *, first: int = 0, state: Any = None, ranks: int = 1, **options: Any
) -> tuple[list[Delivered], dict[str, Any]]:
    """Takes batches on all ranks, numbered from `first`, and returns rows and state."""
    rows: list[Delivered] = []
    for rank in reversed(range(ranks)):
        made = stream(data, dp_rank=rank, dp_world_size=ranks, **options)
        if state is not None:
            made.load_state_dict(state)
        batches = iter(made)
        for number, batch in enumerate(itertools.islice(batches, num), start=first):
            rows += _rows(number, rank, batch)
        batches.close()  # type: ignore[attr-defined]
    return rows, made.state_dict()


def _rows(batch: int, rank: int, tensors: dict[str, Any]) -> Iterator[Delivered]:
    pairs = zip(tensors["input_ids"].tolist(), tensors["labels"].tolist(), strict=True)
    for row, (inputs, labels) in enumerate(pairs):
        real = [label for label in labels if label != -100]
        yield Delivered(batch, rank, row, (*inputs[: len(real)], real[-1]))


def assert_lineage_agrees(
    dataset: Dataset, rows: list[Delivered], *, run: str = "r", **where: Any
) -> None:
    """Every delivered row is what lineage says, and each document's steps are the inverse."""
    expected: Counter[tuple[str, int, int, int, int]] = Counter()
    for number in sorted({row.batch for row in rows}):
        answer = documents_of_batch(dataset, run=run, batch=number, **where)
        samples = {(s.rank, s.row): s for s in answer.samples}
        mine = [row for row in rows if row.batch == number]
        assert set(samples) == {(row.rank, row.row) for row in mine}
        for row in mine:
            sample = samples[row.rank, row.row]
            shard = read_shard(dataset, sample.source.rpartition("/")[2], sample.shard)
            span = shard[sample.token_start : sample.token_start + sample.num_tokens]
            assert tuple(span.tolist()) == row.tokens
            assert sum(doc.tokens for doc in sample.documents) == sample.num_tokens
            for doc in sample.documents:
                expected[doc.doc_id, number, row.rank, row.row, doc.tokens] += 1
    found: Counter[tuple[str, int, int, int, int]] = Counter()
    asked = sorted({key[0] for key in expected})[::5]
    for doc_id in asked:
        steps = steps_of_document(dataset, doc_id, run=run, **where)
        found.update((doc_id, s.batch, s.rank, s.row, s.tokens) for s in steps.seen if s.delivered)
    assert found == Counter({key: num for key, num in expected.items() if key[0] in asked})


def test_both_ways_agree_with_what_was_delivered(own: Dataset) -> None:
    rows, _ = take(own, None)
    assert_lineage_agrees(own, rows)


def test_they_agree_over_epochs_ranks_and_single_tokens(own: Dataset) -> None:
    rows, _ = take(own, None, ranks=2, batch_size=3, epochs=2, last="repeat")
    assert_lineage_agrees(own, rows)


def test_they_agree_over_a_mixture_with_phases_and_skips(own: Dataset) -> None:
    phases = [Phase(0, {"crawl": 2, "books": 1}), Phase(64, {"books": 3, "crawl": 1})]
    rows, _ = take(own, None, mixture=phases, max_samples=150, skips=[(20, 30)], lanes=2)
    assert_lineage_agrees(own, rows)


def test_they_agree_over_resumes_at_other_sizes(own: Dataset) -> None:
    first, state = take(own, 10)
    second, state = take(own, 6, first=10, state=state, ranks=3, batch_size=2)
    third, _ = take(own, None, first=16, state=state, ranks=2, batch_size=1)
    assert_lineage_agrees(own, first + second + third)


def test_a_resume_from_an_older_state_takes_back_what_came_after(own: Dataset) -> None:
    first, early = take(own, 4)
    lost, _ = take(own, 20, first=4, state=early)
    again, _ = take(own, 3, first=4, state=early, batch_size=2)
    assert_lineage_agrees(own, first + again)
    with pytest.raises(UnknownReferenceError, match="its last batch is 6, in step 6"):
        documents_of_batch(own, run="r", batch=lost[-1].batch)


def test_they_agree_on_several_datasets(own: Dataset, tmp_path: Path) -> None:
    other = make_dataset(tmp_path / "other", {"wiki": [[[*range(1, 70), 0], [5, 6, 0]]]})
    runs = str(tmp_path / "records")
    data = {"main": own, "more": other}
    mixture = {"main/crawl": 1, "more/wiki": 1}
    made = stream(data, mixture=mixture, max_samples=40, runs=runs)
    list(made)
    samples = documents_of_batch(own, run="r", batch=3, runs=runs).samples
    assert {sample.source for sample in samples} == {"main/crawl", "more/wiki"}
    seen = steps_of_document(own, "wiki-0-1", run="r", runs=runs).seen
    assert len(seen) == pytest.approx(20 / 5, abs=1)
    assert seen == steps_of_document(other, "wiki-0-1", run="r", runs=runs).seen


def test_a_step_has_all_batches_of_its_accumulation(own: Dataset) -> None:
    take(own, 9, batches_per_step=4)
    answer = documents_of_step(own, run="r", step=1)
    assert answer.batches == (4, 5, 6, 7)
    assert {sample.batch for sample in answer.samples} == {4, 5, 6, 7}
    assert documents_of_step(own, run="r", step=2).batches == (8,)
    assert documents_of_batch(own, run="r", batch=6).step == 1


def test_a_step_broken_off_has_the_batches_of_both_attempts(own: Dataset) -> None:
    _, state = take(own, 6, batches_per_step=4)
    take(own, 6, state=state, batches_per_step=4)
    assert documents_of_step(own, run="r", step=1).batches == (4, 5, 6, 7, 8, 9)
    assert documents_of_step(own, run="r", step=2).batches == (10, 11)


def test_one_rank_is_a_part_of_all(own: Dataset) -> None:
    take(own, 3, ranks=2)
    everything = documents_of_step(own, run="r", step=2).samples
    one = documents_of_step(own, run="r", step=2, rank=1).samples
    assert one == tuple(sample for sample in everything if sample.rank == 1)
    assert len(one) == 4


# -- what is certain


def kill(dataset: Dataset, **options: Any) -> TokenStream:
    """Takes five batches and leaves the record open, as a kill does."""
    made = stream(dataset, **options)
    batches = iter(made)
    for _ in range(5):
        next(batches)
    batches.close()  # type: ignore[attr-defined]
    (Path(dataset.url) / "_runs/r/ends/00000000.json").unlink()
    return made


def test_after_a_kill_all_is_planned_and_nothing_certain(own: Dataset) -> None:
    kill(own)
    assert documents_of_batch(own, run="r", batch=2).delivered is None
    assert documents_of_batch(own, run="r", batch=42).delivered is None
    seen = steps_of_document(own, "crawl-2-3", run="r").seen
    assert {item.delivered for item in seen} == {None}


def test_after_a_kill_what_a_saved_state_says_is_certain(own: Dataset) -> None:
    made = stream(own)
    for batch in itertools.islice(iter(made), 5):
        made.state_dict(after=batch) if batch["sample_end"] == 12 else None
    (Path(own.url) / "_runs/r/ends/00000000.json").unlink()
    certain = [documents_of_batch(own, run="r", batch=number).delivered for number in range(5)]
    assert certain == [True, True, True, None, None]


def test_a_resume_makes_what_came_before_certain(own: Dataset) -> None:
    made = kill(own)
    made.load_state_dict({**made.state_dict(), "next_sample": 16})
    next(iter(made))
    assert documents_of_batch(own, run="r", batch=3).delivered is True


def test_a_run_without_end_lists_one_epoch_more_than_is_certain(own: Dataset) -> None:
    kill(own, mixture={"crawl": 1})
    answer = steps_of_document(own, "crawl-2-3", run="r")
    assert not answer.complete
    assert {item.epoch for item in answer.seen} == {0}


# -- versions and places


def test_the_version_that_was_read_answers_after_the_dataset_moved_on(own: Dataset) -> None:
    rows, _ = take(own, 5)
    before = documents_of_batch(own, run="r", batch=3)
    later = make_dataset(own.url, {"crawl": [[[7] * 30 + [0]]], "books": [[[8] * 9 + [0]]]})
    assert later.version == 2
    assert documents_of_batch(later, run="r", batch=3) == before
    assert_lineage_agrees(later, rows)
    assert steps_of_document(later, "crawl-5-0", run="r").seen == ()


def test_a_dataset_that_was_moved_answers_from_its_new_place(own: Dataset) -> None:
    take(own, 5)
    before = documents_of_batch(own, run="r", batch=3)
    moved = Path(own.url).rename(Path(own.url).with_name("moved"))
    assert documents_of_batch(str(moved), run="r", batch=3) == before


def test_a_version_that_is_gone_is_named(own: Dataset, tmp_path: Path) -> None:
    runs = str(tmp_path / "records")
    take(own, 2, runs=runs)
    stranger = make_dataset(tmp_path / "stranger", {"web": [[[1, 2, 0]]]})
    Path(own.url).rename(tmp_path / "away")
    with pytest.raises(UnknownReferenceError, match=r"run r read version 1 of .*own"):
        documents_of_batch(stranger, run="r", batch=0, runs=runs)


# -- what isn't there


@pytest.mark.parametrize(
    ("question", "match"),
    [
        pytest.param({"batch": 5}, "no batch 5: its last batch is 4, in step 4", id="batch"),
        pytest.param({"batch": -1}, "no batch -1", id="batch below 0"),
        pytest.param(
            {"batch": 0, "rank": 1}, "1 data-parallel ranks there and no rank 1", id="rank"
        ),
        pytest.param({"batch": 0, "run": "s"}, "no run s in .*runs there: r", id="run"),
    ],
)
def test_batches_that_are_not_there_are_named(
    own: Dataset, question: dict[str, Any], match: str
) -> None:
    take(own, 5)
    with pytest.raises(UnknownReferenceError, match=match):
        documents_of_batch(own, **{"run": "r", **question})


def test_a_step_that_is_not_there_is_named(own: Dataset) -> None:
    take(own, 5)
    with pytest.raises(UnknownReferenceError, match="no step 7"):
        documents_of_step(own, run="r", step=7)


@pytest.mark.parametrize(
    ("document", "match"),
    [
        pytest.param("crawl-1", "did you mean crawl-1-0 or crawl-1-1", id="part of a record id"),
        pytest.param("f" * 32, "check the id", id="no such doc_id"),
        pytest.param("", "doc_id or record id", id="empty"),
    ],
)
def test_documents_that_are_not_there_get_a_hint(own: Dataset, document: str, match: str) -> None:
    take(own, 1)
    with pytest.raises(UnknownReferenceError, match=match):
        steps_of_document(own, document, run="r")


def test_the_start_of_a_doc_id_gets_the_whole(own: Dataset) -> None:
    take(own, 1)
    doc_id = own.docmap("crawl", 2)["doc_id"][3].as_py().hex()
    with pytest.raises(UnknownReferenceError, match=f"did you mean {doc_id}"):
        steps_of_document(own, doc_id[:9], run="r")


def test_a_document_outside_what_the_run_reads_was_never_seen(own: Dataset) -> None:
    take(own, 1)
    answer = steps_of_document(own, "crawl@validation-0-2", run="r")
    assert answer.seen == ()
    assert answer.document.shard.source == "crawl@validation"


def test_a_document_of_two_datasets_is_found_in_both(own: Dataset, tmp_path: Path) -> None:
    runs = str(tmp_path / "records")
    list(stream({"a": own, "b": own}, runs=runs))
    one = steps_of_document(own, "crawl-2-3", run="r", runs=runs).seen
    assert len(one) % 2 == 0
    found = {(seen.batch, seen.rank, seen.row) for seen in one}
    labels = {
        sample.source
        for batch in {seen.batch for seen in one}
        for sample in documents_of_batch(own, run="r", batch=batch, runs=runs).samples
        if (sample.batch, sample.rank, sample.row) in found
    }
    assert labels == {"a/crawl", "b/crawl"}


def test_a_document_is_found_in_every_version_that_a_run_read(own: Dataset, tmp_path: Path) -> None:
    make_dataset(own.url, {"crawl": [[[7] * 30 + [0]]]})
    runs, data = str(tmp_path / "records"), {"old": f"{own.url}@1", "new": f"{own.url}@2"}
    list(stream(data, runs=runs))
    labels = {}
    for document in ("crawl-2-3", "crawl-5-0"):
        seen = steps_of_document(own, document, run="r", runs=runs).seen
        labels[document] = {
            sample.source
            for item in seen
            for sample in documents_of_batch(own, run="r", batch=item.batch, runs=runs).samples
            if (sample.rank, sample.row) == (item.rank, item.row)
        }
    assert labels == {"crawl-2-3": {"old/crawl", "new/crawl"}, "crawl-5-0": {"new/crawl"}}


def test_answers_are_json_with_literal_keys(own: Dataset) -> None:
    take(own, 2)
    batch = json.loads(json.dumps(documents_of_batch(own, run="r", batch=1).to_json()))
    assert set(batch) == {"run", "step", "batches", "delivered", "samples"}
    assert set(batch["samples"][0]) == {
        *("sample", "batch", "rank", "row", "source", "shard", "epoch"),
        *("token_start", "num_tokens", "documents"),
    }
    document = batch["samples"][0]["documents"][0]
    assert set(document) == {
        *("doc_id", "record_id", "source", "source_file", "source_offset", "source_length"),
        *("token_start", "tokens"),
    }
    steps = steps_of_document(own, document["doc_id"], run="r").to_json()
    assert set(steps) == {"run", "document", "seen", "complete"}
    assert set(steps["document"]) == {
        *("doc_id", "record_id", "source", "source_file", "source_offset", "source_length"),
        *("shard", "token_start", "num_tokens"),
    }
    assert set(steps["seen"][0]) == {
        *("step", "batch", "rank", "row", "sample", "epoch", "tokens", "delivered"),
    }


# -- damaged records


@pytest.mark.parametrize("folder", ["segments", "progress", "ends"])
@pytest.mark.parametrize("data", [b"", b"{}", b'{"format":1,"sources":[{"dataset":7}]}'])
def test_a_damaged_record_is_refused_in_one_line(own: Dataset, folder: str, data: bytes) -> None:
    made = stream(own)
    for batch in itertools.islice(iter(made), 2):
        made.state_dict(after=batch)
    (Path(own.url) / f"_runs/r/{folder}/00000000.json").write_bytes(data)
    for ask in (
        lambda: documents_of_batch(own, run="r", batch=0),
        lambda: steps_of_document(own, "crawl-2-3", run="r"),
    ):
        with pytest.raises(DamagedError, match=f"_runs/r/{folder}/00000000.json") as raised:
            ask()
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        pytest.param({"source": "crawls"}, "has no source crawls", id="source"),
        pytest.param({"num_shards": 99}, "other shards than its spec", id="more shards"),
        pytest.param({"num_shards": 2}, "other shards than its spec", id="fewer shards"),
    ],
)
def test_a_record_that_contradicts_the_dataset_is_damaged(
    own: Dataset, change: dict[str, Any], match: str
) -> None:
    list(stream(own, split="train"))
    store = RunStore.of(own.repository)
    (segment,) = store.segments("r")
    (source,) = segment.sources
    parts = (msgspec.structs.replace(source.parts[0], **change), *source.parts[1:])
    sources = (msgspec.structs.replace(source, parts=parts),)
    store.append("s", msgspec.structs.replace(segment, sources=sources), number=0)
    with pytest.raises(DamagedError, match=f"run s in .*segment 0.*{match}"):
        documents_of_batch(own, run="s", batch=0)
