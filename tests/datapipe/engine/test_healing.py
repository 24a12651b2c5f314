"""The same build run again makes a damaged version whole."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datapipe.dataset import Repository, index_dataset, log_entries, open_dataset, verify_dataset
from datapipe.dataset.parquet import GROUP_ROWS
from datapipe.engine import BuildOptions, BuildReport, Request, append_dataset, build_dataset
from datapipe.errors import DamagedError

KINDS = {
    "tokens": "tokens/*/*.bin",
    "docmap": "docmap/*/*.parquet",
    "dropped": "dropped/*.parquet",
    "quarantine": "private/quarantine/*.zst",
    "signatures": "signatures/*.parquet",
    "shards": "_manifests/shards/*.parquet",
    "details": "_manifests/details/*.parquet",
    "inputs": "_manifests/inputs/*.parquet",
    "manifest": "_manifests/*.json",
    "tokenizer": "tokenizer/*/*",
}


def delete(path: Path) -> None:
    path.unlink()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


HARMS: dict[str, Callable[[Path], None]] = {
    "deleted": delete,
    "flipped": flip,
    "cut": cut,
    "pipe": replace_by_pipe,
}


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"text": f"fox {number % 20}"}) for number in range(25)]
    path.write_text("\n".join([*lines, "not JSON", ""]))
    return path


def build(inputs: Path, tokenizer: Path, out: Path) -> BuildReport:
    request = Request(inputs=(str(inputs),), tokenizer=str(tokenizer))
    return build_dataset(request, out=str(out), options=BuildOptions(workers=1))


def objects(out: Path, kind: str) -> list[Path]:
    found = sorted(out.glob(KINDS[kind]))
    assert found
    return found


@pytest.mark.parametrize("harm", ["deleted", "flipped"])
def test_an_index_is_written_again(
    inputs: Path, tmp_path: Path, tokenizer_path: Path, harm: str
) -> None:
    out = tmp_path / "ds"
    build(inputs, tokenizer_path, out)
    index_dataset(Repository(str(out)), time_seconds=1.0)
    for path in sorted(out.glob("index/*/*.parquet")):
        HARMS[harm](path)
    report = build(inputs, tokenizer_path, out)
    assert (report.created, report.version) == (False, 2)
    assert verify_dataset(open_dataset(str(out))).problems == []


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("harm", ["deleted", "flipped"])
def test_each_kind_of_object_is_written_again(
    tmp_path: Path, tokenizer_path: Path, inputs: Path, kind: str, harm: str
) -> None:
    out = tmp_path / "ds"
    first = build(inputs, tokenizer_path, out)
    for path in objects(out, kind):
        HARMS[harm](path)
    again = build(inputs, tokenizer_path, out)
    assert (again.version, again.created, again.manifest) == (1, False, first.manifest)
    assert verify_dataset(open_dataset(str(out))).problems == []
    assert len(log_entries(Repository(str(out)))) == 1


@given(
    harms=st.dictionaries(
        st.sampled_from(list(KINDS)), st.sampled_from(list(HARMS)), min_size=2, max_size=10
    )
)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_damage_at_once_is_written_again(
    tmp_path_factory: pytest.TempPathFactory,
    tokenizer_path: Path,
    inputs: Path,
    harms: dict[str, str],
) -> None:
    out = tmp_path_factory.mktemp("damaged") / "ds"
    build(inputs, tokenizer_path, out)
    for kind, harm in harms.items():
        for path in objects(out, kind):
            HARMS[harm](path)
    assert build(inputs, tokenizer_path, out).version == 1
    assert verify_dataset(open_dataset(str(out))).problems == []


def test_a_version_behind_another_gets_its_manifest_back(
    tmp_path: Path, tokenizer_path: Path, inputs: Path
) -> None:
    out, other = tmp_path / "ds", tmp_path / "b.jsonl"
    other.write_text('{"text": "other"}\n')
    build(inputs, tokenizer_path, out)
    second = build(other, tokenizer_path, out)
    (out / f"_manifests/{second.manifest}.json").unlink()
    assert build(other, tokenizer_path, out).manifest == second.manifest
    assert verify_dataset(open_dataset(str(out))).problems == []


def test_another_build_does_not_take_the_place_of_a_lost_manifest(
    tmp_path: Path, tokenizer_path: Path, inputs: Path
) -> None:
    out, other = tmp_path / "ds", tmp_path / "b.jsonl"
    first = build(inputs, tokenizer_path, out)
    (out / f"_manifests/{first.manifest}.json").unlink()
    other.write_text('{"text": "other"}\n')
    with pytest.raises(DamagedError, match=r"_manifests/.* is damaged or missing.*from a copy"):
        build(other, tokenizer_path, out)
    assert len(log_entries(Repository(str(out)))) == 1
    assert build(inputs, tokenizer_path, out).manifest == first.manifest


def test_what_this_build_cannot_make_is_named(
    tmp_path: Path, tokenizer_path: Path, inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "ds"
    build(inputs, tokenizer_path, out)
    for path in objects(out, "dropped"):
        path.unlink()
    # As with another version of the library that writes Parquet.
    monkeypatch.setitem(GROUP_ROWS, "dropped", 3)
    with pytest.raises(
        DamagedError, match=r"equals version 1 .* 1 other objects .* dropped/.* is missing"
    ):
        build(inputs, tokenizer_path, out)


def test_an_append_is_not_made_on_a_lost_manifest(
    tmp_path: Path, tokenizer_path: Path, inputs: Path
) -> None:
    out = tmp_path / "ds"
    first = build(inputs, tokenizer_path, out)
    (out / f"_manifests/{first.manifest}.json").unlink()
    request = Request(inputs=(str(inputs),))
    with pytest.raises(DamagedError, match=f"{first.manifest}.json is missing"):
        append_dataset(str(out), request, options=BuildOptions(workers=1))
