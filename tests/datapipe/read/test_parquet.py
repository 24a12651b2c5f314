from __future__ import annotations

import io
import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datapipe.read import InputFile, detect_format, plan_ranges, read_range
from datapipe.recipe import Fields
from datapipe.testing import Reading

Read = Callable[..., Reading]


def parquet(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def texts(kind: pa.DataType, values: list[Any] | None = None) -> pa.Table:
    column = pa.array(values or ["a", "b", "é"], pa.string())
    if pa.types.is_dictionary(kind):
        return pa.table({"text": column.dictionary_encode()})
    return pa.table({"text": column.cast(kind)})


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_texts_of_every_string_type_are_read(read: Read, kind: pa.DataType) -> None:
    reading = read("a.parquet", parquet(texts(kind)))
    assert reading.texts == ["a", "b", "é"]
    assert reading.places == [(0, 0), (0, 1), (0, 2)]


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize("batch_bytes", [100, 1 << 20])
def test_texts_in_every_encoding_are_read(
    read: Read, encoding: str, version: str, compression: str, batch_bytes: int
) -> None:
    table = pa.table({"text": [f"text {i}" for i in range(90)], "url": ["u", None, "v"] * 30})
    data = parquet(
        table,
        use_dictionary=["url"],
        column_encoding={"text": encoding},
        data_page_version=version,
        compression=compression,
        row_group_size=40,
    )
    reading = read("a.parquet", data, batch_bytes=batch_bytes)
    assert reading.texts == [f"text {i}" for i in range(90)]
    assert [document["url"] for document in reading.documents] == ["u", None, "v"] * 30


@pytest.mark.parametrize("target_bytes", [1, 300, 1 << 40])
@pytest.mark.parametrize("batch_bytes", [1, 1 << 20])
def test_row_groups_in_any_ranges_give_the_same_places(
    read: Read, target_bytes: int, batch_bytes: int
) -> None:
    data = parquet(pa.table({"text": [f"t{i}" for i in range(25)]}), row_group_size=10)
    reading = read("a.parquet", data, target_bytes=target_bytes, batch_bytes=batch_bytes)
    assert reading.texts == [f"t{i}" for i in range(25)]
    assert reading.places == [(i // 10, i % 10) for i in range(25)]


def test_row_groups_are_put_together_up_to_the_target(tmp_path: Path) -> None:
    table = pa.table({"text": [f"{i:0100d}" for i in range(40)]})
    data = parquet(table, row_group_size=10, use_dictionary=False, compression="none")
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    file = InputFile(path=str(path), relative="a.parquet", size_bytes=len(data))
    parts = plan_ranges(file, detect_format(file), target_bytes=3500)
    assert [(part.start, part.end) for part in parts] == [(0, 2), (2, 4)]


def test_attributes_of_many_types_are_taken(read: Read) -> None:
    table = pa.table(
        {
            "text": ["a", "b"],
            "id": pa.array([1 << 60, None], pa.int64()),
            "url": pa.array(["u", None]).dictionary_encode(),
            "date": pa.array([-1, None], pa.timestamp("ms")),
            "language": pa.array(["en", None]),
        }
    )
    first, second = read("a.parquet", parquet(table), licence="MIT").documents
    assert (first["record_id"], first["url"], first["language"]) == (str(1 << 60), "u", "en")
    assert (first["crawled_at"], first["licence"]) == (datetime.fromtimestamp(-1, UTC), "MIT")
    assert (second["record_id"], second["url"], second["crawled_at"]) == (None, None, None)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["2024-01-02", "never"]), [datetime(2024, 1, 2, tzinfo=UTC), None]),
        (pa.array([date(1969, 12, 31), None]), [datetime(1969, 12, 31, tzinfo=UTC), None]),
        (
            pa.array([date(1969, 12, 31), None], pa.date64()),
            [datetime(1969, 12, 31, tzinfo=UTC), None],
        ),
        (
            pa.array([1_999, None], pa.timestamp("ms", tz="+05:00")),
            [datetime.fromtimestamp(1, UTC), None],
        ),
        (pa.array([-1, None], pa.timestamp("us")), [datetime.fromtimestamp(-1, UTC), None]),
        (pa.array([5, None], pa.int64()), [None, None]),
        (pa.array([1 << 62, 0], pa.timestamp("ms")), [None, datetime.fromtimestamp(0, UTC)]),
        (pa.array([-(1 << 62), 0], pa.date64()), [None, datetime.fromtimestamp(0, UTC)]),
        (pa.array([None, None], pa.null()), [None, None]),
    ],
    ids=[
        "strings",
        "date32",
        "date64",
        "zone",
        "before 1970",
        "integers",
        "beyond the calendar",
        "before the calendar",
        "nulls",
    ],
)
def test_dates_of_many_types_are_seconds(
    read: Read, column: pa.Array, expected: list[datetime | None]
) -> None:
    reading = read("a.parquet", parquet(pa.table({"text": ["a", "b"], "date": column})))
    assert [document["crawled_at"] for document in reading.documents] == expected


def test_nested_fields_are_found_and_null_parents_are_null(read: Read) -> None:
    rows = [{"text": "a", "id": 1}, None, {"text": None, "id": 2}, {"text": "d", "id": None}]
    table = pa.table({"doc": rows, "text": ["no"] * 4})
    fields = Fields(text="doc.text", id="doc.id")
    reading = read("a.parquet", parquet(table), fields=fields)
    assert reading.texts == ["a", "d"]
    assert [document["record_id"] for document in reading.documents] == ["1", None]
    assert [row["source_length"] for row in reading.quarantined] == [1, 2]


def test_bad_rows_are_quarantined_by_row_and_others_survive(read: Read) -> None:
    values = [b"a", None, b"\xff\xfe", b"x" * 50, b"", b"e"]
    table = pa.table({"text": pa.array(values, pa.binary()), "id": list("012345")})
    reading = read("a.parquet", parquet(table, row_group_size=4), max_record_bytes=20)
    assert reading.texts == ["a", "", "e"]
    assert [document["record_id"] for document in reading.documents] == ["0", "4", "5"]
    found = [(r["error"], r["source_offset"], r["source_length"]) for r in reading.quarantined]
    assert found == [("text_missing", 0, 1), ("invalid_utf8", 0, 2), ("record_too_large", 0, 3)]
    assert [row["raw"] for row in reading.quarantined] == [b"", b"\xff\xfe", b"x" * 50]


def test_a_string_column_that_lies_about_utf8_is_checked(read: Read) -> None:
    lie = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff"], pa.binary()).buffers())
    reading = read("a.parquet", parquet(pa.table({"text": lie, "url": lie})))
    assert (reading.texts, reading.errors) == (["ok"], ["invalid_utf8"])
    assert reading.documents[0]["url"] == "ok"


@pytest.mark.parametrize(
    ("table", "error"),
    [
        (pa.table({"x": ["a", "b"]}), "text_missing"),
        (pa.table({"text": pa.array([None, None], pa.null())}), "text_missing"),
        (pa.table({"text": [1, 2]}), "text_not_string"),
        (pa.table({"text": [["a"], ["b"]]}), "text_not_string"),
    ],
    ids=["no column", "nulls", "numbers", "lists"],
)
def test_a_column_that_cant_be_text_quarantines_every_row(
    read: Read, table: pa.Table, error: str
) -> None:
    reading = read("a.parquet", parquet(table))
    assert (reading.texts, reading.errors) == ([], [error, error])


def test_no_rows_are_no_documents(read: Read) -> None:
    empty = pa.table({"text": pa.array([], pa.string())})
    assert read("a.parquet", parquet(empty)) == Reading()
    assert read("a.parquet", b"") == Reading()


def test_content_decides_where_the_name_lies(read: Read) -> None:
    assert read("a.jsonl", parquet(texts(pa.string()))).texts == ["a", "b", "é"]
    assert read("a.parquet", b'{"text":"a"}\n{"text":"b"}\n').texts == ["a", "b"]


@pytest.mark.parametrize("cut", [4, 100, -1, -8])
def test_a_truncated_file_is_one_quarantined_record(read: Read, cut: int) -> None:
    reading = read("a.parquet", parquet(texts(pa.string()))[:cut])
    assert (reading.texts, reading.errors, reading.truncated) == ([], ["corrupt_parquet"], True)


@pytest.mark.parametrize("target_bytes", [1, 1 << 40])
def test_a_damaged_row_group_leaves_the_others(read: Read, target_bytes: int) -> None:
    table = pa.table({"text": [f"text number {i}" for i in range(30)]})
    data = bytearray(
        parquet(table, row_group_size=10, compression="zstd", write_page_checksum=True)
    )
    metadata = pq.ParquetFile(io.BytesIO(bytes(data))).metadata
    column = metadata.row_group(1).column(0)
    start = column.dictionary_page_offset
    data[start + 30 : start + column.total_compressed_size] = b"\xff" * (
        column.total_compressed_size - 30
    )
    reading = read("a.parquet", bytes(data), target_bytes=target_bytes)
    assert reading.texts == [f"text number {i}" for i in range(30) if not 10 <= i < 20]
    assert (reading.errors, reading.truncated) == (["corrupt_parquet"] * 10, True)
    lost = [(row["source_offset"], row["source_length"]) for row in reading.quarantined]
    assert lost == [(1, row) for row in range(10)]
    assert reading.quarantined[0]["detail"].startswith("row group 1 can't be read from row 0 on: ")


def damaged(data: bytes, group: int, *, keep: int = 30) -> bytes:
    """Returns a Parquet file with 0xff in a row group's first column, from byte `keep` of it on."""
    column = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(group).column(0)
    start: int = column.dictionary_page_offset or column.data_page_offset
    stop = start + column.total_compressed_size
    return b"".join([data[: start + keep], b"\xff" * (stop - start - keep), data[stop:]])


def test_rows_read_before_the_damage_stay_and_the_rest_is_counted(read: Read) -> None:
    table = pa.table({"text": [f"{i:064d}" for i in range(5_000)]})
    pages = {"data_page_size": 4_000, "write_batch_size": 50, "write_page_checksum": True}
    whole = parquet(table, use_dictionary=False, compression="none", **pages)
    data = damaged(whole, 0, keep=60_000)
    reading = read("a.parquet", data, batch_bytes=6_400)
    assert 0 < len(reading.texts) < 4_000
    assert reading.texts == [f"{i:064d}" for i in range(len(reading.texts))]
    assert len(reading.texts) + len(reading.quarantined) == 5_000
    assert {row["error"] for row in reading.quarantined} == {"corrupt_parquet"}
    assert reading.quarantined[-1]["source_length"] == 4_999


def test_a_flipped_bit_is_noticed_where_pages_have_checksums(read: Read) -> None:
    table = pa.table({"text": ["some text"] * 3})
    data = parquet(table, compression="none", write_page_checksum=True, write_statistics=False)
    reading = read("a.parquet", data.replace(b"some text", b"some tex!"))
    assert (reading.texts, reading.errors) == ([], ["corrupt_parquet"] * 3)


def varint(number: int) -> bytes:
    """Returns how a Parquet footer writes a number."""
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def claiming(rows: int, *, data: bytes, of: int) -> bytes:
    """Returns a Parquet file of `of` rows whose footer says that there are `rows`."""
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8].replace(varint(of), varint(rows))
    return data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize("rows", [-7, 1 << 21, 1 << 60])
@pytest.mark.parametrize("column", ["text", "other"])
def test_a_row_count_that_cant_be_true_is_one_record(read: Read, rows: int, column: str) -> None:
    table = pa.table({column: pa.array(["x"] * 70_001)})
    data = claiming(rows, data=damaged(parquet(table), 0), of=70_001)
    reading = read("a.parquet", data)
    assert (reading.texts, len(reading.errors)) == ([], 1)
    assert reading.quarantined[0]["detail"].endswith("how many rows there are isn't known")


def test_a_row_group_with_fewer_rows_than_it_says_has_lost_the_others(read: Read) -> None:
    data = claiming(70_005, data=parquet(pa.table({"text": ["x"] * 70_001})), of=70_001)
    reading = read("a.parquet", data)
    assert len(reading.texts) + len(reading.quarantined) == 70_005
    assert reading.truncated


def test_a_name_that_isnt_utf8_is_damage(read: Read) -> None:
    data = parquet(pa.table({"t\u00e9xt": ["a"], "text": ["b"]}), store_schema=False)
    reading = read("a.parquet", data.replace("t\u00e9xt".encode(), b"t\xff\xffxt"))
    assert (reading.errors, reading.truncated) == (["corrupt_parquet"], True)
    assert reading.quarantined[0]["detail"].startswith("the file can't be opened as Parquet: a na")


def test_two_columns_of_one_name_hold_no_text(read: Read) -> None:
    table = pa.table([["a", "b"], ["c", "d"], ["e", "f"]], names=["text", "id", "text"])
    reading = read("a.parquet", parquet(table))
    assert reading.errors == ["text_missing"] * 2
    assert reading.quarantined[0]["detail"] == "there are 2 columns `text`"


def test_a_text_that_stands_for_many_rows_is_unpacked_in_pieces(tmp_path: Path) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 3_000, pa.int32()), ["x" * 16_000])
    table = pa.table({"text": column, "url": column})
    data = parquet(table, dictionary_pagesize_limit=1 << 30)
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    file = InputFile(path=str(path), relative="a.parquet", size_bytes=len(data))
    (part,) = plan_ranges(file, detect_format(file), target_bytes=1 << 20)
    before = pa.total_allocated_bytes()
    rows = most = 0
    for result in read_range(part, source="s", batch_bytes=1 << 20):
        assert result.batch is not None
        rows += result.batch.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
    assert len(data) < 10_000
    assert rows == 3_000
    assert most < 10 << 20


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_damaged_every_row_is_counted_or_the_file_is_said_to_be(
    read: Read, seed: int
) -> None:
    generator = random.Random(seed)
    table = pa.table({"text": [f"text {i}" for i in range(50)], "id": range(50)})
    data = bytearray(parquet(table, row_group_size=20, compression="zstd"))
    for _ in range(generator.choice([1, 4])):
        data[generator.randrange(4, len(data))] = generator.randrange(256)
    reading = read("a.parquet", bytes(data))
    assert reading.truncated or len(reading.texts) + len(reading.quarantined) == 50
