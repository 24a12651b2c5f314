from __future__ import annotations

import pytest
import zstandard

from datapipe.dataset.parquet import conform
from datapipe.dataset.quarantine import decode_quarantine, encode_quarantine
from datapipe.dataset.tables import QUARANTINE
from datapipe.errors import DamagedError
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
    ],
    ids=["empty", "other", "cut", "array", "fields", "base64"],
)
def test_damage_is_said(data: bytes) -> None:
    with pytest.raises(DamagedError, match="private/q can't be read as quarantined records"):
        decode_quarantine(data, path="private/q")
