from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.dataset.hashing import Field, document_hash, hashed_tuple
from datapipe.dataset.rows import encode_rows, row_hashes, rows_sha256

TYPES = {
    "text": pa.string(),
    "data": pa.binary(),
    "hash": pa.binary(4),
    "int": pa.int64(),
    "small": pa.int32(),
    "unsigned": pa.uint64(),
    "float": pa.float64(),
    "flag": pa.bool_(),
    "time": pa.timestamp("s", tz="UTC"),
    "name": pa.dictionary(pa.int32(), pa.string()),
}

VALUES = {
    "text": st.text(max_size=5),
    "data": st.binary(max_size=5),
    "hash": st.binary(min_size=4, max_size=4),
    "int": st.integers(-(1 << 63), (1 << 63) - 1),
    "small": st.integers(-5, 5),
    "unsigned": st.integers(0, (1 << 64) - 1),
    "float": st.floats(allow_nan=False),
    "flag": st.booleans(),
    "time": st.integers(0, 1 << 32).map(lambda s: datetime.fromtimestamp(s, UTC)),
    "name": st.sampled_from(["a", "b", "cc"]),
}

optional_row = st.fixed_dictionaries({name: st.none() | value for name, value in VALUES.items()})
full_row = st.fixed_dictionaries(VALUES)
rows_strategy = st.lists(full_row, max_size=8) | st.lists(optional_row, max_size=8)


def table_of(rows: list[dict[str, object]]) -> pa.Table:
    columns = []
    for name, kind in TYPES.items():
        values = [row[name] for row in rows]
        plain = pa.string() if name == "name" else kind
        column = pa.array(values, plain)
        columns.append(column.dictionary_encode() if name == "name" else column)
    return pa.table(columns, names=list(TYPES))


def plain_bytes(row: dict[str, object]) -> bytes:
    """The same, one row at a time."""
    fields: list[Field] = []
    for value in (row[name] for name in TYPES):
        if isinstance(value, datetime):
            fields.append(int(value.timestamp()))
        else:
            fields.append(value)  # type: ignore[arg-type]
    return hashed_tuple(*fields)


@given(rows_strategy)
@settings(max_examples=60, deadline=None)
def test_rows_agree_with_hashed_tuples(rows: list[dict[str, object]]) -> None:
    table = table_of(rows)
    expected = [plain_bytes(row) for row in rows]
    assert b"".join(encoded.tobytes() for encoded, _ in encode_rows(table)) == b"".join(expected)
    assert rows_sha256(table) == hashlib.sha256(b"".join(expected)).hexdigest()
    assert row_hashes(table).tobytes() == b"".join(map(document_hash, expected))


@given(rows_strategy, st.integers(0, 8), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_chunks_slices_and_dictionaries_do_not_show(
    rows: list[dict[str, object]], cut: int, skip: int
) -> None:
    table = table_of(rows)
    padded = (
        pa.concat_tables([table.slice(0, skip), table]).combine_chunks().slice(min(skip, len(rows)))
    )
    chunked = pa.concat_tables([table_of(rows[:cut]), table_of(rows[cut:])])
    wide = table.set_column(0, "text", table["text"].cast(pa.large_string()))
    for other in (padded, chunked, wide, table.unify_dictionaries()):
        assert rows_sha256(other) == rows_sha256(table)


def test_columns_that_are_all_absent_are_encoded() -> None:
    table = pa.table(
        {"a": pa.array([None, None], pa.string()), "b": pa.array([None, 1], pa.int64())}
    )
    digest = hashlib.sha256(hashed_tuple(None, None) + hashed_tuple(None, 1)).hexdigest()
    assert rows_sha256(table) == digest


def test_stretches_of_long_tables_agree_with_hashed_tuples() -> None:
    columns: dict[str, list[Field]] = {
        "name": [f"part-{n // 3_000}" for n in range(5_000)],
        "id": [f"{n:032x}" for n in range(5_000)],
        "text": [None if n % 7 == 0 else "a" * (n % 5) for n in range(5_000)],
        "n": list(range(5_000)),
        "absent": [None] * 5_000,
    }
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    table = table.set_column(0, "name", table["name"].dictionary_encode())
    expected = b"".join(hashed_tuple(*row) for row in zip(*columns.values(), strict=True))
    assert b"".join(encoded.tobytes() for encoded, _ in encode_rows(table)) == expected
    for part in (table.slice(2_000, 2_100), table.select(["id", "n"]), table.select(["text"])):
        plain = part.to_pydict().values()
        rows = b"".join(hashed_tuple(*row) for row in zip(*plain, strict=True))
        assert rows_sha256(part) == hashlib.sha256(rows).hexdigest()


def test_long_tables_are_encoded_in_stretches() -> None:
    table = pa.table({"n": pa.array(range(70_000), pa.int64())})
    expected = b"".join(hashed_tuple(n) for n in range(70_000))
    assert [len(offsets) - 1 for _, offsets in encode_rows(table)] == [2_048] * 34 + [368]
    assert rows_sha256(table) == hashlib.sha256(expected).hexdigest()
