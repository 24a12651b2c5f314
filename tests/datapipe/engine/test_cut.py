"""Cutting large compressed files keeps all workers busy and changes nothing of the result."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from datapipe.dataset import Dataset, open_dataset
from datapipe.engine import BuildOptions, Request, build_dataset
from datapipe.engine.cut import CutTask, cut_file, files_to_cut, ranges_of, stretch_pieces
from datapipe.engine.sources import SourceInputs
from datapipe.engine.units import plan_units
from datapipe.engine.work import Work
from datapipe.read import Format, InputFile, detect_format, list_inputs
from datapipe.recipe import Fields

LINES = [json.dumps({"text": f"text {n} " + "word " * (n % 50), "id": n}) for n in range(3000)]
DATA = gzip.compress("\n".join([*LINES, "bad", *LINES[:100]]).encode(), mtime=0)


def built(folder: Path, data: bytes, tokenizer: Path, workers: int = 1) -> Dataset:
    folder.mkdir(exist_ok=True)
    (folder / "a.jsonl.gz").write_bytes(data)
    request = Request(
        inputs=(str(folder / "a.jsonl.gz"),), tokenizer=str(tokenizer), allow_damaged=True
    )
    build_dataset(request, out=str(folder / "ds"), options=BuildOptions(workers=workers))
    return open_dataset(str(folder / "ds"))


@pytest.fixture
def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datapipe.engine.cut.CUT_BYTES", 1)
    monkeypatch.setattr("datapipe.engine.cut.STRETCH_BYTES", 2_000)


@pytest.mark.parametrize("data", [DATA, DATA[:-5000], DATA + DATA[:-8] + b"\1" * 8])
def test_a_dataset_is_the_same_whether_its_input_was_cut(
    tmp_path: Path, tokenizer_path: Path, request: pytest.FixtureRequest, data: bytes
) -> None:
    whole = built(tmp_path / "whole", data, tokenizer_path)
    request.getfixturevalue("cut_small")
    cut = built(tmp_path / "cut", data, tokenizer_path)
    assert cut.manifest.digests == whole.manifest.digests
    assert not list((tmp_path / "cut" / "ds").rglob("stream.bin"))


def test_a_cut_input_becomes_many_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datapipe.engine.cut.STRETCH_BYTES", 2 << 20)
    monkeypatch.setattr("datapipe.engine.units.UNIT_BYTES", 1)
    data = gzip.compress(b"\n".join([b'{"text":"a"}'] * 700_000), 1, mtime=0)
    (tmp_path / "a.jsonl.gz").write_bytes(data)
    (listed,) = list_inputs([tmp_path / "a.jsonl.gz"])
    task = CutTask(Work(str(tmp_path / "work")), "key", listed, detect_format(listed))
    record = cut_file(task)
    ranges = ranges_of(task, record)
    assert ranges is not None
    assert [part.start for part in ranges[1:]] == [part.end for part in ranges[:-1]]
    assert ranges[-1].end == 700_000 * 13 - 1
    inputs = SourceInputs("web", Fields(), None, ((listed, task.format),))
    assert len(list(plan_units(inputs, {listed.path: ranges}))) == len(ranges) > 1
    assert len(stretch_pieces(task, record)) == len(ranges)


@pytest.mark.usefixtures("cut_small")
def test_a_build_goes_on_from_a_cut(
    tmp_path: Path, tokenizer_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("datapipe.engine.building.commit_version", killed)
        with pytest.raises(KeyboardInterrupt):
            built(tmp_path / "cut", DATA, tokenizer_path)
    work = tmp_path / "cut" / "ds" / "_work"
    for path in (work / "scan").glob("*/record.json"):
        path.unlink()
    assert list(work.rglob("stream.bin"))
    assert built(tmp_path / "cut", DATA, tokenizer_path).manifest.totals.documents_in == 3101


def file(path: str, size_bytes: int, compression: str = "gzip") -> tuple[InputFile, Format]:
    found = Format(kind="jsonl", compression=compression)  # type: ignore[arg-type]
    return InputFile(path=path, relative=path, size_bytes=size_bytes), found


def test_files_are_cut_that_would_keep_one_worker_busy() -> None:
    large, small = file("large", 1 << 30), file("small", 1 << 20)
    medium = file("medium", 40 << 20)
    plain = file("plain", 1 << 30, "none")

    def chosen(*files: tuple[InputFile, Format]) -> list[str]:
        inputs = SourceInputs(source="web", fields=Fields(), licence=None, files=files)
        return [found.path for found, _ in files_to_cut([inputs, inputs])]

    assert chosen(large, small, plain) == ["large"]
    assert chosen(medium, small) == ["medium"]
    assert chosen(medium, *[file(f"{n}", 1 << 30) for n in range(9)])[:1] == ["0"]
    assert chosen(*[file(f"{n}", 64 << 20) for n in range(100)]) == []
