from __future__ import annotations

import contextlib
import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.dataset.layout import TABLE_KINDS
from datapipe.dataset.parquet import conform, decode_table, encode_table, open_table
from datapipe.dataset.tables import DOCMAP, SHARDS
from datapipe.errors import DamagedError
from datapipe.testing import small_docmap

DOCUMENTS = small_docmap([3, 1, 4, 1, 5, 9, 2, 6], source="web")


def encoded(table: pa.Table) -> bytes:
    return bytes(encode_table(conform(table, DOCMAP)))


@given(st.lists(st.integers(0, 8), max_size=4), st.booleans())
@settings(max_examples=40, deadline=None)
def test_bytes_do_not_depend_on_chunks(cuts: list[int], unify: bool) -> None:
    bounds = [0, *sorted(cuts), 8]
    slices = [DOCUMENTS.slice(a, b - a) for a, b in itertools.pairwise(bounds)]
    parts = [pa.Table.from_pylist(part.to_pylist(), schema=DOCMAP) for part in slices]
    table = pa.concat_tables(parts)
    assert encoded(table.unify_dictionaries() if unify else table) == encoded(DOCUMENTS)


def test_bytes_do_not_depend_on_types_that_say_the_same() -> None:
    plain = conform(DOCUMENTS, DOCMAP)
    assert encoded(plain) == encoded(DOCUMENTS.select(DOCUMENTS.column_names[::-1]))
    assert encoded(plain.replace_schema_metadata({"pandas": "{}"})) == encoded(DOCUMENTS)


def test_tables_come_back_in_their_types() -> None:
    table = decode_table(encoded(DOCUMENTS), DOCMAP, path="docmap/x")
    assert table.schema.equals(DOCMAP)
    assert table.to_pylist() == DOCUMENTS.to_pylist()


@pytest.mark.parametrize("kind", TABLE_KINDS.values(), ids=lambda kind: kind.name)
def test_every_table_survives_without_rows(kind: object) -> None:
    schema = getattr(kind, "schema")  # noqa: B009
    data = bytes(encode_table(conform(schema.empty_table(), schema)))
    assert decode_table(data, schema, path="x").schema.equals(schema)


def test_no_metadata_of_writers_is_in_the_file() -> None:
    file = pq.ParquetFile(pa.BufferReader(encoded(DOCUMENTS)))
    assert file.metadata.metadata is None
    assert file.schema.names == DOCMAP.names
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_missing_column_is_named() -> None:
    with pytest.raises(ValueError, match="lacks the columns num_tokens, source_file"):
        conform(DOCUMENTS.drop_columns(["source_file", "num_tokens"]), DOCMAP)


def test_a_null_where_none_may_be_is_refused() -> None:
    nulls = pa.array([None] * 8, pa.int64())
    with pytest.raises(ValueError, match="column num_tokens has 8 nulls and may have none"):
        conform(DOCUMENTS.set_column(3, "num_tokens", nulls), DOCMAP)


def test_a_column_of_another_type_is_refused() -> None:
    words = pa.array(["word"] * 8)
    with pytest.raises(ValueError, match=r"column num_tokens is string, and can't become int64"):
        conform(DOCUMENTS.set_column(3, "num_tokens", words), DOCMAP)


@pytest.mark.parametrize("data", [b"", b"PAR1", encoded(DOCUMENTS)[:-9]], ids=["0", "4", "cut"])
def test_what_is_not_parquet_is_damage(data: bytes) -> None:
    with pytest.raises(DamagedError, match="docmap/x can't be read as its table"):
        decode_table(data, DOCMAP, path="docmap/x")


def test_a_column_name_that_is_not_utf8_is_damage() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"t\u00e9xt": ["a"]}), sink, store_schema=False)
    data = sink.getvalue().to_pybytes().replace("t\u00e9xt".encode(), b"t\xff\xffxt")
    with pytest.raises(DamagedError, match=r"d/x, table dropped of version 3 of u, can't be read"):
        decode_table(data, DOCMAP, path="d/x", of="table dropped of version 3 of u")


@pytest.mark.parametrize(
    "error",
    [
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        OverflowError("too large"),
        ValueError("no"),
        MemoryError(),
        IndexError("beyond"),
        TypeError("kind"),
        pa.ArrowInvalid("no"),
        pa.ArrowMemoryError("realloc of size 9223372036854775807 failed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_arrow_raises_about_a_table_is_damage(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", fail)
    with pytest.raises(DamagedError, match=r"docmap/x can't be read as its table: .*from a copy"):
        decode_table(encoded(DOCUMENTS), DOCMAP, path="docmap/x")
    monkeypatch.setattr(pq.ParquetFile, "__init__", fail)
    with pytest.raises(DamagedError, match=r"docmap/x can't be read as its table"):
        decode_table(encoded(DOCUMENTS), DOCMAP, path="docmap/x")


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_flipped_bytes_give_a_table_or_damage(flips: list[tuple[int, int]]) -> None:
    data = bytearray(encoded(DOCUMENTS))
    for place, value in flips:
        data[place % len(data)] = value
    with contextlib.suppress(DamagedError):
        assert decode_table(bytes(data), DOCMAP, path="docmap/x").schema.equals(DOCMAP)


def _claiming(*, file_rows: int, group_rows: int) -> bytes:
    """Returns Parquet of three rows whose footer says something else."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": pa.array([1] * 3, pa.int64())}), sink, store_schema=False)
    data: bytes = sink.getvalue().to_pybytes()
    length = int.from_bytes(data[-8:-4], "little")
    body, footer = data[: -8 - length], data[-8 - length : -8]
    for before, rows, behind in (
        (b"\x01a\0", file_rows, b"\x19\x1c"),
        (b"\x16\xbc\x01", group_rows, b"&\x08"),
    ):
        old = before + b"\x16" + _varint(3) + behind
        assert footer.count(old) == 1
        footer = footer.replace(old, before + b"\x16" + _varint(rows) + behind)
    return body + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _varint(number: int) -> bytes:
    """Returns a positive number as Thrift's compact protocol writes it."""
    rest, found = 2 * number, bytearray()
    while rest > 127:
        found.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*found, rest])


@pytest.mark.parametrize(
    ("file_rows", "group_rows", "match"),
    [
        (1 << 40, 1 << 40, r"claims 1,099,511,627,776 rows, so many bytes have [\d,]+ at most"),
        (3, 1 << 40, r"claims 3 rows, its groups 1,099,511,627,776"),
        (1 << 40, 3, r"its groups 3"),
    ],
    ids=["both", "group", "file"],
)
def test_a_claim_of_absurdly_many_rows_is_refused_before_reading(
    file_rows: int, group_rows: int, match: str
) -> None:
    schema = pa.schema([pa.field("a", pa.int64())])
    assert decode_table(_claiming(file_rows=3, group_rows=3), schema, path="x").num_rows == 3
    data = _claiming(file_rows=file_rows, group_rows=group_rows)
    with pytest.raises(DamagedError, match=match):
        open_table(pa.BufferReader(data), schema, path="x")


def test_another_table_is_damage() -> None:
    with pytest.raises(DamagedError, match="docmap/x can't be read as its table"):
        decode_table(encoded(DOCUMENTS), SHARDS, path="docmap/x")


def test_a_docmap_row_takes_less_than_60_bytes() -> None:
    lengths = [500 + n % 977 for n in range(20_000)]
    data = encoded(small_docmap(lengths, source="web"))
    assert len(data) / len(lengths) < 60
