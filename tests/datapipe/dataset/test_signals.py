from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest

from datapipe.dataset import Dataset, Repository, verify_dataset
from datapipe.dataset.parquet import conform, encode_table
from datapipe.dataset.signals import decode_signals, join_signals, with_signals
from datapipe.dataset.tables import SIGNALS
from datapipe.errors import DamagedError
from datapipe.testing import commit_small, small_draft


def measured(*ids: int, **signals: pa.Array) -> pa.Table:
    base = {
        "doc_id": pa.array([bytes([i]) * 16 for i in ids], pa.binary(16)),
        "source": pa.array(["web"] * len(ids)),
    }
    return pa.table(base | {name.replace("__", "."): column for name, column in signals.items()})


def with_measured(repo: Repository, table: pa.Table, **more: object) -> Dataset:
    draft = small_draft(repo, {"web": [[3]]}, **more)  # type: ignore[arg-type]
    commit_small(repo, dataclasses.replace(draft, signals=table))
    return repo.open(None)


def test_signals_come_back_ordered_by_document(tmp_path: Path) -> None:
    repo = Repository(str(tmp_path / "ds"))
    repo.create()
    table = measured(
        2, 1, q__words=pa.array([5, None], pa.int64()), l__label=pa.array(["en", "de"])
    )
    made = with_measured(repo, table)
    assert made.signals().to_pylist() == [
        {"doc_id": b"\x01" * 16, "source": "web", "l.label": "de", "q.words": None},
        {"doc_id": b"\x02" * 16, "source": "web", "l.label": "en", "q.words": 5},
    ]
    assert not verify_dataset(made).problems


def test_a_version_without_any_has_no_rows(dataset: Dataset) -> None:
    assert "signals" not in dataset.manifest.tables
    assert dataset.signals().schema.equals(SIGNALS)


def test_an_append_may_measure_other_things(tmp_path: Path) -> None:
    repo = Repository(str(tmp_path / "ds"))
    repo.create()
    first = with_measured(repo, measured(1, q__words=pa.array([5], pa.int64())))
    both = with_measured(
        repo,
        measured(2, q__words=pa.array([7.5]), q__lines=pa.array([True])),
        parent=first,
        operation="append",
    )
    rows = both.signals().select(["q.words", "q.lines"]).to_pylist()
    assert rows == [{"q.words": 5, "q.lines": None}, {"q.words": 7.5, "q.lines": True}]
    assert not verify_dataset(both).problems


def test_signals_are_in_no_digest_but_the_manifests(tmp_path: Path) -> None:
    digests = []
    for name, value in (("a", 1), ("b", 2)):
        repo = Repository(str(tmp_path / name))
        repo.create()
        made = with_measured(repo, measured(1, q__words=pa.array([value], pa.int64())))
        digests.append((made.manifest.digests, made.manifest_sha256))
    assert digests[0][0] == digests[1][0]
    assert digests[0][1] != digests[1][1]


@pytest.mark.parametrize("change", ["flip", "cut", "delete"])
def test_damage_is_named(tmp_path: Path, change: str) -> None:
    repo = Repository(str(tmp_path / "ds"))
    repo.create()
    made = with_measured(repo, measured(1, q__words=pa.array([5], pa.int64())))
    (path,) = (tmp_path / "ds/signals").iterdir()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    if change == "delete":
        path.unlink()
    else:
        path.write_bytes(data if change == "flip" else data[:-9])
    assert any(path.name in problem for problem in verify_dataset(made).problems)


@pytest.mark.parametrize(
    "column",
    [
        pa.field("words", pa.int64()),
        pa.field("q.words", pa.int32()),
        pa.field("q.words", pa.list_(pa.int64())),
        pa.field('q."; drop', pa.int64()),
        pa.field(f"q.{'x' * 101}", pa.int64()),
    ],
    ids=["no stage", "int32", "list", "quote", "long"],
)
def test_other_columns_are_no_signals(column: pa.Field) -> None:
    with pytest.raises(ValueError, match="isn't a signal"):
        with_signals(SIGNALS, pa.schema([*SIGNALS, column]))


def test_a_file_with_other_columns_is_damaged() -> None:
    schema = pa.schema([*SIGNALS, pa.field("words", pa.int64())])
    data = encode_table(conform(measured(1, words=pa.array([1], pa.int64())), schema))
    with pytest.raises(DamagedError, match="x isn't a table of signals: the column 'words'"):
        decode_signals(bytes(data), path="x")


def test_two_types_of_one_name_are_damage() -> None:
    tables = [
        measured(1, q__words=pa.array([5], pa.int64())),
        measured(2, q__words=pa.array(["five"])),
    ]
    with pytest.raises(DamagedError, match="don't fit together"):
        join_signals(tables)
