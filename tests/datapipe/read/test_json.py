from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.read.json_values import ValueCutter, cut_values
from datapipe.read.lines import LineBlock
from datapipe.testing import Reading

Read = Callable[..., Reading]

TEXTS = [f'text {n} "quoted" [{{,}}] \\ é\n' for n in range(9)]
RECORDS = [{"id": n, "text": text, "x": [{"id": 1}]} for n, text in enumerate(TEXTS)]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", json.dumps(RECORDS)),
        ("a.json", json.dumps(RECORDS, indent=2, ensure_ascii=False)),
        ("a.json", "[\n" + ",\n".join(map(json.dumps, RECORDS)) + "\n]\n"),
        ("a.json", "\ufeff \n[" + ",".join(map(json.dumps, RECORDS)) + " ] "),
        ("a.json", "\n".join(json.dumps(record, indent=1) for record in RECORDS)),
        ("a.jsonl", json.dumps(RECORDS)),
        ("a", json.dumps(RECORDS)),
        ("a.json", "\n".join(map(json.dumps, RECORDS))),
    ],
    ids=["one line", "indented", "lines", "mark", "values", "name lies", "no name", "json lines"],
)
def test_the_objects_of_an_array_or_file_are_documents(read: Read, name: str, data: str) -> None:
    raw = data.encode()
    reading = read(name, raw)
    assert (reading.texts, reading.errors, reading.truncated) == (TEXTS, [], False)
    for (offset, length), record in zip(reading.places, RECORDS, strict=True):
        assert json.loads(raw[offset : offset + length]) == record
    assert [d["record_id"] for d in reading.documents] == [str(n) for n in range(9)]


@pytest.mark.parametrize("data", [b"[]", b" [ \n ] \n", b"", b"\n"])
def test_nothing_is_no_record(read: Read, data: bytes) -> None:
    assert read("a.json", data, declared="json") == Reading()


ONE, TWO = b'{"text": "one"}', b'{"text": "two"}'


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (b"17", "not_an_object"),
        (b'{"text": 1}', "text_not_string"),
        (b'{"test": "a"}', "text_missing"),
        (b'{"text": "a",}', "invalid_json"),
        (b'{"text": NaN}', "invalid_json"),
        (b"", "invalid_json"),
        (b'{"text": "\xff"}', "invalid_utf8"),
        (b'{"text": "no quote}', "invalid_json"),
        (b'{"text": "two\nlines"}', "invalid_json"),
        (b'{"text": "a"}}', "invalid_json"),
        (b'{"text": "' + b"a" * 200 + b'"}', "record_too_large"),
        (b'{"text": ["a"}', "invalid_json"),
    ],
)
@pytest.mark.parametrize("between", [b", ", b",\n", b" ,\r\n  "])
def test_a_bad_element_is_quarantined_and_its_neighbours_survive(
    read: Read, bad: bytes, error: str, between: bytes
) -> None:
    if b"no quote" in bad and b"\n" not in between:
        pytest.skip("where a string ends in a line nobody can know")
    data = b"[" + between.join([ONE, bad, TWO, ONE]) + b"]"
    reading = read("a.json", data, declared="json", max_record_bytes=100)
    assert reading.errors == [error]
    assert reading.texts == ["one", "two", "one"]
    (row,) = reading.quarantined
    if bad:
        found = data[row["source_offset"] :][: row["source_length"]]
        assert bad.strip() in found or error == "record_too_large"


def test_elements_may_lie_anywhere_between_chunks(read: Read) -> None:
    data = b"[" + b", ".join([ONE, b'{"text": "x\ny"}', TWO] * 50) + b"]"
    for size in (1, 2, 3, 7, 50, 100_000):
        cutter = ValueCutter(max_record_bytes=1000)
        chunks = (data[i : i + size] for i in range(0, len(data), size))
        pieces = list(cut_values(chunks, cutter))
        values = [line for piece in pieces if isinstance(piece, LineBlock) for line in piece.lines]
        assert values == [ONE, TWO] * 50, size
        assert cutter.is_whole
    assert read("a.json", data).errors == ["invalid_json"] * 50


@pytest.mark.parametrize("tail", [b"", b" ", b"]x", b"]]", b'] {"text":"a"}'])
def test_an_array_that_doesnt_end_as_it_should_is_truncated(read: Read, tail: bytes) -> None:
    reading = read("a.json", b"[" + ONE + b"," + TWO + tail)
    assert reading.texts == ["one", "two"][: 1 + (b"]" in tail)] or reading.texts == ["one", "two"]
    assert (reading.errors, reading.truncated) == (["truncated_json"], True)


def test_every_cut_gives_the_whole_records_before_it(read: Read) -> None:
    data = json.dumps(RECORDS[:3], indent=1).encode()
    ends = [p + length for p, length in read("a.json", data).places]
    for cut in range(1, len(data)):
        reading = read("a.json", data[:cut], declared="json")
        assert reading.texts == TEXTS[: sum(end <= cut for end in ends)], cut
        assert reading.truncated, cut
        assert len(reading.errors) == 1, cut


def test_a_damaged_compressed_array_gives_what_is_before(read: Read) -> None:
    noise = [{"text": random.Random(n).randbytes(200).hex()} for n in range(100)]
    packed = gzip.compress(json.dumps(noise).encode(), mtime=0)
    reading = read("a.json.gz", packed[: len(packed) // 2])
    assert 20 < len(reading.texts) < 80
    assert (reading.errors, reading.truncated) == (["truncated_gzip"], True)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_wherever_bytes_change_nothing_raises(read: Read, data: st.DataObject) -> None:
    broken = bytearray(json.dumps(RECORDS, indent=data.draw(st.sampled_from([None, 1]))).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(broken) - 1))
        broken[place] = data.draw(st.sampled_from(list(b'"[]{},\\\n\xffx')))
    reading = read("a.json", bytes(broken), declared="json")
    for (offset, length), text in zip(reading.places, reading.texts, strict=True):
        assert json.loads(bytes(broken[offset : offset + length]))["text"] == text
