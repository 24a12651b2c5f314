"""What a build takes for input where that isn't plain: its own folders, links, damage."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from datapipe.cli.main import main
from datapipe.dataset import open_dataset
from datapipe.engine import BuildOptions, BuildReport, Request, build_dataset
from datapipe.errors import InputError, UsageError


def build(inputs: list[Path], tokenizer: Path, out: Path, work: Path | None = None) -> BuildReport:
    request = Request(inputs=tuple(map(str, inputs)), tokenizer=str(tokenizer))
    options = BuildOptions(workers=1, work=None if work is None else str(work))
    return build_dataset(request, out=str(out), options=options)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    (tmp_path / "raw").mkdir()
    lines = [json.dumps({"text": f"text {number}"}) for number in range(20)]
    (tmp_path / "raw" / "a.jsonl").write_text("\n".join(lines))
    return tmp_path / "raw"


def test_output_and_work_inside_the_input_are_no_input(raw: Path, tokenizer_path: Path) -> None:
    first = build([raw], tokenizer_path, raw / "dataset", raw / "work")
    (raw / "work" / "left").write_bytes(b"left")
    second = build([raw], tokenizer_path, raw / "dataset", raw / "work")
    assert (second.created, second.ledgers[0].records) == (False, 20)
    assert first.notes == ()
    assert {note.split(" was ")[0] for note in second.notes} == {f"{raw}/dataset", f"{raw}/work"}


def test_a_killed_build_into_its_input_reads_the_input_alone(
    raw: Path, tokenizer_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datapipe.engine.building.commit_version", _killed)
    with pytest.raises(KeyboardInterrupt):
        build([raw], tokenizer_path, raw / "dataset")
    assert list((raw / "dataset" / "_work").rglob("*.arrow"))
    monkeypatch.undo()
    assert build([raw], tokenizer_path, raw / "dataset").ledgers[0].records == 20


def _killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("path", ["dataset", "dataset/tokens"])
def test_the_folder_that_is_written_to_is_no_input(
    raw: Path, tokenizer_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    out = raw / "dataset"
    build([raw / "a.jsonl"], tokenizer_path, out)
    monkeypatch.chdir(raw)
    with pytest.raises(InputError, match="is, or lies in, a folder that this command writes to"):
        build([Path(path)], tokenizer_path, out)


def test_a_dry_run_leaves_out_what_a_build_would(
    raw: Path,
    tokenizer_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    build([raw / "a.jsonl"], tokenizer_path, raw / "dataset")
    monkeypatch.chdir(raw)
    with pytest.raises(SystemExit):
        main(["build", ".", "-t", str(tokenizer_path), "--dry-run", "--json"])
    shown = capsys.readouterr()
    assert json.loads(shown.out)["sources"][0]["files"] == 1
    assert (
        shown.err
        == f"datapipe: {raw}/dataset was left out of the inputs: the program writes to it\n"
    )


def test_a_link_to_a_file_or_folder_counts_nothing_twice(raw: Path, tokenizer_path: Path) -> None:
    (raw / "sub").mkdir()
    (raw / "a.jsonl").rename(raw / "sub" / "a.jsonl")
    (raw / "link").symlink_to("sub")
    report = build([raw], tokenizer_path, raw.parent / "ds")
    assert report.ledgers[0].records == 20
    assert len(report.notes) == 1
    assert open_dataset(str(raw.parent / "ds")).inputs()["file"].to_pylist() == ["sub/a.jsonl"]


@pytest.mark.parametrize("name", ["caf\udce9.jsonl", "caf\udce9"])
def test_a_given_name_that_isnt_utf8_is_refused(raw: Path, tokenizer_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"isn't UTF-8 text \('\S*caf\\udce9"):
        build([raw / name], tokenizer_path, raw.parent / "ds")


def warc(kind: str, number: int, status: int, body: bytes) -> bytes:
    block = f"HTTP/1.1 {status} X\r\nContent-Type: text/html\r\n\r\n".encode() + body
    header = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:{number}>\r\n"
        f"WARC-Target-URI: http://a.example/{number}\r\n"
        f"Content-Type: application/http\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(header.encode() + block + b"\r\n\r\n", mtime=0)


def test_every_record_of_a_crawl_is_kept_dropped_or_quarantined(
    tmp_path: Path, tokenizer_path: Path
) -> None:
    records = [warc("response", n, 200 if n % 2 else 404, b"<p>page %d" % n) for n in range(40)]
    damaged = bytearray(warc("response", 40, 200, b"<p>damaged"))
    damaged[-20] ^= 4
    others = [warc("request", 41, 200, b"")]
    (tmp_path / "a.warc.gz").write_bytes(b"".join([*others, *records, damaged, *others]))
    report = build([tmp_path / "a.warc.gz"], tokenizer_path, tmp_path / "ds")
    (ledger,) = report.ledgers
    (damaged_file,) = report.damaged
    assert "1 stretch of it can't be read (the gzip member at byte" in str(damaged_file)
    assert (ledger.records, ledger.kept, ledger.blank_lines) == (41, 20, 2)
    assert ledger.dropped == {"read.http_status": 20}
    assert ledger.quarantined == {"corrupt_gzip": 1}
    dropped = open_dataset(str(tmp_path / "ds")).dropped().to_pylist()
    assert {row["record_id"] for row in dropped} == {f"<urn:{n}>" for n in range(0, 40, 2)}
