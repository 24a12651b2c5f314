from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from datapipe.engine.stages import document_stage

pytest.importorskip("ftfy")
Batch = Callable[[list[str]], pa.RecordBatch]


@pytest.mark.parametrize(
    ("text", "encoding", "everything"),
    [
        ("schÃ¶n â€\u201c ja", "schön \u2013 ja", "schön \u2013 ja"),
        ("schön \u2013 „ja“", "schön \u2013 „ja“", 'schön \u2013 "ja"'),
        ("&lt;b&gt; ﬁt é", "&lt;b&gt; ﬁt é", "<b> fit é"),
        ("plain &amp; simple", "plain &amp; simple", "plain & simple"),
        ("", "", ""),
        ("a\r\nb\x00 é", "a\r\nb\x00 é", "a\nb é"),
    ],
)
def test_texts_are_mended(batch: Batch, text: str, encoding: str, everything: str) -> None:
    for repair, expected in (("encoding", encoding), ("all", everything)):
        kept, *_ = document_stage("fix_text", {"repair": repair}).apply(batch([text]))
        assert kept.column("text").to_pylist() == [expected]
