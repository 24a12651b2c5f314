from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import msgspec
import pytest

from datapipe.dataset import Dataset, sha256_hex
from datapipe.dataset.parts import Part, SourceParts
from datapipe.dataset.runs import (
    DatasetUse,
    RunSegment,
    RunStore,
    SegmentEnd,
    check_run_name,
    run_places,
)
from datapipe.errors import DamagedError, DatasetError, UsageError

SEGMENT = RunSegment(
    spec="5" * 64,
    sources=(SourceParts(name="web", parts=(Part(dataset=0, source="web", num_shards=3),)),),
    datasets=(DatasetUse(name=None, url="/data/web", version=2, manifest="a" * 64),),
    split="train",
    first_batch=4,
    first_step=2,
    first_sample=32,
    global_batch_size=8,
    dp_world_size=2,
    batches_per_step=2,
    end_sample=None,
    last="drop",
    started_seconds=1000.5,
)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore.at(str(tmp_path))


def test_a_segment_is_this_json(store: RunStore, tmp_path: Path) -> None:
    store.append("r", SEGMENT, number=0)
    assert json.loads((tmp_path / "r/segments/00000000.json").read_bytes()) == {
        "format": 1,
        "spec": "5" * 64,
        "sources": [{"name": "web", "parts": [{"dataset": 0, "source": "web", "num_shards": 3}]}],
        "datasets": [{"name": None, "url": "/data/web", "version": 2, "manifest": "a" * 64}],
        "split": "train",
        "first_batch": 4,
        "first_step": 2,
        "first_sample": 32,
        "global_batch_size": 8,
        "dp_world_size": 2,
        "batches_per_step": 2,
        "end_sample": None,
        "last": "drop",
        "started_seconds": 1000.5,
    }
    assert store.segments("r") == [SEGMENT]


def test_an_end_is_this_json_and_the_first_stands(store: RunStore, tmp_path: Path) -> None:
    assert store.end("r", 0) is None
    store.finish("r", 0, SegmentEnd(next_batch=7, reason="closed"))
    store.finish("r", 0, SegmentEnd(next_batch=9, reason="failed"))
    path = tmp_path / "r/ends/00000000.json"
    assert json.loads(path.read_bytes()) == {"format": 1, "next_batch": 7, "reason": "closed"}
    assert store.end("r", 0) == SegmentEnd(next_batch=7, reason="closed")


def test_a_spec_is_stored_once_under_its_digest(store: RunStore, tmp_path: Path) -> None:
    digest = store.put_spec(b'{"a":1}')
    assert store.put_spec(b'{"a":1}') == digest == sha256_hex(b'{"a":1}')
    assert store.spec(digest) == b'{"a":1}'
    assert store.spec("0" * 64) is None
    assert [path.name for path in (tmp_path / "_specs").iterdir()] == [f"{digest}.json"]


def test_records_in_a_dataset_lie_below_runs(dataset: Dataset) -> None:
    RunStore.of(dataset.repository).append("r", SEGMENT, number=0)
    assert (Path(dataset.url) / "_runs/r/segments/00000000.json").exists()


def test_a_segment_is_begun_by_one_process(store: RunStore) -> None:
    store.append("r", SEGMENT, number=0)
    with pytest.raises(UsageError, match="begun by another process"):
        store.append("r", SEGMENT, number=0)


def test_runs_are_listed_without_specs(store: RunStore) -> None:
    store.put_spec(b"{}")
    for run in ("b", "a.1"):
        store.append(run, SEGMENT, number=0)
    assert store.runs() == ["a.1", "b"]
    assert "runs there: a.1, b" in str(store.unknown("c"))


@pytest.mark.parametrize("name", ["a", "2026-11-30_x.y", "A" * 128])
def test_run_names_that_can_be(name: str) -> None:
    assert check_run_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "..", ".x", "_specs", "a/b", "a\\b", "a b", "A" * 129, "a\n", "\u00e9", 7]
)
def test_run_names_that_cannot_be(name: Any) -> None:
    with pytest.raises(UsageError, match="can't name a run"):
        check_run_name(name)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        pytest.param({"format": 2}, DatasetError, "format 2", id="newer"),
        pytest.param({"spec": "x"}, DamagedError, "spec", id="no digest"),
        pytest.param({"first_batch": -1}, DamagedError, "first_batch", id="below 0"),
        pytest.param({"last": "keep"}, DamagedError, "last", id="unknown word"),
    ],
)
def test_a_record_that_cannot_be_read_is_named(
    store: RunStore, tmp_path: Path, change: dict[str, Any], error: type[Exception], match: str
) -> None:
    store.append("r", SEGMENT, number=0)
    path = tmp_path / "r/segments/00000000.json"
    path.write_bytes(json.dumps({**msgspec.to_builtins(SEGMENT), **change}).encode())
    with pytest.raises(error, match=match):
        store.segments("r")


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"format":"1"}'])
def test_a_record_that_is_no_record_is_damaged(
    store: RunStore, tmp_path: Path, data: bytes
) -> None:
    store.append("r", SEGMENT, number=0)
    (tmp_path / "r/segments/00000000.json").write_bytes(data)
    with pytest.raises(DamagedError, match="isn't what a run record has there"):
        store.segments("r")


def test_a_lost_segment_is_noticed(store: RunStore, tmp_path: Path) -> None:
    for number in range(3):
        store.append("r", SEGMENT, number=number)
    (tmp_path / "r/segments/00000001.json").unlink()
    with pytest.raises(DamagedError, match="lacks a segment"):
        store.segments("r")


def test_a_damaged_spec_is_noticed(store: RunStore, tmp_path: Path) -> None:
    digest = store.put_spec(b"{}")
    (tmp_path / f"_specs/{digest}.json").write_bytes(b"[]")
    with pytest.raises(DamagedError, match="SHA-256"):
        store.spec(digest)


def test_records_are_looked_for_in_datasets_then_here(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    places = run_places([dataset.repository], runs=None)
    assert [place.place for place in places] == [
        f"{dataset.url}/_runs",
        str(tmp_path / "datapipe-runs"),
    ]
    assert [place.place for place in run_places([dataset.repository], runs="/x")] == ["/x"]


def test_a_store_pickles(store: RunStore) -> None:
    store.append("r", SEGMENT, number=0)
    assert pickle.loads(pickle.dumps(store)).segments("r") == [SEGMENT]
