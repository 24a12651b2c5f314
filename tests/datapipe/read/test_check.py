from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datapipe.errors import InputError
from datapipe.read import check_fields, list_inputs
from datapipe.recipe import Fields


def lines(record: object, count: int = 1) -> bytes:
    return (json.dumps(record).encode() + b"\n") * count


@pytest.mark.parametrize(
    ("data", "field", "message"),
    [
        (
            lines({"id": "a" * 9, "content": "some text"}, 2000),
            "text",
            r"^no `text` in the first 1,000 records of crawl; did you mean `content`\? Say "
            r"--text-field content, or in a recipe `fields: {text: content}`\. "
            r"Keys there: id, content\.$",
        ),
        (lines({"texts": "b", "url": "http://a/long"}, 3), "text", "the first 3 records .*`texts`"),
        (lines({"doc": {"body": "long text"}, "id": "1"}), "text", "only record .*`doc.body`"),
        (lines({"a.b": "long text", "id": "1"}), "text", r"`a\\.b`"),
        (lines({"n": 1}), "text", r"^no `text` in the only record of crawl\. Keys there: n\.$"),
        (lines({}), "text", r"Keys there: none\."),
        (lines({"text": {"x": "words"}}), "text.body", r"no `text.body` .* mean `text.x`"),
        (gzip.compress(lines({"content": "x"}, 5), mtime=0), "text", "the first 5 records"),
        (lines({f"k{i}": 1 for i in range(30)}), "text", r"k19, \.\.\.\.$"),
    ],
)
def test_a_wrong_field_name_is_an_error_that_names_the_right_one(
    tmp_path: Path, data: bytes, field: str, message: str
) -> None:
    (tmp_path / "a.jsonl").write_bytes(data)
    with pytest.raises(InputError, match=message):
        check_fields(list_inputs([tmp_path]), Fields(text=field), "crawl")


def test_a_wrong_column_name_is_an_error_too(tmp_path: Path) -> None:
    table = pa.table({"id": [1] * 2000, "content": ["x"] * 2000})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"the first 1,000 records of crawl; did you .*`content`"):
        check_fields(list_inputs([tmp_path]), Fields(), "crawl")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        lines({"x": 1}, 999) + lines({"text": "a"}),
        lines({"text": None}),
        lines({"text": 5}),
        b"not json\n",
        b"[1]\n",
        b"bad\n" * 1000 + lines({"x": 1}),
        gzip.compress(lines({"text": "a"}, 50), mtime=0)[:60],
        gzip.compress(b"", mtime=0)[:-4],
    ],
)
def test_a_field_that_is_there_once_or_no_records_are_no_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(data)
    check_fields(list_inputs([tmp_path]), Fields(), "crawl")


def test_text_files_and_broken_parquet_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"text")
    (tmp_path / "b.parquet").write_bytes(b"PAR1broken")
    (tmp_path / "c.zip").write_bytes(b"PK\x03\x04")
    check_fields(list_inputs([tmp_path]), Fields(), "crawl")


def test_a_text_file_beside_doesnt_hide_a_wrong_field(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes(b"about")
    (tmp_path / "a.jsonl").write_bytes(lines({"content": "x"}))
    with pytest.raises(InputError, match="did you mean `content`"):
        check_fields(list_inputs([tmp_path]), Fields(), "crawl")


def test_a_source_of_nothing_but_unsupported_formats_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match=r"no file of crawl has a format .*a\.zip is a ZIP"):
        check_fields(list_inputs([tmp_path]), Fields(), "crawl")


def test_two_columns_of_one_name_are_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.table([["a"], ["b"]], names=["text", "text"]), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet has 2 columns named `text`, so it isn't cl"):
        check_fields(list_inputs([tmp_path]), Fields(), "crawl")
