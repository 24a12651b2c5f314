from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from datapipe.dataset import Dataset, canonical_json, sha256_hex, verify_dataset
from datapipe.dataset.parts import Part, SourceParts
from datapipe.dataset.run_records import (
    DatasetUse,
    RunSegment,
    SegmentEnd,
    SegmentProgress,
    encode_record,
)
from datapipe.dataset.runs import RunStore, check_run_name, run_places
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


PART = {"dataset": 0, "source": "web", "num_shards": 3}


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore.at(str(tmp_path))


def without_seal(data: bytes) -> dict[str, Any]:
    """The fields of a record, whose seal is the SHA-256 of the others' canonical JSON."""
    fields: dict[str, Any] = json.loads(data)
    seal = fields.pop("record_sha256")
    assert seal == sha256_hex(canonical_json(fields))
    return fields


def seal(fields: dict[str, Any]) -> bytes:
    return canonical_json({**fields, "record_sha256": sha256_hex(canonical_json(fields))})


def test_a_segment_is_this_json(store: RunStore, tmp_path: Path) -> None:
    store.append("r", SEGMENT, number=0)
    assert without_seal((tmp_path / "r/segments/00000000.json").read_bytes()) == {
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
    store.append("r", SEGMENT, number=0)
    assert store.read("r") == [(SEGMENT, None, None)]
    store.finish("r", 0, SegmentEnd(next_batch=7, reason="closed"))
    store.finish("r", 0, SegmentEnd(next_batch=9, reason="failed"))
    path = tmp_path / "r/ends/00000000.json"
    fields = without_seal(path.read_bytes())
    assert fields == {"format": 1, "next_batch": 7, "reason": "closed"}
    (files,) = store.read("r")
    assert files.end == SegmentEnd(next_batch=7, reason="closed")
    assert (files.next_batch, files.saved_sample) == (7, None)


def test_progress_is_this_json_and_the_last_stands(store: RunStore, tmp_path: Path) -> None:
    store.append("r", SEGMENT, number=0)
    store.note("r", 0, SegmentProgress(next_sample=8))
    store.note("r", 0, SegmentProgress(next_sample=24))
    fields = without_seal((tmp_path / "r/progress/00000000.json").read_bytes())
    assert fields == {"format": 1, "next_sample": 24}
    (files,) = store.read("r")
    assert files.progress == SegmentProgress(next_sample=24)
    assert (files.next_batch, files.saved_sample) == (None, 24)


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
        pytest.param({"format": 0}, DamagedError, "format", id="no format"),
        pytest.param({"format": True}, DamagedError, "format", id="format of another type"),
        pytest.param({"spec": "x"}, DamagedError, "spec", id="no digest"),
        pytest.param({"first_batch": -1}, DamagedError, "first_batch", id="below 0"),
        pytest.param({"first_step": "1"}, DamagedError, "first_step", id="text"),
        pytest.param({"end_sample": 1.5}, DamagedError, "end_sample", id="fraction"),
        pytest.param({"dp_world_size": 3}, DamagedError, "3 ranks can't share", id="ranks"),
        pytest.param({"last": "keep"}, DamagedError, "last", id="unknown word"),
        pytest.param({"datasets": []}, DamagedError, "no dataset", id="no dataset"),
        pytest.param({"sources": 5}, DamagedError, "sources", id="no list"),
        *(
            pytest.param(
                {"sources": [{"name": "web", "parts": [{**PART, **change}]}]},
                DamagedError,
                match,
                id=f"part {change}",
            )
            for change, match in (
                ({"dataset": 7}, "dataset 7, of 1 datasets"),
                ({"dataset": -1}, "dataset -1, of 1 datasets"),
                ({"dataset": "0"}, "dataset"),
                ({"num_shards": -3}, "-3 shards"),
                ({"source": None}, "source"),
            )
        ),
    ],
)
def test_a_sealed_record_that_cannot_be_is_named(
    store: RunStore, tmp_path: Path, change: dict[str, Any], error: type[Exception], match: str
) -> None:
    store.append("r", SEGMENT, number=0)
    path = tmp_path / "r/segments/00000000.json"
    path.write_bytes(seal({**msgspec.to_builtins(SEGMENT), **change}))
    with pytest.raises(error, match=f"r/segments/00000000.json in .*{match}"):
        store.segments("r")


def test_any_flipped_bit_of_a_record_is_noticed(store: RunStore, tmp_path: Path) -> None:
    store.append("r", SEGMENT, number=0)
    path = tmp_path / "r/segments/00000000.json"
    sound = path.read_bytes()
    for at in range(len(sound)):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        with pytest.raises(DatasetError, match=r"r/segments/00000000\.json"):
            store.segments("r")


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b"{}", b'{"format":"1"}', b"[" * 10_000, b"\xff", seal({"format": 1})],
)
@pytest.mark.parametrize("folder", ["segments", "progress", "ends"])
def test_a_record_that_is_no_record_is_damaged(
    store: RunStore, tmp_path: Path, folder: str, data: bytes
) -> None:
    store.append("r", SEGMENT, number=0)
    path = tmp_path / f"r/{folder}/00000000.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="isn't what a run record has there"):
        store.read("r")


@pytest.mark.parametrize("folder", ["ends", "progress"])
def test_a_run_whose_segments_are_all_lost_is_noticed(
    store: RunStore, tmp_path: Path, folder: str
) -> None:
    store.append("r", SEGMENT, number=0)
    store.finish("r", 0, SegmentEnd(next_batch=7, reason="closed"))
    store.note("r", 0, SegmentProgress(next_sample=8))
    (tmp_path / "r/segments/00000000.json").unlink()
    for other in {"ends", "progress"} - {folder}:
        (tmp_path / f"r/{other}/00000000.json").unlink()
    with pytest.raises(DamagedError, match=r"run r in .* lacks a segment: it has 0"):
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


# -- verification


@pytest.fixture
def recorded(dataset: Dataset) -> Dataset:
    """A dataset with one run of one segment, its progress and its end."""
    store = RunStore.of(dataset.repository)
    spec = store.put_spec(b"{}")
    store.append("r", msgspec.structs.replace(SEGMENT, spec=spec), number=0)
    store.note("r", 0, SegmentProgress(next_sample=8))
    store.finish("r", 0, SegmentEnd(next_batch=7, reason="closed"))
    return dataset


def test_sound_records_are_counted_and_no_problem(recorded: Dataset) -> None:
    report = verify_dataset(recorded)
    assert report.problems == []
    for path in (Path(recorded.url) / "_runs").rglob("*.json"):
        path.unlink()
    assert verify_dataset(recorded).objects == report.objects - 4


@pytest.mark.parametrize("folder", ["r/segments", "r/progress", "r/ends", "_specs"])
def test_verification_names_a_damaged_record(recorded: Dataset, folder: str) -> None:
    (path,) = (Path(recorded.url) / "_runs" / folder).iterdir()
    path.write_bytes(path.read_bytes().replace(b"}", b" }"))
    (first, *_) = verify_dataset(recorded).problems
    assert first.startswith(f"_runs/{folder}/{path.name}")


@pytest.mark.parametrize(
    ("folder", "match"),
    [("r/segments", "run r in .* lacks a segment"), ("_specs", "_runs/_specs/.*: it is missing")],
)
def test_verification_names_what_is_missing(recorded: Dataset, folder: str, match: str) -> None:
    (path,) = (Path(recorded.url) / "_runs" / folder).iterdir()
    path.unlink()
    (problem,) = verify_dataset(recorded).problems
    assert re.search(match, problem)


def test_a_record_is_small() -> None:
    assert len(encode_record(SEGMENT)) < 1000
