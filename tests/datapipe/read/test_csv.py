from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.errors import InputError
from datapipe.read import list_inputs
from datapipe.read.check import check_fields
from datapipe.recipe import Fields
from datapipe.testing import Reading

Read = Callable[..., Reading]

DATA = (
    b"id,text,url\r\n"
    b"1,one,http://a\r\n"
    b'2,"two, with ""quotes""\r\nand lines",\r\n'
    b"\r\n"
    b'3,5" pipe,"u"\r\n'
    b'4,"",\r\n'
    b"5,last,"
)
TEXTS = ["one", 'two, with "quotes"\nand lines', '5" pipe', "", "last"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", DATA),
        ("a.csv", DATA.replace(b"\r\n", b"\n")),
        ("a.csv", b"\xef\xbb\xbf" + DATA),
        ("a.csv", DATA + b"\r\n"),
        ("a.csv.gz", gzip.compress(DATA, mtime=0)),
        ("a.csv.bz2", bz2.compress(DATA)),
        ("a.tsv", DATA.replace(b",", b"\t").replace(b"\t with", b", with")),
        ("a.csv", DATA.replace(b",", b";").replace(b"; with", b", with")),
    ],
    ids=["csv", "LF", "mark", "last line end", "gzip", "bzip2", "tsv", "semicolons"],
)
def test_a_row_is_a_document(read: Read, name: str, data: bytes) -> None:
    reading = read(name, data)
    assert (reading.texts, reading.errors, reading.truncated) == (TEXTS, [], False)
    assert [d["record_id"] for d in reading.documents] == list("12345")
    assert [d["url"] for d in reading.documents] == ["http://a", None, "u", None, None]
    assert reading.blank_lines == 1


def test_places_are_those_of_the_rows(read: Read) -> None:
    rows = [DATA[offset : offset + length] for offset, length in read("a.csv", DATA).places]
    assert rows[1] == b'2,"two, with ""quotes""\r\nand lines",'
    assert rows[-1] == b"5,last,"


@pytest.mark.parametrize("data", [b"", b"text,id\n", b"text,id", b"\n\ntext,id\r\n\r\n"])
def test_a_header_alone_is_no_record(read: Read, data: bytes) -> None:
    reading = read("a.csv", data)
    assert (reading.texts, reading.errors, reading.truncated) == ([], [], False)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (b"9", "ragged_row"),
        (b"9,a,b,c", "ragged_row"),
        (b'9,"open', "ragged_row"),
        (b'9,8,"open', "ragged_row"),
        (b"9,\xff,b", "invalid_utf8"),
        (b"9,a\rb,c", "invalid_csv"),
        (b"9," + b"a" * 500 + b",", "record_too_large"),
    ],
)
def test_a_bad_row_is_quarantined_and_its_neighbours_survive(
    read: Read, bad: bytes, error: str
) -> None:
    data = b"id,text,url\n1,one,\n" + bad + b'\n2,two,\n3,"three",""\n'
    reading = read("a.csv", data, max_record_bytes=400)
    assert reading.texts == ["one", "two", "three"]
    (row,) = reading.quarantined
    assert row["error"] in (error, "invalid_csv")
    assert data[row["source_offset"] :].startswith(row["raw"][:100])


def test_a_quote_that_is_never_closed_costs_its_line(read: Read) -> None:
    reading = read("a.csv", b'text,id\n"never closed,1\na,2\nb,3\n')
    assert (reading.texts, reading.errors) == (["a", "b"], ["invalid_csv"])


def test_a_missing_column_is_an_error_that_names_the_right_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"content,id\na,1\n")
    with pytest.raises(InputError, match=r"no `text` in the only record .*did you mean `content`"):
        check_fields(list_inputs([tmp_path]), Fields(), "web")


def test_every_cut_gives_the_whole_rows_before_it_and_nothing_raises(read: Read) -> None:
    for cut in range(len(DATA)):
        reading = read("a.csv", DATA[:cut])
        whole = [text for text in reading.texts if text in TEXTS]
        assert len(whole) >= len(reading.texts) - 1, cut


def test_a_damaged_compressed_file_gives_the_rows_before_the_damage(read: Read) -> None:
    packed = gzip.compress(b"text,id\n" + b"".join(b"%d,%d\n" % (n * 7919, n) for n in range(999)))
    reading = read("a.csv.gz", packed[:-900])
    assert len(reading.texts) > 300
    assert (reading.errors, reading.truncated) == (["truncated_gzip"], True)


class _Plain(csv.excel):
    lineterminator = "\n"


class _Quoting(_Plain):
    quoting = csv.QUOTE_ALL


_CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=12)


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(_CELLS, _CELLS), max_size=8), is_quoted=st.booleans())
def test_what_pythons_writer_writes_is_read(
    read: Read, rows: list[tuple[str, str]], is_quoted: bool
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, dialect=_Quoting if is_quoted else _Plain)
    writer.writerow(["text", "url"])
    writer.writerows(rows)
    reading = read("a.csv", out.getvalue().encode())
    visible = [(text, url) for text, url in rows if text.strip() or url]
    found = [(d["text"], d["url"] or "") for d in reading.documents]
    assert [row for row in found if row[0].strip() or row[1]] == visible
    assert not reading.errors


@settings(max_examples=100, deadline=None)
@given(data=st.lists(st.sampled_from(list(b'",\n\ra;\xff')), max_size=60).map(bytes))
def test_any_bytes_give_rows_that_dont_overlap(read: Read, data: bytes) -> None:
    reading = read("a.csv", b"text,id\n" + data)
    places = [*reading.places]
    places += [(r["source_offset"], r["source_length"]) for r in reading.quarantined]
    places.sort()
    assert all(a + length < b for (a, length), (b, _) in itertools.pairwise(places))
