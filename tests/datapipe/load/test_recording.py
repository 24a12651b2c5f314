from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from datapipe.dataset import Dataset
from datapipe.dataset.runs import RunStore
from datapipe.errors import DatasetError, StateError, UsageError
from datapipe.load import TokenStream
from tiering.errors import AccessDeniedError, NoSpaceError
from tiering.store import LocalFiles


def stream(dataset: Dataset, **options: Any) -> TokenStream:
    return TokenStream(dataset, **{"seq_len": 16, "batch_size": 4, "run": "r", **options})


def take(made: TokenStream, num: int) -> dict[str, Any]:
    """Takes batches, stops, and returns the state."""
    batches = iter(made)
    for _ in itertools.islice(batches, num):
        pass
    batches.close()  # type: ignore[attr-defined]
    return made.state_dict()


def firsts(store: RunStore) -> list[tuple[int, int, int]]:
    return [(s.first_batch, s.first_step, s.first_sample) for s in store.segments("r")]


def test_a_run_is_recorded_with_what_it_reads(own: Dataset) -> None:
    made = stream(own, batches_per_step=2)
    take(made, 3)
    store = RunStore.of(own.repository)
    (segment,) = store.segments("r")
    assert store.spec(segment.spec) == made.spec.to_bytes()
    assert (segment.global_batch_size, segment.batches_per_step, segment.end_sample) == (4, 2, 174)
    assert [(use.url, use.version, use.manifest) for use in segment.datasets] == [
        (own.url, 1, own.manifest_sha256)
    ]
    assert [(part.source, part.num_shards) for part in segment.sources[0].parts] == [
        ("crawl", 5),
        ("books", 3),
    ]


def test_nothing_is_recorded_before_the_first_batch_is_asked_for(own: Dataset) -> None:
    stream(own)
    assert RunStore.of(own.repository).runs() == []


@pytest.mark.parametrize(
    ("num", "reason", "next_batch"),
    [pytest.param(3, "closed", 3, id="stopped"), pytest.param(99, "finished", 43, id="to the end")],
)
def test_where_a_run_ended_is_recorded(
    own: Dataset, num: int, reason: str, next_batch: int
) -> None:
    take(stream(own), num)
    end = RunStore.of(own.repository).read("r")[0].end
    assert end is not None
    assert (end.reason, end.next_batch) == (reason, next_batch)


def test_an_error_ends_the_record(own: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = iter(stream(own))
    next(batches)
    with monkeypatch.context() as patched:
        patched.setattr(os, "preadv", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            next(batches)
    end = RunStore.of(own.repository).read("r")[0].end
    assert end is not None
    assert (end.reason, end.next_batch) == ("failed", 1)


def test_a_killed_run_stays_open_and_can_be_resumed(own: Dataset) -> None:
    code = (
        "import os, signal, sys\n"
        "from datapipe.load import TokenStream\n"
        "batches = iter(TokenStream(sys.argv[1], seq_len=16, batch_size=4, run='r'))\n"
        "for _ in range(5): next(batches)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'tokenizers'}"}
    done = subprocess.run([sys.executable, "-c", code, own.url], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    store = RunStore.of(own.repository)
    assert store.read("r")[0].end is None
    resumed = stream(own)
    resumed.load_state_dict({**resumed.state_dict(), "next_sample": 12})
    take(resumed, 1)
    assert firsts(store) == [(0, 0, 0), (3, 3, 12)]


def test_segments_follow_each_other_at_any_size(own: Dataset) -> None:
    state = take(stream(own, batches_per_step=2), 6)
    resumed = stream(own, batch_size=3, dp_rank=0, dp_world_size=2)
    resumed.load_state_dict(state)
    state = take(resumed, 5)
    resumed = stream(own, batch_size=1)
    resumed.load_state_dict(state)
    take(resumed, 1)
    assert firsts(RunStore.of(own.repository)) == [(0, 0, 0), (6, 3, 24), (11, 8, 54)]


def test_an_older_state_takes_the_place_of_what_came_after(own: Dataset) -> None:
    made = stream(own)
    early = take(made, 3)
    made.load_state_dict(early)
    take(made, 10)
    made.load_state_dict(early)
    take(made, 1)
    assert firsts(RunStore.of(own.repository)) == [(0, 0, 0), (3, 3, 12), (3, 3, 12)]


def test_a_run_that_exists_is_not_begun_again(own: Dataset) -> None:
    take(stream(own), 2)
    with pytest.raises(UsageError, match=r"run r is recorded .*load_state_dict.*another name"):
        next(iter(stream(own)))


def test_a_run_is_begun_again_by_loading_the_beginning(own: Dataset) -> None:
    take(stream(own), 2)
    made = stream(own, seed=5)
    made.load_state_dict(made.state_dict())
    take(made, 1)
    assert firsts(RunStore.of(own.repository)) == [(0, 0, 0), (0, 0, 0)]


def test_looking_at_the_first_batch_does_not_use_up_the_run(own: Dataset) -> None:
    made = stream(own)
    next(iter(made))
    assert len(list(made)) == 43
    end = RunStore.of(own.repository).read("r")[1].end
    assert end is not None
    assert end.next_batch == 43


def test_a_second_pass_of_a_recorded_stream_is_refused(own: Dataset) -> None:
    made = stream(own)
    list(made)
    with pytest.raises(UsageError, match=r"to its end.*epochs="):
        next(iter(made))


def test_a_state_between_batches_of_the_run_is_refused(own: Dataset) -> None:
    take(stream(own), 3)
    made = stream(own)
    made.load_state_dict({**made.state_dict(), "next_sample": 7})
    with pytest.raises(StateError, match="no batch that begins at sample 7"):
        next(iter(made))


def test_a_state_begins_a_run_of_a_new_name(own: Dataset) -> None:
    made = stream(own, run="fork")
    made.load_state_dict({**made.state_dict(), "next_sample": 7})
    take(made, 1)
    (segment,) = RunStore.of(own.repository).segments("fork")
    assert (segment.first_batch, segment.first_sample) == (0, 7)


@pytest.mark.parametrize("rank", [1, 2])
def test_other_ranks_write_nothing(own: Dataset, rank: int) -> None:
    take(stream(own, dp_rank=rank, dp_world_size=3), 2)
    assert RunStore.of(own.repository).runs() == []


def test_records_can_be_kept_elsewhere(streamed: Dataset, tmp_path: Path) -> None:
    take(stream(streamed, runs=str(tmp_path / "records")), 2)
    assert RunStore.at(str(tmp_path / "records")).runs() == ["r"]
    assert RunStore.of(streamed.repository).runs() == []


def test_a_dataset_that_cannot_be_written_warns_and_records_here(
    own: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put = LocalFiles.put

    def refuse(self: LocalFiles, path: str, *rest: Any, **options: Any) -> Any:
        if self.url == own.url:
            raise AccessDeniedError("read-only", path=path)
        return put(self, path, *rest, **options)

    monkeypatch.setattr(LocalFiles, "put", refuse)
    with pytest.warns(UserWarning, match="can't be written.*datapipe-runs"):
        state = take(stream(own), 2)
    resumed = stream(own)
    resumed.load_state_dict(state)
    take(resumed, 1)
    assert firsts(RunStore.at(str(tmp_path / "datapipe-runs"))) == [(0, 0, 0), (2, 2, 8)]


# -- how far it came


def noted(dataset: Dataset, number: int = 0) -> int | None:
    return RunStore.of(dataset.repository).read("r")[number].saved_sample


def test_a_state_notes_how_far_the_run_came(own: Dataset) -> None:
    made = stream(own)
    assert made.state_dict()["next_sample"] == 0
    batches = iter(made)
    first, second = next(batches), next(batches)
    made.state_dict(after=first)
    assert noted(own) == 4
    made = again_at_once(made)
    made.state_dict(after=second)
    assert noted(own) == 8
    made = again_at_once(made)
    made.state_dict(after=first)
    assert noted(own) == 8


def again_at_once(made: TokenStream) -> TokenStream:
    """Lets the stream note again without waiting."""
    assert made._writer is not None
    made._writer._next_note_seconds = 0.0
    return made


def test_notes_take_a_small_part_of_the_time(own: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = []
    note = RunStore.note

    def counted(*arguments: Any) -> None:
        writes.append(arguments)
        note(*arguments)

    monkeypatch.setattr(RunStore, "note", counted)
    made = stream(own, batch_size=1)
    begun = time.monotonic()
    for batch in made:
        made.state_dict(after=batch)
    taken = time.monotonic() - begun
    assert 1 <= len(writes) <= 2 + 1000 * taken


def test_a_note_of_before_a_resume_is_not_lowered(own: Dataset) -> None:
    made = stream(own)
    batches = iter(made)
    early = made.state_dict(after=next(batches))
    again_at_once(made).state_dict(after=next(batches))
    made.load_state_dict(early)
    again_at_once(made).state_dict()
    assert noted(own) == 8
    resumed = iter(made)
    next(resumed)
    again_at_once(made).state_dict()
    assert (noted(own), noted(own, 1)) == (8, 8)


def test_other_ranks_and_streams_without_a_run_note_nothing(own: Dataset) -> None:
    for options in ({"run": None}, {"dp_rank": 1, "dp_world_size": 2}):
        made = stream(own, **options)
        made.state_dict(after=next(iter(made)))
    assert RunStore.of(own.repository).runs() == []


def test_a_note_that_cannot_be_stored_warns_and_gives_the_state(
    own: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stream(own)
    batches = iter(made)
    batch = next(batches)

    def refuse(*_: Any, **__: Any) -> Any:
        raise NoSpaceError("full")

    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "put", refuse)
        with pytest.warns(UserWarning, match="run r came to sample 4 can't be recorded"):
            assert made.state_dict(after=batch)["next_sample"] == 4


def test_a_record_stays_small_however_often_a_state_is_asked_for(own: Dataset) -> None:
    made = stream(own, batch_size=1)
    for batch in made:
        again_at_once(made).state_dict(after=batch)
    files = list((Path(own.url) / "_runs/r").rglob("*.json"))
    assert len(files) == 3
    assert sum(path.stat().st_size for path in files) < 3000


def test_an_end_that_cannot_be_recorded_warns(
    own: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = iter(stream(own))
    next(batches)

    def refuse(*_: Any, **__: Any) -> Any:
        raise NoSpaceError("full")

    monkeypatch.setattr(LocalFiles, "put", refuse)
    with pytest.warns(UserWarning, match="end of run r at batch 1 can't be recorded"):
        batches.close()  # type: ignore[attr-defined]


# -- a dataset that is moved while it is read


def moved(dataset: Dataset) -> Path:
    """Moves a dataset away, and returns where it was."""
    was = Path(dataset.url)
    was.rename(was.with_name("moved"))
    return was


def test_an_end_is_not_recorded_where_the_dataset_was_moved_from(own: Dataset) -> None:
    batches = iter(stream(own))
    next(batches)
    was = moved(own)
    with pytest.warns(UserWarning, match="end of run r .*segment 0 of run r is no longer in"):
        batches.close()  # type: ignore[attr-defined]
    assert not was.exists()
    was.with_name("moved").rename(was)
    assert RunStore.of(own.repository).read("r")[0].end is None


def test_progress_is_not_noted_where_the_dataset_was_moved_from(own: Dataset) -> None:
    made = stream(own)
    batches = iter(made)
    batch = next(batches)
    was = moved(own)
    with pytest.warns(UserWarning, match="sample 4 can't be recorded.*it was moved or removed"):
        assert made.state_dict(after=batch)["next_sample"] == 4
    with pytest.warns(UserWarning, match="end of run r"):
        batches.close()  # type: ignore[attr-defined]
    assert not was.exists()


@pytest.mark.parametrize("is_begun", [False, True], ids=["a new run", "a run that exists"])
def test_a_run_is_not_begun_where_the_dataset_was_moved_from(own: Dataset, is_begun: bool) -> None:
    made = stream(own)
    if is_begun:
        take(made, 1)
    was = moved(own)
    with pytest.raises(DatasetError, match=r"no dataset is there any more.*where it is now"):
        next(iter(made))
    assert not was.exists()
