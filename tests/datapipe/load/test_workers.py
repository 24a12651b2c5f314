from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from datapipe.dataset import Dataset, open_dataset
from datapipe.dataset.runs import RunStore
from datapipe.errors import StateError, UsageError
from datapipe.load import TokenStream

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def stream(dataset: Dataset, **options: Any) -> TokenStream:
    return TokenStream(dataset, **{"seq_len": 16, "batch_size": 4, **options})


def loader(made: TokenStream, workers: int, **options: Any) -> DataLoader[Any]:
    return DataLoader(made, batch_size=None, num_workers=workers, **options)


def assert_same(one: list[Any], other: list[Any]) -> None:
    assert [batch["sample_end"] for batch in one] == [batch["sample_end"] for batch in other]
    for a, b in zip(one, other, strict=True):
        assert torch.equal(a["input_ids"], b["input_ids"])
        assert torch.equal(a["labels"], b["labels"])


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_batches_come_in_one_order_whatever_the_workers(streamed: Dataset, workers: int) -> None:
    assert_same(list(loader(stream(streamed), workers)), list(stream(streamed)))


def test_spawned_workers_after_some_batches(streamed: Dataset) -> None:
    made = stream(streamed)
    next(iter(made))
    spawned = list(loader(made, 2, multiprocessing_context="spawn"))
    assert_same(spawned, list(stream(streamed)))


def test_state_after_samples_that_a_loader_put_together(streamed: Dataset) -> None:
    made = stream(streamed, batch_size=None, dp_rank=0, dp_world_size=1)
    batches = iter(DataLoader(made, batch_size=8))
    last = [next(batches) for _ in range(3)][-1]
    assert made.state_dict(after=last)["next_sample"] == 24


def test_state_after_samples_of_workers_that_take_turns_is_refused(streamed: Dataset) -> None:
    made = stream(streamed, batch_size=None, dp_rank=0, dp_world_size=1)
    batch = next(iter(DataLoader(made, batch_size=8, num_workers=2)))
    with pytest.raises(StateError, match="aren't consecutive samples"):
        made.state_dict(after=batch)


@pytest.mark.parametrize("workers", [0, 2])
def test_state_after_a_batch_is_exact_at_any_number_of_workers(
    streamed: Dataset, workers: int
) -> None:
    made, whole = stream(streamed), list(stream(streamed))
    batches = iter(loader(made, workers))
    last = [next(batches) for _ in range(7)][-1]
    resumed = stream(streamed)
    resumed.load_state_dict(made.state_dict(after=last))
    assert_same(list(loader(resumed, 2 - workers)), whole[7:])


@pytest.mark.parametrize("persistent", [False, True])
def test_passes_of_workers_begin_as_those_without(streamed: Dataset, persistent: bool) -> None:
    made, whole = stream(streamed), list(stream(streamed))
    made.load_state_dict({**made.state_dict(), "next_sample": 160})
    batches = loader(made, 2, persistent_workers=persistent)
    assert_same(list(batches), whole[40:])
    assert_same(list(batches), whole)
    assert_same(list(batches), whole)


def test_state_without_a_batch_is_refused_while_workers_fetch_ahead(streamed: Dataset) -> None:
    made = stream(streamed)
    batches = iter(loader(made, 1))
    next(batches)
    with pytest.raises(StateError, match="after=batch"):
        made.state_dict()


def test_an_error_in_a_worker_keeps_its_kind(own: Dataset) -> None:
    made = stream(own, run="r")
    next(iter(made))
    with pytest.raises(UsageError, match="run r is recorded"):
        next(iter(loader(stream(own, run="r"), 1)))


def test_workers_record_the_run_and_leave_its_end_open(own: Dataset) -> None:
    made = stream(own, run="r")
    batches = iter(loader(made, 2))
    next(batches)
    del batches
    again = stream(open_dataset(own.url), run="r")
    again.load_state_dict({**again.state_dict(), "next_sample": 8})
    assert next(iter(again))["sample_end"] == 12


@pytest.mark.parametrize(("context", "workers"), [("fork", 2), ("spawn", 1)])
def test_a_state_notes_how_far_a_run_read_by_workers_came(
    own: Dataset, context: str, workers: int
) -> None:
    made = stream(own, run="r")
    batches = iter(loader(made, workers, multiprocessing_context=context))
    last = [next(batches) for _ in range(3)][-1]
    made.state_dict(after=last)
    store = RunStore.of(own.repository)
    assert store.read("r")[0].saved_sample == 12
    assert store.read("r")[0].end is None
