from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.dataset.hashing import document_hash, hashed_tuple
from datapipe.recipe import Fields
from datapipe.testing import Reading

Read = Callable[..., Reading]

GOOD = b'{"text":"good"}'
DEEP_256 = b'{"text":"a","x":' + b"[" * 255 + b"]" * 255 + b"}"
DEEP_257 = b'{"text":"a","x":' + b"[" * 256 + b"]" * 256 + b"}"
DEEP_9999 = b'{"text":"a","x":' + b"[" * 9999 + b"]" * 9999 + b"}"


def test_a_record_becomes_a_document_with_everything_known_of_it(read: Read) -> None:
    line = (
        b'{"id":"r1","text":"caf\xc3\xa9","url":"http://a/","date":"2024-05-17T10:00:00+02:00",'
        b'"language":"fr","more":{"x":[1,2]}}'
    )
    document = read("a.jsonl", b"\n" + line + b"\n", licence="CC0-1.0").documents[0]
    content_hash = document_hash("café".encode())
    assert document == {
        "text": "café",
        "doc_id": document_hash(hashed_tuple("web", "a.jsonl", 1, len(line), content_hash)),
        "content_hash": content_hash,
        "source": "web",
        "source_file": "a.jsonl",
        "source_offset": 1,
        "source_length": len(line),
        "record_id": "r1",
        "url": "http://a/",
        "licence": "CC0-1.0",
        "language": "fr",
        "crawled_at": datetime(2024, 5, 17, 8, tzinfo=UTC),
        "media_type": None,
    }


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"text":"trunc', "invalid_json"),
        (b"nonsense", "invalid_json"),
        (b'{"text":"a"} x', "invalid_json"),
        (b'{"text":"a"}{"text":"b"}', "invalid_json"),
        (b'{"text":"a",}', "invalid_json"),
        (b"{'text':'a'}", "invalid_json"),
        (b'{"text":"a","x":NaN}', "invalid_json"),
        (b'{"text":"a","x":-Infinity}', "invalid_json"),
        (b'{"text":"a","x":01}', "invalid_json"),
        (b'{"text":"a\tb"}', "invalid_json"),
        (b'{"text":"a","x":"\x01"}', "invalid_json"),
        (b'{"text":"a\\q"}', "invalid_json"),
        (b'\x00\x00\x00{"text":"a"}', "invalid_json"),
        (b'{"text":"a\rb"}', "invalid_json"),
        (b'{"text":"\xff"}', "invalid_utf8"),
        (b'{"text":"a","x":"\xff"}', "invalid_utf8"),
        (b'{"text":"a","\xff":1}', "invalid_utf8"),
        (b'{"text":"\xed\xa0\x80"}', "invalid_utf8"),
        (b'{"text":"\xc0\x80"}', "invalid_utf8"),
        (b"[1,2]", "not_an_object"),
        (b"null", "not_an_object"),
        (b'"text"', "not_an_object"),
        (b"12", "not_an_object"),
        (b"true", "not_an_object"),
        (b"{}", "text_missing"),
        (b'{"Text":"a"}', "text_missing"),
        (b'{"text":null}', "text_missing"),
        (b'{"text":123}', "text_not_string"),
        (b'{"text":1.5}', "text_not_string"),
        (b'{"text":["a"]}', "text_not_string"),
        (b'{"text":{"a":"b"}}', "text_not_string"),
        (b'{"text":true}', "text_not_string"),
        (b'{"text":"a","text":1}', "text_not_string"),
        (b'{"text":"a\\ud800"}', "lone_surrogate"),
        (b'{"text":"\\udc00\\ud800"}', "lone_surrogate"),
        (b'{"text":"a","id":"\\ud800"}', "lone_surrogate"),
        (DEEP_257, "too_deep"),
        (DEEP_9999, "too_deep"),
        (b"[" * 100_000, "too_deep"),
    ],
)
def test_a_bad_record_is_quarantined_and_its_neighbours_survive(
    read: Read, line: bytes, error: str
) -> None:
    reading = read("a.jsonl", GOOD + b"\n" + line + b"\n" + GOOD + b"\n")
    assert reading.texts == ["good", "good"]
    (row,) = reading.quarantined
    assert (row["error"], row["raw"], row["source"], row["source_file"]) == (
        error,
        line,
        "web",
        "a.jsonl",
    )
    assert (row["source_offset"], row["source_length"]) == (len(GOOD) + 1, len(line))
    assert row["detail"]
    assert not reading.truncated


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b'{"text":"a","text":"b"}', "b"),
        (b'{"text":1,"text":"b"}', "b"),
        (b'{"te\\u0078t":"escaped key"}', "escaped key"),
        (b'{"text":""}', ""),
        (b'{"text":"\\u0000"}', "\0"),
        (b'{"text":"\\ud83d\\ude00"}', "\U0001f600"),
        (b'{"text":"a","x":"\\ud800"}', "a"),
        (b'{"text":"a","\\ud800":1}', "a"),
        (b'{"text":"a","x":' + b"9" * 10_000 + b"}", "a"),
        (b'{"text":"a","x":1e99999}', "a"),
        (b'  {"text" : "a"}\t ', "a"),
        (b'{\r"text":"a"}', "a"),
        ('{"text":"a\u2028b\x0b\u0085"}'.replace("\x0b", "").encode(), "a\u2028b\u0085"),
        (DEEP_256, "a"),
        (b'{"text":"' + b"[{" * 500 + b'"}', "[{" * 500),
        (b'{"text":"\\"' + b"[" * 500 + b'\\\\"}', '"' + "[" * 500 + "\\"),
    ],
)
def test_an_odd_record_is_read(read: Read, line: bytes, text: str) -> None:
    reading = read("a.jsonl", GOOD + b"\n" + line + b"\n" + GOOD)
    assert reading.texts == ["good", text, "good"]
    assert not reading.quarantined
    assert reading.places[1] == (len(GOOD) + 1, len(line))


@pytest.mark.parametrize(
    ("data", "texts", "places", "blank_lines"),
    [
        (b"", [], [], 0),
        (b"\n", [], [], 1),
        (b"\n\r\n \t\n", [], [], 3),
        (b"\xef\xbb\xbf", [], [], 1),
        (b'{"text":"a"}', ["a"], [(0, 12)], 0),
        (b'{"text":"a"}\n', ["a"], [(0, 12)], 0),
        (b'{"text":"a"}\n\n{"text":"b"}\n', ["a", "b"], [(0, 12), (14, 12)], 1),
        (b'{"text":"a"}\r\n{"text":"b"}\r\n', ["a", "b"], [(0, 12), (14, 12)], 0),
        (b'{"text":"a"}\r\r\n{"text":"b"}\r', ["a", "b"], [(0, 13), (15, 12)], 0),
        (b'\xef\xbb\xbf{"text":"a"}\n', ["a"], [(3, 12)], 0),
        (b'{"text":"a"}\n\xef\xbb\xbf{"text":"b"}\n', ["a", "b"], [(0, 12), (16, 12)], 0),
        (b'{"text":"a"}\r{"text":"b"}\r', ["a", "b"], [(0, 12), (13, 12)], 0),
    ],
    ids=[
        "nothing",
        "newline",
        "blank lines",
        "only a mark",
        "no last newline",
        "one",
        "blank between",
        "CRLF",
        "CR CR LF",
        "byte order mark",
        "mark inside",
        "CR alone",
    ],
)
def test_line_ends_and_marks(
    read: Read,
    data: bytes,
    texts: list[str],
    places: list[tuple[int, int]],
    blank_lines: int,
) -> None:
    reading = read("a.jsonl", data)
    assert (reading.texts, reading.places, reading.blank_lines) == (texts, places, blank_lines)
    assert not reading.quarantined


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'"x1"', "x1"),
        (b"17", "17"),
        (b"-0", "-0"),
        (b"1.50", "1.50"),
        (b"1E400", "1E400"),
        (b"9" * 5000, "9" * 5000),
        (b"true", "true"),
        (b'{"$oid" : [1.0, "\xc3\xa9", null]}', '{"$oid":[1.0,"é",null]}'),
        (b"null", None),
        (b'"\\u00e9"', "é"),
    ],
)
@pytest.mark.parametrize("also", [b"", b'"x":"\\ud800",'], ids=["quick", "exact"])
def test_an_id_is_a_string_or_json_text(
    read: Read, value: bytes, expected: str | None, also: bytes
) -> None:
    data = b'{"text":"a",' + also + b'"id":' + value + b"}\n" + GOOD
    reading = read("a.jsonl", data)
    assert [document["record_id"] for document in reading.documents] == [expected, None]


def test_attributes_of_other_types_count_as_absent(read: Read) -> None:
    data = b'{"text":"a","url":1,"language":["en"],"date":1700000000}\n{"text":"b","url":"u"}'
    reading = read("a.jsonl", data)
    assert [(d["url"], d["language"], d["crawled_at"]) for d in reading.documents] == [
        (None, None, None),
        ("u", None, None),
    ]


@pytest.mark.parametrize(
    ("fields", "line", "expected"),
    [
        (Fields(text="content"), b'{"content":"a","text":"b"}', ("a", None)),
        (Fields(text="doc.body.raw"), b'{"doc":{"body":{"raw":"a"}},"id":"i"}', ("a", "i")),
        (Fields(text="a\\.b"), b'{"a.b":"a","a":{"b":"no"}}', ("a", None)),
        (Fields(id="meta.id"), b'{"text":"a","meta":{"id":"i"}}', ("a", "i")),
        (Fields(id="meta.id"), b'{"text":"a","meta":null}', ("a", None)),
        (Fields(id="meta.id"), b'{"text":"a","meta":"x"}', ("a", None)),
        (Fields(id="meta.id"), b'{"text":"a"}', ("a", None)),
        (Fields(id="url"), b'{"text":"a","url":"u"}', ("a", "u")),
        (Fields(id="text"), b'{"text":"a"}', ("a", "a")),
        (
            Fields(id="meta", url="meta.url"),
            b'{"text":"a","meta":{"url":"u"}}',
            ("a", '{"url":"u"}'),
        ),
    ],
)
def test_fields_are_found_by_path(
    read: Read, fields: Fields, line: bytes, expected: tuple[str, str | None]
) -> None:
    (document,) = read("a.jsonl", line, fields=fields).documents
    assert (document["text"], document["record_id"]) == expected


def test_a_nested_text_that_is_missing_is_quarantined(read: Read) -> None:
    data = b'{"doc":{"body":"a"}}\n{"doc":{}}\n{"doc":null}\n{"doc":"x"}\n{"doc":{"body":1}}\n'
    reading = read("a.jsonl", data, fields=Fields(text="doc.body"))
    assert reading.texts == ["a"]
    assert reading.errors == ["text_missing"] * 3 + ["text_not_string"]


def test_a_file_that_ends_inside_a_record_is_marked_truncated(read: Read) -> None:
    reading = read("a.jsonl", GOOD + b'\n{"text":"cu')
    assert (reading.texts, reading.errors, reading.truncated) == (["good"], ["invalid_json"], True)


@pytest.mark.parametrize("chunks", [1, 3], ids=["one chunk", "many chunks"])
def test_a_record_over_the_budget_is_quarantined_with_its_beginning(
    read: Read, chunks: int
) -> None:
    line = b'{"text":"' + b"x" * (200_000 * chunks) + b'"}'
    reading = read("a.jsonl", GOOD + b"\n" + line + b"\n" + GOOD, max_record_bytes=100_000)
    (row,) = reading.quarantined
    assert reading.texts == ["good", "good"]
    assert (row["error"], row["source_length"]) == ("record_too_large", len(line))
    assert line.startswith(row["raw"])
    assert len(row["raw"]) >= 100_000


@pytest.mark.parametrize(
    "around", [b"\n", b"1\n", GOOD + b"\n"], ids=["blank", "numbers", "objects"]
)
def test_depth_is_seen_among_lines_of_any_kind(read: Read, around: bytes) -> None:
    reading = read("a.jsonl", around * 300 + DEEP_257 + b"\n" + DEEP_256 + b"\n" + around * 300)
    assert reading.errors.count("too_deep") == 1
    assert reading.texts.count("a") == 1


def test_order_is_that_of_the_file_when_some_records_need_the_exact_way(read: Read) -> None:
    lines = [json.dumps({"text": f"t{i}", "x": "\ud800" if i % 3 else ""}) for i in range(50)]
    reading = read("a.jsonl", "\n".join(lines).encode())
    assert reading.texts == [f"t{i}" for i in range(50)]


_FIELD = st.sampled_from(["text", "id", "x"])
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_FIELD, inner, max_size=2),
    max_leaves=4,
)
_LINES = st.lists(
    st.dictionaries(_FIELD, _VALUE, max_size=3).map(lambda d: json.dumps(d).encode())
    | _VALUE.map(lambda v: json.dumps(v, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    | st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b""))
    | st.just(GOOD),
    max_size=12,
)


@settings(max_examples=100, deadline=None)
@given(lines=_LINES, ending=st.sampled_from([b"\n", b"\r\n"]))
def test_every_line_is_a_document_or_quarantined_or_blank(
    read: Read, lines: list[bytes], ending: bytes
) -> None:
    lines = [GOOD, *lines]  # what the file starts with might be the mark of another format
    reading = read("p.jsonl", b"".join(line + ending for line in lines))
    texts, bad, blank = _plain(lines)
    assert reading.texts == texts
    assert [row["raw"].removeprefix(b"\xef\xbb\xbf") for row in reading.quarantined] == bad
    assert reading.blank_lines == blank


@settings(max_examples=50, deadline=None)
@given(
    lines=st.lists(st.sampled_from([b"", b" ", b"\r", b"\t\r", GOOD, b"1"]), max_size=20),
    target_bytes=st.integers(1, 60),
)
def test_blank_lines_add_up_over_any_ranges(
    read: Read, lines: list[bytes], target_bytes: int
) -> None:
    reading = read("b.jsonl", b"\n".join([GOOD, *lines, b""]), target_bytes=target_bytes)
    assert reading.blank_lines == sum(not line.strip() for line in lines)
    assert len(reading.texts) == 1 + lines.count(GOOD)
    assert len(reading.quarantined) == lines.count(b"1")


@pytest.mark.parametrize("line", [b"", b"\r", b" "], ids=["empty", "return", "space"])
def test_millions_of_blank_lines_are_counted_quickly(read: Read, line: bytes) -> None:
    started = time.process_time()
    reading = read("many.jsonl", GOOD + b"\n" + (line + b"\n") * 1_000_000)
    assert (len(reading.texts), reading.blank_lines) == (1, 1_000_000)
    assert time.process_time() - started < 5  # one exception a line took longer


def _plain(lines: list[bytes]) -> tuple[list[str], list[bytes], int]:
    """The same in plain Python, one line at a time."""
    texts: list[str] = []
    bad: list[bytes] = []
    blank = 0
    for line in (line.removeprefix(b"\xef\xbb\xbf") for line in lines):
        if not line.strip():
            blank += 1
            continue
        try:
            record = json.loads(line.decode(), parse_constant=lambda _: 1 / 0)
            assert isinstance(record.get("id"), str | int | float | list | dict | None)
            record["text"].encode()
            for name in ("id", "url", "date", "language"):
                if isinstance(record.get(name), str):
                    record[name].encode()
                elif name == "id":
                    json.dumps(record.get(name), ensure_ascii=False).encode()
            texts.append(record["text"])
        except (ValueError, KeyError, AttributeError, ZeroDivisionError, TypeError):
            bad.append(line)
    return texts, bad, blank


@settings(max_examples=50, deadline=None)
@given(
    lines=_LINES,
    last=st.sampled_from([b"", b"\n"]),
    target_bytes=st.integers(1, 60),
    batch_bytes=st.integers(1, 60),
)
def test_any_cut_into_ranges_gives_the_same_records(
    read: Read, lines: list[bytes], last: bytes, target_bytes: int, batch_bytes: int
) -> None:
    data = b"\n".join([GOOD, *lines]) + last
    whole = read("r.jsonl", data)
    cut = read("r.jsonl", data, target_bytes=target_bytes, batch_bytes=batch_bytes)
    assert cut == whole
