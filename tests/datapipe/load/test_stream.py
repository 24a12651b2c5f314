from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from datapipe.dataset import Dataset
from datapipe.errors import StateError, UsageError
from datapipe.load import Phase, TokenStream
from datapipe.testing import make_dataset, read_shard

T = 16
Row = tuple[tuple[int, ...], tuple[int, ...]]


def stream(dataset: Any, **options: Any) -> TokenStream:
    return TokenStream(dataset, **{"seq_len": T, "batch_size": 4, "window_shards": 2, **options})


def rows(batches: Iterable[dict[str, Any]]) -> list[Row]:
    """(input_ids, labels) of every row, in the order delivered."""
    return [
        (tuple(inputs.tolist()), tuple(labels.tolist()))
        for batch in batches
        for inputs, labels in zip(
            batch["input_ids"].reshape(-1, T), batch["labels"].reshape(-1, T), strict=True
        )
    ]


def all_rows(dataset: Dataset, sources: dict[str, int], *, tail: str = "pad") -> list[Row]:
    """Every sample of whole sources, cut by the definition."""
    found = []
    for source, num_shards in sources.items():
        for number in range(num_shards):
            tokens = read_shard(dataset, source, number).tolist()
            for start in range(0, len(tokens) - 1, T):
                inputs = tokens[start : start + T]
                labels = tokens[start + 1 : start + T + 1]
                short = T - len(labels)
                if short and tail == "drop":
                    continue
                padded = [*inputs[: len(labels)], *[0] * short]
                found.append((tuple(padded), (*labels, *[-100] * short)))
    return found


TRAIN = {"crawl": 5, "books": 3}


@pytest.mark.parametrize("tail", ["pad", "drop"])
def test_every_pair_of_tokens_is_delivered_once(streamed: Dataset, tail: str) -> None:
    delivered = rows(stream(streamed, tail=tail, batch_size=1))
    assert sorted(delivered) == sorted(all_rows(streamed, TRAIN, tail=tail))


def test_each_epoch_delivers_all_in_another_order(streamed: Dataset) -> None:
    made = stream(streamed, batch_size=1, epochs=2)
    delivered = rows(made)
    half = len(delivered) // 2
    assert sorted(delivered[:half]) == sorted(delivered[half:])
    assert delivered[:half] != delivered[half:]


def test_a_batch_is_two_tensors_and_the_next_sample(streamed: Dataset) -> None:
    batch = next(iter(DataLoader(stream(streamed), batch_size=None)))
    assert set(batch) == {"input_ids", "labels", "sample_end"}
    assert batch["input_ids"].shape == batch["labels"].shape == (4, T)
    assert batch["input_ids"].dtype == torch.int64
    assert batch["sample_end"] == 4


def test_single_samples_are_rows(streamed: Dataset) -> None:
    samples = list(stream(streamed, batch_size=None, dp_rank=0, dp_world_size=1))
    assert samples[0]["input_ids"].shape == (T,)
    assert rows(samples) == rows(stream(streamed, batch_size=1))


def test_same_labels_are_a_copy_without_padding(streamed: Dataset) -> None:
    for batch in stream(streamed, labels="same"):
        real = batch["labels"] != -100
        assert torch.equal(batch["labels"][real], batch["input_ids"][real])
        assert not batch["input_ids"][~real].any()  # EOS is 0 here


@pytest.mark.parametrize(("max_id", "token"), [(65_535, 65_535), (131_071, 131_071)])
def test_large_ids_are_delivered_as_they_are(tmp_path: Path, max_id: int, token: int) -> None:
    dataset = make_dataset(tmp_path, {"web": [[[token] * 20 + [0]]]}, max_id=max_id)
    (batch,) = stream(dataset, batch_size=2)
    assert set(batch["input_ids"].unique().tolist()) == {0, token}


def test_delivered_tensors_never_change(streamed: Dataset) -> None:
    held = list(stream(streamed))
    copies = [batch["input_ids"].clone() for batch in held]
    again = rows(stream(streamed))
    assert all(torch.equal(a["input_ids"], b) for a, b in zip(held, copies, strict=True))
    assert rows(held) == again


# -- ranks


def test_ranks_share_every_batch(streamed: Dataset) -> None:
    alone = list(stream(streamed, batch_size=6))
    ranks = [
        list(stream(streamed, batch_size=2, dp_rank=rank, dp_world_size=3)) for rank in range(3)
    ]
    assert {len(batches) for batches in ranks} == {len(alone)}
    for whole, *parts in zip(alone, *ranks, strict=True):
        assert torch.equal(whole["input_ids"], torch.cat([part["input_ids"] for part in parts]))
        assert {part["sample_end"] for part in parts} == {whole["sample_end"]}


def test_rank_comes_from_the_launcher(streamed: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    report = stream(streamed).report()
    assert (report.dp_rank, report.dp_world_size) == (1, 2)


def test_a_rank_that_changed_is_refused(streamed: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    made = stream(streamed)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match=r"rank 0 of 1 .*now this process is rank 1 of 2"):
        next(iter(made))


# -- length and ends


@pytest.mark.parametrize(
    ("options", "num_samples", "num_batches"),
    [
        pytest.param({}, 174, 43, id="one epoch"),
        pytest.param({"epochs": 2}, 348, 87, id="two epochs"),
        pytest.param({"last": "repeat"}, 174, 44, id="repeat"),
        pytest.param({"max_samples": 10}, 10, 2, id="max_samples"),
        pytest.param({"max_tokens": 10 * T + 1}, 10, 2, id="max_tokens"),
        pytest.param({"max_samples": 10, "max_tokens": 5 * T}, 5, 1, id="first limit counts"),
        pytest.param({"mixture": {"crawl": 1, "books": 1}, "max_samples": 500}, 500, 125, id="mix"),
        pytest.param({"skips": [(8, 16)]}, 166, 41, id="skips"),
    ],
)
def test_lengths_are_known_before(
    streamed: Dataset, options: dict[str, Any], num_samples: int, num_batches: int
) -> None:
    made = stream(streamed, batches_per_step=4, **options)
    assert (made.num_samples, len(made)) == (num_samples, num_batches)
    assert made.num_steps == -(-num_batches // 4)
    assert sum(1 for _ in made) == num_batches


def test_a_mixture_without_limit_has_no_end(streamed: Dataset) -> None:
    made = stream(streamed, mixture={"crawl": 1})
    assert (made.num_samples, made.num_steps) == (None, None)
    with pytest.raises(TypeError, match="no end"):
        len(made)
    batches = iter(made)
    assert len([next(batches) for _ in range(100)]) == 100


def test_the_last_batch_can_be_filled_from_the_start(streamed: Dataset) -> None:
    whole, delivered = rows(stream(streamed, batch_size=1)), rows(stream(streamed, last="repeat"))
    assert delivered[:172] == whole[:172]
    assert sorted(delivered[172:]) == sorted(whole[172:] + whole[:2])


def test_a_dataset_smaller_than_a_batch(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, {"web": [[[1] * 40 + [0]]]})
    with pytest.raises(UsageError, match="3 samples, fewer than one global batch of 8"):
        stream(dataset, batch_size=8)
    (batch,) = stream(dataset, batch_size=8, last="repeat")
    assert batch["input_ids"].shape == (8, T)


def test_weights_decide_how_often_a_source_comes(streamed: Dataset) -> None:
    phases = [Phase(0, {"crawl": 3, "books": 1}), Phase(200, {"books": 1})]
    made = stream(streamed, mixture=phases, max_samples=400)
    list(made)
    drawn = {source.name: source.num_drawn for source in made.report().sources}
    assert drawn["crawl"] == pytest.approx(150, abs=2)
    assert drawn["books"] == 400 - drawn["crawl"]


def test_skipped_samples_are_never_delivered(streamed: Dataset) -> None:
    whole, skipping = rows(stream(streamed)), rows(stream(streamed, skips=[(9, 14)]))
    assert skipping == whole[:8] + whole[16:172]


# -- state


def test_state_is_small_json_and_the_same_on_every_rank(streamed: Dataset) -> None:
    states = set()
    for rank in range(2):
        made = stream(streamed, dp_rank=rank, dp_world_size=2)
        batches = iter(made)
        next(batches)
        batch = next(batches)
        assert made.state_dict() == made.state_dict(after=batch)
        states.add(json.dumps(made.state_dict()))
    assert len(states) == 1
    assert len(states.pop()) < 1000


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_schedule_of_sizes_continues_exactly(streamed: Dataset, data: st.DataObject) -> None:
    """Stopped and resumed at random world and batch sizes: the order's prefix, each row once."""
    expected = rows(stream(streamed, batch_size=1, epochs=2))
    delivered: list[Row] = []
    state = None
    for _ in range(data.draw(st.integers(1, 4), label="restarts")):
        world, size = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
        num = data.draw(st.integers(0, 12), label="batches")
        ranks = []
        for rank in range(world):
            made = stream(streamed, batch_size=size, epochs=2, dp_rank=rank, dp_world_size=world)
            if state is not None:
                made.load_state_dict(state)
            ranks.append((made, iter(made)))
        for _ in range(num):
            batches = [next(batches, None) for _, batches in ranks]
            delivered += rows(batch for batch in batches if batch is not None)
        states = [made.state_dict() for made, _ in ranks] if num else [state]
        assert all(one == states[0] for one in states)
        state = states[0]
    assert sorted(delivered) == sorted(expected[: len(delivered)])


def test_resume_at_an_epoch_border_begins_the_next_epoch(streamed: Dataset) -> None:
    whole = rows(stream(streamed, batch_size=1, epochs=2))
    made = stream(streamed, batch_size=1, epochs=2)
    made.load_state_dict({**made.state_dict(), "next_sample": 174})
    assert rows(made) == whole[174:]


def test_a_pass_broken_off_begins_again_where_it_began(streamed: Dataset) -> None:
    made = stream(streamed)
    first = next(iter(made))
    assert torch.equal(first["input_ids"], next(iter(made))["input_ids"])


def test_the_pass_after_a_resumed_one_begins_at_the_beginning(streamed: Dataset) -> None:
    whole, made = rows(stream(streamed)), stream(streamed)
    made.load_state_dict({**made.state_dict(), "next_sample": 100})
    assert rows(made) == whole[100:]
    assert made.state_dict()["next_sample"] == 172
    assert rows(made) == whole


def test_a_state_at_the_end_gives_an_empty_pass(streamed: Dataset) -> None:
    made = stream(streamed)
    list(made)
    made.load_state_dict(made.state_dict())
    assert list(made) == []


@pytest.mark.parametrize(
    ("change", "match"),
    [
        pytest.param({"version": 2}, "version 2", id="newer"),
        pytest.param({"next_sample": -1}, "no state of a stream", id="below 0"),
        pytest.param({"next_sample": 1 << 63}, "no state of a stream", id="no int64"),
        pytest.param({"next_sample": 175}, "sample 175 and .* ends at sample 174", id="beyond"),
        pytest.param({"more": 1}, "no state of a stream", id="unknown key"),
        pytest.param(
            {"spec_digest": "0" * 64}, "wasn't found in .*_runs.*datapipe-runs", id="spec"
        ),
    ],
)
def test_states_that_cannot_be_are_refused_and_change_nothing(
    streamed: Dataset, change: dict[str, Any], match: str
) -> None:
    made = stream(streamed)
    made.load_state_dict({**made.state_dict(), "next_sample": 168})
    with pytest.raises(StateError, match=match) as raised:
        made.load_state_dict({**made.state_dict(), **change})
    assert "\n" not in str(raised.value)
    assert len(rows(made)) == 4


@pytest.mark.parametrize("state", [None, "x", 5, [], {}, {"next_sample": 4}])
def test_what_is_no_state_is_refused(streamed: Dataset, state: Any) -> None:
    with pytest.raises(StateError):
        stream(streamed).load_state_dict(state)


def test_a_state_at_the_very_end_is_fine(streamed: Dataset) -> None:
    made = stream(streamed)
    made.load_state_dict({**made.state_dict(), "next_sample": 174})
    assert list(made) == []


def test_a_state_of_more_epochs_is_refused(streamed: Dataset) -> None:
    state = {**stream(streamed, epochs=2).state_dict(), "next_sample": 200}
    with pytest.raises(StateError, match="as many epochs"):
        stream(streamed).load_state_dict(state)


def test_skips_of_another_batch_size_without_a_record_are_said(streamed: Dataset) -> None:
    made = stream(streamed, skips=[(9, 14)])
    state = {**made.state_dict(), "next_sample": 24}
    with pytest.raises(StateError, match=r"skips .* whole global batches.*now \[9, 15\)"):
        stream(streamed, skips=[(9, 14)], batch_size=3).load_state_dict(state)


@pytest.mark.parametrize(
    "batch", [5, {}, {"sample_end": None}, {"sample_end": "4"}, {"sample_end": -4}, [{}]]
)
def test_a_state_after_what_is_no_batch_is_refused(streamed: Dataset, batch: Any) -> None:
    with pytest.raises(StateError, match="state_dict"):
        stream(streamed).state_dict(after=batch)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        pytest.param({"seed": 1}, "seed was 0 and is 1", id="seed"),
        pytest.param({"seq_len": 8}, "seq_len was 16 and is 8", id="seq_len"),
        pytest.param({"split": "validation"}, "source 0 was train", id="source"),
        pytest.param({"skips": [(0, 4)]}, "skips were none and are", id="skips"),
    ],
)
def test_a_state_of_another_order_is_refused_with_the_difference(
    streamed: Dataset, tmp_path: Path, options: dict[str, Any], match: str
) -> None:
    made = stream(streamed, run="r", runs=str(tmp_path))
    next(iter(made))
    with pytest.raises(StateError, match=match):
        stream(streamed, runs=str(tmp_path), **options).load_state_dict(made.state_dict())


def test_weights_can_change_where_a_run_was_saved(streamed: Dataset, tmp_path: Path) -> None:
    limits = {"max_samples": 200, "runs": str(tmp_path)}
    before = stream(streamed, mixture={"crawl": 1}, run="r", **limits)
    batches = iter(before)
    head = [next(batches) for _ in range(5)]
    phases = [Phase(0, {"crawl": 1}), Phase(20, {"books": 1, "crawl": 1})]
    after = stream(streamed, mixture=phases, **limits)
    after.load_state_dict(before.state_dict())
    assert rows(head) + rows(after) == rows(stream(streamed, mixture=phases, max_samples=200))


def test_skips_stay_what_they_were_at_another_batch_size(streamed: Dataset, tmp_path: Path) -> None:
    options: dict[str, Any] = {"skips": [(9, 14)], "runs": str(tmp_path)}
    made = stream(streamed, run="r", **options)
    batches = iter(made)
    head = [next(batches) for _ in range(4)]
    resumed = stream(streamed, batch_size=3, **options)
    resumed.load_state_dict(made.state_dict())
    whole = rows(stream(streamed, batch_size=1))
    assert rows(head) + rows(resumed) == (whole[:8] + whole[16:])[: 16 + 50 * 3]


def test_a_state_after_something_else_than_a_batch_is_refused(streamed: Dataset) -> None:
    with pytest.raises(StateError, match="sample_end"):
        stream(streamed).state_dict(after={"input_ids": torch.zeros(1)})


# -- what it is


def test_a_pickled_stream_goes_on_where_it_stood(streamed: Dataset) -> None:
    made = stream(streamed)
    made.load_state_dict({**made.state_dict(), "next_sample": 40})
    assert rows(pickle.loads(pickle.dumps(made))) == rows(made)


def test_the_report_says_what_was_drawn(streamed: Dataset) -> None:
    made = stream(streamed, epochs=2)
    list(made)
    report = made.report().to_json()
    assert report["next_sample"] == 348
    assert report["blocks_checked"] == 8
    assert report["sources"][0]["num_epochs"] == 2.0
    assert json.loads(json.dumps(report)) == report


def test_rows_longer_than_a_block_are_checked_and_right(tmp_path: Path) -> None:
    tokens = np.random.default_rng(0).integers(1, 999, 3_300_000)
    dataset = make_dataset(tmp_path, {"web": [[tokens]]})
    made = TokenStream(dataset, seq_len=1_100_000, batch_size=1, tail="drop")
    delivered = sorted(batch["input_ids"][0, :3].tolist() for batch in made)
    assert delivered == sorted(tokens[at : at + 3].tolist() for at in (0, 1_100_000))
    assert made.report().blocks_checked == 5


def test_threads_that_iterate_one_stream_check_blocks_one_at_a_time(tmp_path: Path) -> None:
    dataset = make_dataset(
        tmp_path / "ds", {"a": [[[1 + n % 900 for n in range(600_000)]] for _ in range(6)]}
    )
    options: dict[str, Any] = {"seq_len": 1024, "batch_size": 16}

    def tokens(batches: Iterable[dict[str, Any]]) -> int:
        return sum(int(batch["input_ids"].sum()) for batch in batches)

    expected = tokens(stream(dataset, **options))
    for _ in range(4):
        shared = stream(dataset, **options)
        iterators = [iter(shared) for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            assert list(pool.map(tokens, iterators)) == [expected] * 3
