from __future__ import annotations

import pyarrow as pa

from datapipe.documents import DOCUMENTS
from datapipe.engine.measured import Signals, join_measured


def documents(*ids: int) -> pa.RecordBatch:
    columns = [
        pa.array([bytes([i]) * 16 for i in ids], field.type)
        if field.name == "doc_id"
        else pa.array(["web"] * len(ids)).dictionary_encode()
        if field.name == "source"
        else pa.nulls(len(ids), field.type)
        for field in DOCUMENTS
    ]
    return pa.RecordBatch.from_arrays(columns, names=DOCUMENTS.names)


def measured(name: str, **values: int) -> pa.RecordBatch:
    ids = pa.array([bytes([int(key[1:])]) * 16 for key in values], pa.binary(16))
    return pa.record_batch({"doc_id": ids, name: pa.array(list(values.values()), pa.int64())})


def test_each_document_has_what_every_stage_measured_of_it() -> None:
    signals = Signals()
    signals.add(documents(1, 2, 3), measured("a.x", d1=10, d2=20, d3=30))
    signals.add(documents(1, 3), measured("b.y", d1=1, d3=3))
    (table,) = signals.table()
    assert table["a.x"].to_pylist() == [10, 20, 30]
    assert table["b.y"].to_pylist() == [1, None, 3]
    assert table["source"].to_pylist() == ["web"] * 3


def test_nothing_measured_is_no_table() -> None:
    signals = Signals()
    signals.add(documents(1), None)
    signals.add(documents(), measured("a.x"))
    assert list(signals.table()) == []


def test_batches_may_have_other_signals() -> None:
    tables: list[pa.Table] = []
    for name in ("a.x", "a.y"):
        signals = Signals()
        signals.add(documents(1), measured(name, d1=1))
        tables.extend(signals.table())
    joined = join_measured(tables)
    assert joined.select(["a.x", "a.y"]).to_pylist() == [
        {"a.x": 1, "a.y": None},
        {"a.x": None, "a.y": 1},
    ]
