from __future__ import annotations

import tracemalloc

import pytest
import zstandard

from datapipe.dataset.parquet import conform
from datapipe.dataset.quarantine import decode_quarantine, encode_quarantine
from datapipe.dataset.tables import QUARANTINE
from datapipe.errors import DamagedError, DatasetError
from datapipe.testing import small_quarantine

ROWS = small_quarantine([("web", "invalid_json", b"{\xff\n"), ("b\u00e4", "too_long", b"")])


def encoded() -> bytes:
    return encode_quarantine(conform(ROWS, QUARANTINE))


def test_lines_are_canonical_json() -> None:
    lines = zstandard.ZstdDecompressor().decompress(encoded()).split(b"\n")
    assert lines == [
        b'{"detail":"not good: invalid_json","error":"invalid_json","raw":"e/8K","source":"web",'
        b'"source_file":"bad.jsonl","source_length":3,"source_offset":0}',
        b'{"detail":"not good: too_long","error":"too_long","raw":"","source":"b\xc3\xa4",'
        b'"source_file":"bad.jsonl","source_length":0,"source_offset":1}',
        b"",
    ]


def test_rows_come_back() -> None:
    table = decode_quarantine(encoded(), path="q")
    assert table.schema.equals(QUARANTINE)
    assert table.to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no zstd",
        encoded()[:-5],
        zstandard.compress(b"[1]\n"),
        zstandard.compress(b'{"raw":"AA=="}\n'),
        zstandard.compress(b'{"raw":"?"}\n'),
        encoded() + b"more",
        zstandard.compress(b'{"raw":""}'),
    ],
    ids=["empty", "other", "cut", "array", "fields", "base64", "longer", "no line end"],
)
def test_damage_is_said(data: bytes) -> None:
    with pytest.raises(DamagedError, match="private/q can't be read as quarantined records"):
        decode_quarantine(data, path="private/q")


def test_more_rows_than_the_manifest_says_are_not_unpacked() -> None:
    assert decode_quarantine(encoded(), path="q", rows=2).num_rows == 2
    with pytest.raises(DamagedError, match="unpacks to more than its 1 rows"):
        decode_quarantine(encoded(), path="q", rows=1)


@pytest.mark.parametrize(
    "bomb",
    [b"\n" * (64 << 20), b"0" * (64 << 20)],
    ids=["lines", "one line"],
)
def test_a_bomb_is_refused_before_it_is_unpacked(bomb: bytes) -> None:
    data = zstandard.compress(bomb)
    del bomb
    tracemalloc.start()
    with pytest.raises(DamagedError, match="can't be read as quarantined records"):
        decode_quarantine(data, path="q", rows=3)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 200 << 20


def test_no_more_is_unpacked_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datapipe.dataset.quarantine.MOST_UNPACKED_BYTES", 100)
    with pytest.raises(DamagedError, match="unpacks to more than 100 bytes"):
        decode_quarantine(zstandard.compress(b"{}" * 100), path="q")


def test_no_more_is_written_than_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datapipe.dataset.quarantine.MOST_UNPACKED_BYTES", 100)
    with pytest.raises(DatasetError, match=r"more than 100 bytes.*nothing was committed"):
        encoded()
