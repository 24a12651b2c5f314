from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from datapipe.dataset.hashing import document_hash
from datapipe.read import list_inputs
from datapipe.testing import read_all

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not SHARED.is_dir(), reason="no shared data beside the checkout"),
]


def plain_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file by the plainest means."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    if path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
    yield from (line for line in data.split(b"\n") if line.strip())


@pytest.mark.parametrize(
    "pattern",
    [
        "jsonl/dolma/tests/data/provided/documents/*",
        "jsonl/dolma/tests/data/expected/*",
        "jsonl/dolma/tests/data/formats/*",
        "jsonl/dolma/tests/data/multiple_files/*",
        "jsonl/wimbd/test_fixtures/*",
        "text/zh_poetry.jsonl.zst",
    ],
)
def test_real_files_are_read_like_by_plain_python(pattern: str) -> None:
    files = list_inputs([SHARED / pattern])
    reading = read_all(files, target_bytes=100_000)
    lines = [json.loads(line) for file in files for line in plain_lines(Path(file.path))]
    records = [record for record in lines if "text" in record]
    assert reading.texts == [record["text"] for record in records]
    assert reading.errors == ["text_missing"] * (len(lines) - len(records))
    ids = [record.get("id") for record in records]
    assert [document["record_id"] for document in reading.documents] == ids
    hashes = [document_hash(record["text"].encode()) for record in records]
    assert [document["content_hash"] for document in reading.documents] == hashes


@pytest.mark.parametrize("name", ["cc_en_head-0091.jsonl", "cc_en_head-0174.jsonl"])
def test_places_lead_back_to_the_record(name: str) -> None:
    path = SHARED / "jsonl/dolma/tests/data/multiple_files" / name
    data = path.read_bytes()
    for packed in (path, path.with_name(f"{name}.gz")):
        for document in read_all(list_inputs([packed])).documents:
            start, length = document["source_offset"], document["source_length"]
            assert json.loads(data[start : start + length])["text"] == document["text"]
