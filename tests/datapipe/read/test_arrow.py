from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.errors import InputError
from datapipe.read import list_inputs
from datapipe.read.check import check_fields
from datapipe.recipe import Fields
from datapipe.testing import Reading, read_all

Read = Callable[..., Reading]

TEXTS = [f"text {n} é" for n in range(10)]
TABLE = pa.table(
    {"text": TEXTS, "id": range(10), "url": ["u", None] * 5, "meta": [{"text": t} for t in TEXTS]}
)


def ipc(table: pa.Table = TABLE, *, stream: bool = False, rows: int = 4, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    opened = pa.ipc.new_stream if stream else pa.ipc.new_file
    with opened(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())]
)
def test_a_row_is_a_document(
    read: Read, stream: bool, compression: str | None, kind: pa.DataType
) -> None:
    column = pa.array(TEXTS).dictionary_encode() if pa.types.is_dictionary(kind) else None
    table = TABLE.set_column(0, "text", column or pa.array(TEXTS).cast(kind))
    reading = read("a.arrow", ipc(table, stream=stream, compression=compression))
    assert (reading.texts, reading.errors, reading.truncated) == (TEXTS, [], False)
    assert reading.places == [(n // 4, n % 4) for n in range(10)]
    assert [d["record_id"] for d in reading.documents] == [str(n) for n in range(10)]
    assert [d["url"] for d in reading.documents] == ["u", None] * 5


def test_feather_and_nested_fields_are_read(tmp_path: Path) -> None:
    pyarrow.feather.write_feather(TABLE, str(tmp_path / "a.feather"))
    assert read_all(list_inputs([tmp_path])).texts == TEXTS
    assert read_all(list_inputs([tmp_path]), fields=Fields(text="meta.text")).texts == TEXTS


def test_a_file_without_a_name_that_tells_is_seen(read: Read) -> None:
    assert read("data", ipc()).texts == TEXTS
    assert read("data", ipc(stream=True)).texts == TEXTS


def test_any_cut_gives_the_same_records(tmp_path: Path) -> None:
    (tmp_path / "a.arrow").write_bytes(ipc(rows=1))
    files = list_inputs([tmp_path])
    assert read_all(files, target_bytes=300) == read_all(files)


@pytest.mark.parametrize("stream", [False, True])
def test_no_rows_are_no_records(read: Read, stream: bool) -> None:
    assert read("a.arrow", ipc(TABLE.slice(0, 0), stream=stream)) == Reading()
    assert read("a.arrow", b"").texts == []


def test_bad_rows_are_quarantined_alone(read: Read) -> None:
    texts = pa.array([b"a", None, b"\xff", b"b"]).cast(pa.binary())
    strings = pa.Array.from_buffers(pa.string(), 4, texts.buffers(), null_count=1)
    reading = read("a.arrow", ipc(pa.table({"text": strings})))
    assert reading.texts == ["a", "b"]
    assert reading.errors == ["text_missing", "invalid_utf8"]
    assert read("a.arrow", ipc(pa.table({"text": [1, 2]}))).errors == ["text_not_string"] * 2


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_file_gives_its_whole_batches_or_says_why_not(read: Read, stream: bool) -> None:
    data = ipc(stream=stream)
    for cut in range(9, len(data) - 16, 37):
        reading = read("a.arrow", data[:cut])
        assert reading.texts == TEXTS[: len(reading.texts)], cut
        assert set(reading.errors) <= {"corrupt_arrow"}, cut


@settings(max_examples=150, deadline=None)
@given(data=st.data(), stream=st.booleans())
def test_wherever_bits_flip_nothing_raises(read: Read, data: st.DataObject, stream: bool) -> None:
    broken = bytearray(ipc(TABLE.select(["text", "id"]), stream=stream))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(8, len(broken) - 1))
        broken[place] ^= 1 << data.draw(st.integers(0, 7))
    read("a.arrow", bytes(broken))


def test_a_wrong_column_name_is_an_error_that_names_the_right_one(tmp_path: Path) -> None:
    (tmp_path / "a.arrow").write_bytes(ipc(TABLE.rename_columns(["content", "id", "url", "m"])))
    with pytest.raises(InputError, match="did you mean `content`"):
        check_fields(list_inputs([tmp_path]), Fields(), "web")


def test_a_folder_that_datasets_saved_is_read_without_its_notes(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "data-00000-of-00001.arrow").write_bytes(ipc(stream=True))
    (tmp_path / "train" / "state.json").write_text('{"_fingerprint": "x"}')
    (tmp_path / "train" / "dataset_info.json").write_text("{}")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train"]}')
    assert read_all(list_inputs([tmp_path])).texts == TEXTS
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "state.json").write_text('{"text": "a"}')
    assert [f.relative for f in list_inputs([tmp_path / "other"])] == ["state.json"]
