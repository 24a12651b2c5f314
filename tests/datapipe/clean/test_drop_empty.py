from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pyarrow as pa
import pytest

from datapipe.clean import DropEmpty
from datapipe.dataset.tables import DROPPED
from datapipe.engine.stages import document_stage, is_document_stage

Batch = Callable[[list[str]], pa.RecordBatch]

EMPTY = [
    "", " ", "\n\t \r\n", "\x00\x01", "\u200b", "\ufeff", "\u00a0\u3000\u2003", "\u00ad", "\u2060",
    "\u200d\ufe0f", "\u3164", "\u115f\u1160", "\u2800", "\u034f", "\u180e", "\x85\u2028",
    "\U000e0061\U000e0100",
]  # fmt: skip
FULL = ["a", " . ", "\u4e00", "\u0301", "\U0001f600", "\u200bx", "\ue000", "_", "\ufffd", "\u0e00"]


@pytest.mark.parametrize("text", EMPTY, ids=ascii)
def test_a_text_without_a_visible_character_is_dropped(batch: Batch, text: str) -> None:
    kept, dropped, _ = DropEmpty().apply(batch([text]))
    assert kept.num_rows == 0
    assert dropped.column("rule").to_pylist() == ["empty"]


@pytest.mark.parametrize("text", FULL, ids=ascii)
def test_a_text_with_a_visible_character_stays(batch: Batch, text: str) -> None:
    kept, dropped, _ = DropEmpty().apply(batch([text]))
    assert (kept.column("text").to_pylist(), dropped.num_rows) == ([text], 0)


def test_a_dropped_row_says_which_document_and_why(batch: Batch) -> None:
    given = batch(["a", " ", "b", ""])
    kept, dropped, _ = DropEmpty().apply(given)
    dropped.validate(full=True)
    assert kept.column("text").to_pylist() == ["a", "b"]
    assert dropped.schema == DROPPED
    (first, second) = dropped.to_pylist()
    assert (first["doc_id"], second["source_offset"]) == (given.column("doc_id")[1].as_py(), 3)
    assert (first["stage"], first["rule"], first["record_id"]) == ("drop_empty", "empty", "r1")
    assert (first["source"], first["source_file"]) == ("web", "a.jsonl")
    assert first["survivor"] is first["value"] is first["threshold"] is None


def test_no_documents_are_no_problem(batch: Batch) -> None:
    kept, dropped, _ = DropEmpty().apply(batch([]))
    assert kept.num_rows == dropped.num_rows == 0


def test_characters_of_every_class_are_judged_by_it(batch: Batch) -> None:
    characters = [chr(c) for c in range(0x20000) if not 0xD800 <= c < 0xE000]
    kept, *_ = DropEmpty().apply(batch(characters))
    visible = set(kept.column("text").to_pylist())
    for character in characters:
        category = unicodedata.category(character)
        if category in ("Cc", "Cf", "Zs", "Zl", "Zp"):
            assert character not in visible, ascii(character)
        elif category[0] in "NPS" and character != "\u2800":
            assert character in visible, ascii(character)


def test_stages_are_found_by_their_names_in_recipes() -> None:
    stages = [document_stage(name, {}) for name in ("normalize", "drop_empty")]
    assert [(stage.name, stage.version) for stage in stages] == [
        ("normalize", 1),
        ("drop_empty", 1),
    ]
    assert not is_document_stage("dedup_exact")
