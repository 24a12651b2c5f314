"""What a build makes of cut and damaged input files: all that is whole, and it says so."""

from __future__ import annotations

import gzip
import io
import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import datapipe
from datapipe.cli.main import main
from datapipe.dataset import Dataset, open_dataset
from datapipe.errors import FailedError

TEXTS = [f"{number} lorem ipsum dolor" for number in range(5_000)]
LINES = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS).encode()


def parquet(*, damaged: bool = True) -> bytes:
    """Returns ten row groups of 500 rows; in a damaged file two of them can't be read."""
    out = io.BytesIO()
    pq.write_table(pa.table({"text": TEXTS}), out, row_group_size=500, write_page_checksum=True)
    data = bytearray(out.getvalue())
    metadata = pq.ParquetFile(io.BytesIO(bytes(data))).metadata
    for group in (4, 5) if damaged else ():
        column = metadata.row_group(group).column(0)
        start = column.dictionary_page_offset
        data[start + 30 : start + column.total_compressed_size] = b"\xff" * (
            column.total_compressed_size - 30
        )
    return bytes(data)


def incompressible(count: int) -> bytes:
    generator = random.Random(0)
    lines = [json.dumps({"text": f"{generator.getrandbits(400):x}"}) for _ in range(count)]
    return "\n".join(lines).encode()


CUT_GZIP = gzip.compress(incompressible(500), mtime=0)[:-5_000]
CUT_ZSTD = zstandard.compress(incompressible(3_000))[:-5_000]


class Command:
    """The command line in this process, on one folder."""

    def __init__(self, folder: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.tokenizer, self._capsys = folder, tokenizer, capsys
        self.code, self.out, self.err = 0, "", ""

    def write(self, name: str, data: bytes) -> str:
        path = self.folder / "in" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return str(path)

    def __call__(self, *words: str) -> Command:
        with pytest.raises(SystemExit) as exited:
            main([*words, "-q", "-j", "1"])
        self.code = int(exited.value.code or 0)
        self.out, self.err = self._capsys.readouterr()
        return self

    def build(self, *words: str) -> Command:
        return self("build", *words, "-t", str(self.tokenizer), "-o", str(self.folder / "ds"))

    @property
    def dataset(self) -> Dataset:
        return open_dataset(str(self.folder / "ds"))

    @property
    def report(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def command(tmp_path: Path, tokenizer_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, tokenizer_path, capsys)


def test_rows_of_lost_row_groups_are_counted_and_said(command: Command) -> None:
    path = command.write("p.parquet", parquet())
    done = command.build(path, "--max-quarantined", "0.5", "--json")
    assert done.code == 3
    assert done.report["documents"] == {
        "in": 5_000,
        "kept": 4_000,
        "dropped": {},
        "quarantined": {"corrupt_parquet": 1_000},
    }
    (damaged,) = done.report["damaged"]
    assert (damaged["file"], damaged["records"], damaged["is_whole"]) == ("p.parquet", 1_000, False)
    assert not done.report["complete"]
    assert done.err.startswith(
        "datapipe: p.parquet is damaged: 1,000 rows of row groups 4, 5 can't be read (row group 4"
    )
    assert "Version 1 holds all the rest. Replace what is damaged and run again" in done.err
    assert done.err.count("\n") == 1
    assert command.dataset.quarantine().num_rows == 1_000


@pytest.mark.parametrize(
    ("name", "data"),
    [("p.parquet", parquet()), ("a.jsonl.gz", CUT_GZIP), ("a.jsonl.zst", CUT_ZSTD)],
    ids=["parquet", "gzip", "zstd"],
)
def test_damage_ends_alike_in_every_format(command: Command, name: str, data: bytes) -> None:
    path = command.write(name, data)
    done = command.build(path, "--max-quarantined", "0")
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert f"{name} is damaged" in done.err
    assert command.build(path, "--max-quarantined", "0", "--allow-damaged").code == 0


def test_the_guard_counts_records_apart_from_damage(command: Command) -> None:
    texts = [None if number % 100 == 0 else text for number, text in enumerate(TEXTS)]
    out = io.BytesIO()
    pq.write_table(pa.table({"text": texts}), out, row_group_size=500)
    paths = [command.write("p.parquet", parquet()), command.write("q.parquet", out.getvalue())]
    done = command.build(*paths, "--max-quarantined", "0.005")
    assert done.code == 1
    assert "50 of 9,000 records could not be read (text_missing 50)" in done.err
    assert command.build(*paths, "--max-quarantined", "0.006").code == 3


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.jsonl.gz", CUT_GZIP), ("a.jsonl.zst", CUT_ZSTD)],
    ids=["gzip", "zstd"],
)
def test_a_cut_stream_is_partly_done_until_it_is_accepted_or_replaced(
    command: Command, name: str, data: bytes
) -> None:
    path = command.write(name, data)
    done = command.build(path)
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert f"{name} is damaged: nothing of its content from byte " in done.err
    assert command.build(path).code == 3
    accepted = command.build(path, "--allow-damaged")
    assert (accepted.code, command.dataset.version) == (0, 1)
    assert f"datapipe: warning: {name} is damaged: " in accepted.err
    command.write(name, gzip.compress(LINES, mtime=0))
    assert command.build(path).code == 0


def test_append_of_a_damaged_file_is_partly_done_each_time(command: Command) -> None:
    command.build(command.write("a.jsonl", LINES))
    path = command.write("b.jsonl.gz", CUT_GZIP)
    dataset = str(command.folder / "ds")
    assert command("append", dataset, path, "--json").code == 3
    again = command("append", dataset, path, "--json")
    assert (again.code, again.report["created"]) == (3, False)
    assert [item["file"] for item in again.report["damaged"]] == ["b.jsonl.gz"]
    assert command("append", dataset, path, "--allow-damaged").code == 0


def test_damage_that_is_accepted_in_a_recipe_is_done(command: Command) -> None:
    command.write("a.jsonl.gz", CUT_GZIP)
    recipe = command.folder / "r.yaml"
    recipe.write_text(
        "name: x\ninputs: [{source: s, paths: [in]}]\nguards: {allow_damaged: true}\n"
        f"tokenize: {{tokenizer: {command.tokenizer}}}\n"
    )
    assert command("build", str(recipe), "-o", str(command.folder / "ds")).code == 0
    assert "allow_damaged" not in command.dataset.manifest.recipe["guards"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.parquet", parquet(damaged=False)[:-20]),
        ("a.parquet", b"garbage" * 100),
        ("a.jsonl.gz", b"\x1f\x8b\x08\x00" + b"\xff" * 30),
        ("a.md.gz", CUT_GZIP),
    ],
    ids=["cut footer", "garbage", "garbage behind a gzip header", "text"],
)
def test_a_named_file_that_gives_nothing_commits_nothing(
    command: Command, name: str, data: bytes
) -> None:
    good, bad = command.write("good.jsonl", LINES), command.write(name, data)
    done = command.build(good, bad)
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert f"{name} is damaged: nothing of it can be used (" in done.err
    assert not list((command.folder / "ds" / "_log").glob("*"))
    assert command.build(good, bad, "--allow-damaged").code == 0
    assert command.build(str(command.folder / "in")).code == 3


def test_a_build_of_nothing_but_damage_commits_nothing(command: Command) -> None:
    command.write("a.parquet", parquet()[:-20])
    done = command.build(str(command.folder / "in"), "--allow-damaged")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "and no document is left; nothing was committed" in done.err


def test_plain_lines_that_end_inside_a_record_are_done(command: Command) -> None:
    done = command.build(command.write("a.jsonl", LINES + b'{"text": "cut'), "--json")
    assert (done.code, done.report["damaged"], done.report["complete"]) == (0, [], True)
    assert done.report["documents"]["quarantined"]


@pytest.mark.parametrize(
    ("name", "pack"),
    [("a.jsonl.gz", gzip.compress), ("a.jsonl.zst", zstandard.compress)],
    ids=["gzip", "zstd"],
)
def test_a_member_that_is_no_member_any_more_is_damage(
    command: Command, name: str, pack: Callable[[bytes], bytes]
) -> None:
    lost = bytearray(pack(LINES))
    lost[0] ^= 1
    done = command.build(command.write(name, pack(LINES) + bytes(lost)), "--json")
    assert (done.code, done.report["complete"]) == (3, False)
    assert done.report["documents"]["kept"] == len(TEXTS)
    assert f"nothing of its content from byte {len(LINES):,} on can be used" in done.err


def test_the_function_warns_of_damage(tmp_path: Path, tokenizer_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(CUT_GZIP)
    build: Callable[..., Dataset] = datapipe.build
    with pytest.warns(UserWarning, match=r"a\.jsonl\.gz is damaged: .* Version 1 holds all"):
        dataset = build(path, out=tmp_path / "ds", tokenizer=tokenizer_path, workers=1)
    assert dataset.manifest.totals.kept > 100
    build(path, out=tmp_path / "ds", tokenizer=tokenizer_path, workers=1, allow_damaged=True)


def test_the_function_raises_where_nothing_is_left(tmp_path: Path, tokenizer_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(parquet()[:-20])
    with pytest.raises(FailedError, match="nothing of it can be used"):
        datapipe.build(tmp_path / "a.parquet", out=tmp_path / "ds", tokenizer=tokenizer_path)
    (tmp_path / "a.parquet").write_bytes(parquet())
    with pytest.warns(UserWarning, match="1,000 rows of row groups 4, 5"):
        datapipe.build(tmp_path, out=tmp_path.parent / "ds", tokenizer=tokenizer_path, workers=1)


def flipped(pack: Callable[[bytes], bytes], text: bytes) -> bytes:
    """Returns packed bytes with one bit flipped that shows only in the checksum at the end."""
    packed = bytearray(pack(text))
    for place in range(len(packed) // 2, len(packed) - 8):
        packed[place] ^= 1
        if _same_length(bytes(packed), len(text)):
            return bytes(packed)
        packed[place] ^= 1
    raise AssertionError("no such bit")


def _same_length(packed: bytes, length: int) -> bool:
    try:
        if packed[:2] == b"\x1f\x8b":
            return len(zlib.decompressobj(-15).decompress(packed[10:])) == length
        zstandard.decompress(packed)
    except zlib.error:
        return False
    except zstandard.ZstdError as error:
        return "checksum" in str(error)
    return False


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.jsonl.gz", gzip.compress),
        ("a.jsonl.zst", zstandard.ZstdCompressor(write_checksum=True).compress),
    ],
    ids=["gzip", "zstd"],
)
def test_no_text_of_a_member_with_a_wrong_checksum_is_used(
    command: Command, name: str, pack: Callable[[bytes], bytes]
) -> None:
    right = [f"right {number}" for number in range(50)]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in right).encode()
    damaged = pack(lines) + flipped(pack, incompressible(3_000) + b"\n")
    path = command.write(name, damaged)
    done = command.build(str(Path(path).parent), "--json")
    assert done.code == 3
    assert done.report["documents"]["kept"] == 50
    assert f"nothing of its content from byte {len(lines):,} on can be used" in done.err
    command.write(name, pack(lines) + pack(incompressible(3_000) + b"\n"))
    done = command("append", str(command.folder / "ds"), path, "--json")
    assert (done.code, done.report["documents"]["kept"]) == (0, 3_000)
    kept = command.dataset.manifest.totals.kept
    assert kept == 3_050


def test_a_named_file_of_one_damaged_member_gives_nothing(command: Command) -> None:
    path = command.write("a.jsonl.gz", flipped(gzip.compress, incompressible(3_000)))
    done = command.build(path)
    assert done.code == 1
    assert "nothing of it can be used (the gzip data is damaged" in done.err
